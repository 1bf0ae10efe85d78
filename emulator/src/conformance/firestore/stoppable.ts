/**
 * Work on contended documents, with a limit of its own: a slow server does not end it, and its cases run beside others.
 */
import assert from 'node:assert/strict';
import type { Transaction } from '@google-cloud/firestore';
import { settles } from './expect.ts';

/** Of the work, and of the transactions that are in flight when it is stopped. */
const LIMIT_MS = 25_000;
const GRACE_MS = 20_000;

export type Stopped = () => boolean;

/** Runs the work; what has not ended within the limit gets the signal to stop, and the case fails. */
export async function within(
  run: (stopped: Stopped) => Promise<unknown>,
  what: string,
  done = () => '',
): Promise<void> {
  let isOver = false;
  const work = run(() => isOver);
  if (await settles(work, LIMIT_MS)) {
    await work;
    return;
  }
  isOver = true;
  const seen = done();
  // A client may not be closed with transactions in flight: they would fail where no code sees the error.
  await settles(work, GRACE_MS);
  assert.fail(`${what} did not end within ${LIMIT_MS / 1_000} s: ${seen}`);
}

/** The function of a transaction, which ends at its next attempt when it is to stop. */
export const unless =
  <T>(stopped: Stopped, run: (transaction: Transaction) => Promise<T>) =>
  async (transaction: Transaction): Promise<T> => {
    if (stopped()) throw new Error('stopped');
    return await run(transaction);
  };
