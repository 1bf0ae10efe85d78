/**
 * Transactions of the caller's own, in which jobs are enqueued beside other writes.
 */
import { systemClock } from '../clock.ts';
import { PermanentError } from '../errors.ts';
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
  let isOver = false;
  const { query, own, release } = await connectionsOf(pool, systemClock(), LIMIT_MS).take();
  try {
    await query('begin', 'begin isolation level read committed');
    const result = await work(transactionOn(own, () => isOver));
    isOver = true;
    // In an aborted transaction a statement fails, where COMMIT would answer ROLLBACK without an error.
    await query('commit', 'select 1');
    await query('commit', 'commit');
    return result;
  } catch (error) {
    isOver = true;
    if (isUnknown(error)) release(true);
    else await query('rollback', 'rollback').catch(() => release(true));
    throw error;
  } finally {
    release();
  }
}

/**
 * Another object for each transaction: a client comes back from the pool, and would pass for the same one. A statement that
 * comes after the end of its transaction is refused (`TRANSACTION_OVER`), or it would be a commit of its own.
 */
export const transactionOn = (own: PostgresQueries, isOver: () => boolean): PostgresTransaction => ({
  async query(text, values) {
    if (isOver()) throw new PermanentError('TRANSACTION_OVER', 'the transaction has ended');
    return own.query(text, values);
  },
});
