/**
 * The ground of the benchmarks of jobs: a Postgres of its own that commits to disk as in production, and its tables.
 */
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { migrate, postgresJobs } from 'pubsub-guarantees/jobs/postgres';
import { postgresBinaries, startPostgres } from 'pubsub-guarantees-emulator';

export type Print = (line: string) => void;
export type Store = ReturnType<typeof postgresJobs>;

export type Ground = Readonly<{
  version: string;
  /** CPU time of the server and all of its processes so far; undefined where the machine does not say. */
  cpuMs(): number | undefined;
  pool: pg.Pool;
  config: pg.PoolConfig;
  /** Tables in a schema of this name. */
  store(schema: string): Promise<Store>;
  close(): Promise<void>;
}>;

/** Both sides have as many connections. */
const CONNECTIONS = 20;

/** Undefined, with a line that says so, where this machine has no Postgres. */
export async function openGround(print: Print): Promise<Ground | undefined> {
  const [binaries] = postgresBinaries();
  if (binaries === undefined) {
    print('skipped: no postgres on this machine');
    return undefined;
  }
  const server = await startPostgres(binaries, { fsync: 'on', shared_buffers: '256MB', max_wal_size: '4GB' });
  const pool = new pg.Pool({ ...server.config, max: CONNECTIONS });
  let isClosing = false;
  const tell = (error: Error): void => {
    if (!isClosing) print(`a connection broke: ${error.message}`);
  };
  pool.on('error', tell).on('connect', (client) => client.on('error', tell));
  return {
    version: binaries.name,
    cpuMs: () => serverCpuMs(server.pid),
    pool,
    config: server.config,
    async store(schema) {
      await migrate(pool, { schema });
      const listen = () => new pg.Client(server.config);
      return postgresJobs(pool, { schema, rescueAfterStart: '0s', listen });
    },
    async close() {
      isClosing = true;
      await pool.end();
      await server.close();
    },
  };
}

/** Of Linux alone: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html (fields 14 to 17, of 10 ms each). */
function serverCpuMs(pid: number): number | undefined {
  const ticks = (id: number | string, fields: readonly number[]): number => {
    const [, behindName = ''] = readFileSync(`/proc/${id}/stat`, 'utf8').split(') ');
    return fields.reduce((sum, field) => sum + Number(behindName.split(' ')[field - 3]), 0);
  };
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    const running = children.map((child) => ticks(child, [14, 15]));
    return running.reduce((sum, one) => sum + one, ticks(pid, [14, 15, 16, 17])) * 10;
  } catch {
    return undefined;
  }
}

/** Ready jobs of one role and priority, written without the library, as a dump would be. */
export async function fill(
  pool: pg.Pool,
  schema: string,
  jobs: Readonly<{ role: string; count: number; priority?: number }>,
): Promise<void> {
  const { role, count, priority = 5 } = jobs;
  await pool.query(
    `insert into "${schema}".job (role, kind, payload, state, priority, run_at)
     select $1, 'k', jsonb_build_object('n', n), 0, $3, clock_timestamp() from generate_series(1, $2::integer) n`,
    [role, count, priority],
  );
}

/** Without a row, and without what deleted rows leave behind. */
export async function empty(pool: pg.Pool, schema: string): Promise<void> {
  await pool.query(
    `truncate "${schema}".job, "${schema}".job_log, "${schema}".job_key, "${schema}".job_dead`,
  );
  await pool.query(`analyze "${schema}".job`);
}

/** Milliseconds of one call. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

export const perSecond = (count: number, milliseconds: number): number =>
  Math.round((count / milliseconds) * 1_000);
export const rounded = (value: number): number => Number(value.toFixed(2));
