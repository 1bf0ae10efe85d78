/**
 * `jobs work`: a worker of the handlers that a module exports, until SIGTERM or Ctrl-C. What it holds then has the time of
 * `closeTimeout`; a second signal ends that. Killed, it leaves its jobs to other workers, after their leases.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { refusedAs, textOf } from '../errors.ts';
import {
  type JobOutbox,
  type PostgresPool,
  postgresJobs,
  type PostgresTransaction,
} from '../jobs/postgres.ts';
import { worker } from '../jobs/worker.ts';
import type { RoleOptions, WorkerOptions } from '../jobs/worker-options.ts';
import type { JobsCommand, JobsLine } from './jobs-command.ts';
import { openDatabase } from './postgres-jobs.ts';
import type { Printed } from './usage.ts';

/** What the module exports: the two arguments of `worker`, and for handlers that publish an outbox. */
type WorkModule = Readonly<{
  roles?: unknown;
  options?: WorkerOptions;
  outbox?: (pool: PostgresPool) => JobOutbox;
}>;

type Work = Extract<JobsCommand, Readonly<{ kind: 'work' }>>;

const ACCEPTED = 'a file that exports roles, as worker(store, roles) takes them';
/** Beside one for each handler: for the exchange, for the passes over due jobs, and for what a handler enqueues itself. */
const OTHER_CONNECTIONS = 3;

/** `say` is told when it begins. Resolves when all that it held has ended. Rejects with ConfigError, before a claim. */
export async function workJobs(line: JobsLine, command: Work, say: (text: string) => void): Promise<Printed> {
  const { roles, options = {}, outbox } = await moduleAt(command.module);
  const { concurrency = options.concurrency ?? 1, directUrl } = command;
  const { pool, listenAt, close } = await openDatabase(line, concurrency + OTHER_CONNECTIONS);
  const store = postgresJobs(pool, {
    schema: line.schema,
    ...(outbox !== undefined && { outbox: outbox(pool) }),
    ...(directUrl !== undefined && { listen: () => listenAt(directUrl) }),
  });
  // A database that is not there, or not migrated, is said at once and not in a log.
  await store.look();
  const running = worker(store, roles, { ...options, concurrency });
  const names = Object.keys(roles);
  say(`works ${names.join(', ')}, ${concurrency} at once; SIGTERM or Ctrl-C ends it`);
  await asked(() => running.stop());
  await close();
  return {
    object: { roles: names, stopped: true },
    lines: ['stopped: what it held has ended, or was given back'],
  };
}

/** The worker hears SIGTERM itself, a second one too: so does Ctrl-C come to it. */
function asked(stop: () => Promise<void>): Promise<void> {
  return new Promise((resolved) => {
    const again = (): void => void process.kill(process.pid, 'SIGTERM');
    process.on('SIGINT', again);
    process.on('SIGTERM', () => {
      void stop().then(() => {
        process.off('SIGINT', again);
        resolved();
      });
    });
  });
}

type Roles = Readonly<Record<string, RoleOptions<PostgresTransaction>>>;

/** A relative path is one from the folder in which the command runs. */
async function moduleAt(module: string): Promise<Omit<WorkModule, 'roles'> & Readonly<{ roles: Roles }>> {
  let loaded: WorkModule;
  try {
    loaded = (await import(pathToFileURL(resolve(module)).href)) as WorkModule;
  } catch (error) {
    throw refusedAs(
      'MODULE',
      `${JSON.stringify(module)}, which cannot be loaded: ${textOf(error)}`,
      ACCEPTED,
    );
  }
  const { roles } = loaded;
  if (typeof roles !== 'object' || roles === null)
    throw refusedAs('MODULE', `${JSON.stringify(module)}, which exports no roles`, ACCEPTED);
  return { ...loaded, roles: roles as Roles };
}
