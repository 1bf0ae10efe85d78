/**
 * Limits for calls that may hang: a client waits for minutes when its server is down; a delivery cannot.
 *
 * A call that is abandoned goes on by itself and may still succeed later: every caller must be safe against that.
 */
import { type Clock, sleep } from '../clock.ts';
import { TransientError } from '../errors.ts';

/** Settles as `call` does, or rejects with what `late` makes after `milliseconds`. */
export function withTimeLimit<Value>(
  clock: Clock,
  milliseconds: number,
  call: () => Promise<Value>,
  late: () => Error,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(milliseconds, () => reject(late()));
    const run = async (): Promise<void> => {
      try {
        resolve(await call());
      } catch (error) {
        reject(error);
      } finally {
        cancel();
      }
    };
    void run();
  });
}

/** What `what`, a part of the service, is said to have done when `withTimeLimit` abandoned its call. */
export const noAnswer = (what: string, milliseconds: number): TransientError =>
  new TransientError('TIMED_OUT', `${what} did not answer within ${milliseconds} ms`);

/** Runs `call`, for at most what is left of a budget. */
export type Budget = <Value>(call: () => Promise<Value>) => Promise<Value>;

/**
 * One time for all the calls of one operation. When it is used up, the call in progress is abandoned and no other is
 * begun: both reject with what `late` makes.
 */
export function budget(clock: Clock, milliseconds: number, late: () => Error): Budget {
  const end = clock.monotonic() + milliseconds;
  return (call) => {
    const left = end - clock.monotonic();
    return left <= 0 ? Promise.reject(late()) : withTimeLimit(clock, left, call, late);
  };
}

/** Runs `work` with a signal that is aborted with `signal`, or after `milliseconds`. Waits for `work` all the same. */
export async function withSignal<Result>(
  clock: Clock,
  milliseconds: number,
  signal: AbortSignal,
  work: (limited: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const over = new AbortController();
  const cancel = clock.after(milliseconds, () => over.abort());
  try {
    return await work(AbortSignal.any([signal, over.signal]));
  } finally {
    cancel();
  }
}

/** What `result` resolves with; undefined when `milliseconds` have passed, or the signal is aborted, before that. */
export async function inTime<Value>(
  clock: Clock,
  milliseconds: number,
  signal: AbortSignal,
  result: Promise<Value>,
): Promise<Value | undefined> {
  const done = new AbortController();
  const timeUp = sleep(clock, milliseconds, AbortSignal.any([done.signal, signal]));
  try {
    return await Promise.race([result, timeUp.then(() => undefined)]);
  } finally {
    done.abort();
  }
}

/** Rejects with the signal's reason once it is aborted; where it is aborted already, `work` is not begun. */
export async function unlessAborted<Value>(signal: AbortSignal, work: () => Promise<Value>): Promise<Value> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work(), aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
