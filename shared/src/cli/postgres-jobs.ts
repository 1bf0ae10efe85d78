/**
 * The jobs that a command line names, over `pg`, which is loaded here and nowhere else. `close` ends what was opened.
 */
import type pg from 'pg';
import { ConfigError } from '../errors.ts';
import { jobs } from '../jobs/jobs.ts';
import { migrate, type PostgresPool, postgresJobs } from '../jobs/postgres.ts';
import { postgresJobViews } from '../jobs/postgres-views.ts';
import type { ListeningClient } from '../postgres/listen.ts';
import type { JobsLine } from './jobs-command.ts';
import type { JobsPorts } from './run-jobs.ts';

type Database = Readonly<{
  pool: PostgresPool;
  /** A connection that is not the pool's. */
  listenAt(url: string): ListeningClient;
  close(): Promise<void>;
}>;

/** `connections`: at most so many at once. Rejects with ConfigError `CLIENT_MISSING`. */
export async function openDatabase({ url }: Pick<JobsLine, 'url'>, connections: number): Promise<Database> {
  const { Client, Pool } = await loaded();
  const name = 'pubsub-guarantees';
  const of = (connectionString: string | undefined) =>
    connectionString === undefined ? {} : { connectionString };
  const pool = new Pool({ application_name: name, max: connections, ...of(url) });
  // An idle connection that breaks is made anew with the next statement; without a listener Node ends the process.
  pool.on('error', () => {});
  return {
    pool,
    listenAt: (direct) => new Client({ application_name: name, ...of(direct) }),
    close: () => pool.end(),
  };
}

export async function openJobs(line: JobsLine): Promise<JobsPorts & Readonly<{ close(): Promise<void> }>> {
  const { schema } = line;
  const { pool, close } = await openDatabase(line, 2);
  return {
    queue: jobs(postgresJobs(pool, { schema })),
    views: postgresJobViews(pool, schema),
    migrate: (grants) => migrate(pool, { schema, grants }),
    close,
  };
}

async function loaded(): Promise<typeof pg> {
  try {
    return (await import('pg')).default;
  } catch (error) {
    const text =
      'the commands of jobs need the package pg; accepted: it is installed beside this one (npm install pg)';
    throw new ConfigError('CLIENT_MISSING', text, { cause: error });
  }
}
