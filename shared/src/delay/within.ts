/**
 * How long the queue and the publisher may take.
 */
import { bounded } from '../bounded.ts';
import type { Clock } from '../clock.ts';
import { TransientError } from '../errors.ts';

/** Settles as `call` does, or rejects with TransientError `TIMED_OUT` naming `what`. The call may still succeed. */
export const within = <Value>(
  clock: Clock,
  milliseconds: number,
  what: string,
  call: Promise<Value>,
): Promise<Value> =>
  bounded(
    clock,
    milliseconds,
    () => call,
    () => new TransientError('TIMED_OUT', `${what} did not answer within ${milliseconds} ms`),
  );
