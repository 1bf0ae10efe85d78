/**
 * A process that works jobs in Postgres until it is killed. Started by kills.test.ts; it ends with its parent.
 */
import { flushCompileCache } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { silent } from '../../../shared/src/log.ts';
import { ack } from '../../../shared/src/outcome.ts';
import { postgresJobs } from '../../../shared/src/jobs/postgres.ts';
import { worker } from '../../../shared/src/jobs/worker.ts';

export type WorkingTask = Readonly<{ config: pg.PoolConfig; leaseMs: number; rescueAfterStartMs: number }>;

const task = JSON.parse(process.argv[2] ?? '') as WorkingTask;
process.once('disconnect', () => process.exit());
const pool = new pg.Pool({ ...task.config, max: 12 });
pool.on('error', () => {});
const store = postgresJobs(pool, {
  rescueAfterStart: `${task.rescueAfterStartMs}ms`,
  log: silent,
  listen: () => new pg.Client(task.config),
});
worker(
  store,
  {
    r: {
      lease: `${task.leaseMs}ms`,
      runTimeout: '1m',
      retry: { min: '50ms', max: '500ms' },
      handle: {
        async effect(job, { transaction }) {
          await pause(Math.random() * 600);
          await (await transaction()).query('insert into public.effect (job_id) values ($1)', [job.id]);
          return ack();
        },
      },
    },
  },
  { concurrency: 5, poll: '100ms', log: silent, closeTimeout: '5s' },
);
process.send?.('begun');
// Writes the compile cache for later processes: a killed process would not write it.
flushCompileCache();
