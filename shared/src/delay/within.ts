/**
 * A bound for calls that may hang. The call itself goes on: whoever uses this must be safe against its late success.
 */
import type { Clock } from '../clock.ts';
import { TransientError } from '../errors.ts';

/** Settles as `call` does, or rejects with TransientError `TIMED_OUT` naming `what` after `milliseconds`. */
export async function within<Value>(
  clock: Clock,
  milliseconds: number,
  what: string,
  call: Promise<Value>,
): Promise<Value> {
  let cancel = (): void => {};
  const timeout = new Promise<never>((_resolve, reject) => {
    cancel = clock.after(milliseconds, () =>
      reject(new TransientError('TIMED_OUT', `${what} did not answer within ${milliseconds} ms`)),
    );
  });
  try {
    return await Promise.race([call, timeout]);
  } finally {
    cancel();
  }
}
