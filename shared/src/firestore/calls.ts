/**
 * Calls of the Firestore client with an end: by itself the client tries for minutes when no server answers.
 *
 * A call that is abandoned may still be applied later; the error says that nothing is known, not that nothing happened.
 */
import { withTimeLimit } from '../async/time-limit.ts';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { ConfigError, PermanentError, storeUnavailable, TransientError } from '../errors.ts';
import { clock as aClock, type Shape, durationFrom, whole } from '../options.ts';
import { unavailable } from './errors.ts';

export type CallOptions = Readonly<{
  /**
   * Bound on one read or write (default `10s`, at least `1ms`): by itself the client tries for minutes when its
   * server is down.
   */
  callTimeout?: Duration;
  /** Bound on a transaction with its repeats (default `20s`, at least `1ms`). */
  transactionTimeout?: Duration;
  /**
   * How often the client starts a transaction at most, the first time included (default 5, the client's own; at least
   * 1).
   */
  maxAttempts?: number;
  /** Default: the machine's. */
  clock?: Clock;
}>;

export type Calls = Readonly<{
  clock: Clock;
  maxAttempts: number;
  /** Rejects with `STORE_UNAVAILABLE`, also for what the server answers; `cause` has the server's error. */
  call<Result>(name: string, work: () => Promise<Result>): Promise<Result>;
  /**
   * `alive` throws once the transaction was abandoned: called first in it, it stops the client from running it again.
   */
  transaction<Result>(name: string, work: (alive: () => void) => Promise<Result>): Promise<Result>;
}>;

/** One check for each option of calls, for the adapters that have them among their own. */
export const CALL_SHAPE: Shape<Required<CallOptions>> = {
  callTimeout: durationFrom('1ms'),
  transactionTimeout: durationFrom('1ms'),
  maxAttempts: whole(1),
  clock: aClock,
};

export function boundedCalls(options: CallOptions): Calls {
  const { callTimeout = '10s', transactionTimeout = '20s', maxAttempts = 5, clock = systemClock() } = options;
  const callMs = toMilliseconds(callTimeout, 'callTimeout');
  const transactionMs = toMilliseconds(transactionTimeout, 'transactionTimeout');

  const within = <Result>(
    name: string,
    limitMs: number,
    work: (alive: () => void) => Promise<Result>,
  ): Promise<Result> => {
    let over = false;
    const timedOut = (): Error => storeUnavailable(`Firestore: no answer to ${name} within ${limitMs} ms`);
    const late = (): Error => {
      over = true;
      return timedOut();
    };
    const alive = (): void => {
      if (over) throw timedOut();
    };
    const call = async (): Promise<Result> => {
      try {
        return await work(alive);
      } catch (error) {
        throw translated(name, error);
      }
    };
    return withTimeLimit(clock, limitMs, call, late);
  };
  return {
    clock,
    maxAttempts,
    call: (name, work) => within(name, callMs, work),
    transaction: (name, work) => within(name, transactionMs, work),
  };
}

/** What the work itself threw, or is wrong with a document of ours, is not the store's failure: it keeps its code. */
function translated(name: string, error: unknown): unknown {
  if (error instanceof TransientError || error instanceof PermanentError || error instanceof ConfigError)
    return error;
  return unavailable(error, name);
}
