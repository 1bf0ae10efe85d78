/**
 * What a job publishes, as rows of an outbox in the transaction that completes it: a crash leaves the job to be run again
 * and no row, or both done.
 */
import { port } from '../options.ts';
import { outbox } from '../outbox/outbox.ts';
import type { PostgresOutbox } from '../outbox/postgres.ts';
import type { HeldJob } from './job-store.ts';
import type { JobOutbox } from './postgres-transaction.ts';

/**
 * What a completed job publishes, as rows of this outbox in the transaction that completes it: the option `outbox` of
 * `postgresJobs`. Their IDs follow from the job and its run. Throws ConfigError for what is no such outbox.
 *
 * @example
 * const rows = postgresOutbox(pool, { projectId: 'shop' });
 * const store = postgresJobs(pool, { outbox: jobOutbox(rows) });
 */
export function jobOutbox(store: PostgresOutbox): JobOutbox {
  port(['readSlot', 'writeSlot', 'written'], 'what postgresOutbox(pool, options) answers')('store', store);
  const box = outbox(store);
  return {
    async add(tx, { id, token }: HeldJob, messages) {
      const slot = await box.reserve(tx, { id: `job ${id} ${token}` });
      slot.add(...messages);
      await store.written(tx);
    },
  };
}
