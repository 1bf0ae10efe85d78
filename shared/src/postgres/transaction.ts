/**
 * Transactions of the caller's own, in which jobs are enqueued beside other writes.
 */
import { systemClock } from '../clock.ts';
import { callable, port } from '../options.ts';
import { connectionsOf, type PostgresPool, type PostgresQueries } from './connection.ts';
import { isUnknown } from './errors.ts';

/** What a transaction is to a store: an object of its own for each, with the client's `query`. */
export type PostgresTransaction = PostgresQueries;

/** For BEGIN, COMMIT and ROLLBACK; statements in between have the limits of the caller's client. */
const LIMIT_MS = 10_000;

/**
 * Runs `work` between BEGIN and COMMIT on one connection of the pool, at READ COMMITTED. Rejects with what `work` threw,
 * after ROLLBACK; with `STORE_UNAVAILABLE` where the outcome of the commit is unknown: tried again, an enqueue with a key
 * answers `repeated`. A statement that failed must not be swallowed: the commit rejects then too (`STORE_REFUSED`).
 *
 * @example
 * await inTransaction(pool, async (tx) => {
 *   await tx.query('insert into scene (id) values ($1)', [42]);
 *   await ingest.enqueue(tx, [{ role: 'ingest', kind: 'scene', payload: { scene: 42 } }]);
 * });
 */
export async function inTransaction<Result>(
  pool: PostgresPool,
  work: (tx: PostgresTransaction) => Promise<Result>,
): Promise<Result> {
  port(['query', 'connect'], 'a pool of pg, for example new Pool()')('pool', pool);
  callable('work', work);
  const { query, own, release } = await connectionsOf(pool, systemClock(), LIMIT_MS).take();
  try {
    await query('begin', 'begin isolation level read committed');
    // Another object for each transaction: a client comes back from the pool, and would pass for the same one.
    const result = await work({ query: (text, values) => own.query(text, values) });
    // In an aborted transaction a statement fails, where COMMIT would answer ROLLBACK without an error.
    await query('commit', 'select 1');
    await query('commit', 'commit');
    return result;
  } catch (error) {
    if (isUnknown(error)) release(true);
    else await query('rollback', 'rollback').catch(() => release(true));
    throw error;
  } finally {
    release();
  }
}
