/**
 * Jobs in a real Postgres, as the contract suite wants them.
 */
import pg from 'pg';
import { silent } from '../../../shared/src/log.ts';
import type { JobsUnderTest } from '../../../shared/src/jobs/contract-kit.ts';
import {
  inTransaction,
  type JobOutbox,
  migrate,
  postgresJobs,
  type PostgresJobsOptions,
  type PostgresTransaction,
} from '../../../shared/src/jobs/postgres.ts';

/** Messages become rows of a table of the test. */
const outbox: JobOutbox = {
  async add(tx, _held, messages) {
    for (const { data } of messages) {
      await tx.query('insert into public.message values ($1)', [Buffer.from(data).toString()]);
    }
  },
};

const AGED = {
  job: ['run_at', 'claimed_at', 'lease_until', 'created_at'],
  job_key: ['expires_at'],
  job_log: ['finished_at', 'created_at'],
  job_dead: ['died_at'],
  job_recurrence: ['made_at'],
  job_start: ['at', 'expires_at'],
} as const;

/** A pool that outlives its server. */
export function poolOf(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool({ max: 20, ...config });
  pool.on('error', () => {});
  return pool;
}

/** `direct`: where `listen` connects to; without it there is none. */
export async function openJobs(
  config: pg.PoolConfig,
  direct: pg.ClientConfig | undefined,
  close: () => Promise<void>,
): Promise<JobsUnderTest<PostgresTransaction>> {
  const pool = poolOf(config);
  await migrate(pool);
  await pool.query('create table public.done (name text primary key)');
  await pool.query('create table public.message (text text not null)');
  const options: PostgresJobsOptions = { rescueAfterStart: '0s', outbox, log: silent };
  const listen = direct && { listen: () => new pg.Client(direct) };
  return {
    store: postgresJobs(pool, { ...options, ...listen }),
    another: () => postgresJobs(pool, options),
    transact: (work) => inTransaction(pool, work),
    async age(milliseconds) {
      for (const [table, columns] of Object.entries(AGED)) {
        const older = columns.map((column) => `${column} = ${column} - interval '${milliseconds} ms'`);
        await pool.query(`update jobs.${table} set ${older.join(', ')}`);
      }
    },
    put: async (tx, name) => void (await tx.query('insert into public.done values ($1)', [name])),
    isThere: async (name) =>
      (await pool.query('select from public.done where name = $1', [name])).rows.length > 0,
    async published() {
      const { rows } = await pool.query<{ text: string }>('select text from public.message');
      return rows.map(({ text }) => text);
    },
    logged: async (id) => (await pool.query('select from jobs.job_log where id = $1', [id])).rows.length,
    async close() {
      await pool.end();
      await close();
    },
  };
}
