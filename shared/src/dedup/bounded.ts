/**
 * A bound on how long a store may take. Clients wait for minutes when their server is down; a delivery cannot.
 *
 * The call that is given up is not undone: it may still be applied later. The rules of the claim protocol expect that.
 */
import type { Clock } from '../clock.ts';
import { storeUnavailable } from '../errors.ts';

/** Runs `call`, for at most what is left of the budget. */
export type Within = <Value>(call: () => Promise<Value>) => Promise<Value>;

/**
 * One budget for all the calls of one operation. When it is used up, the call under way is given up and no other is
 * begun: TransientError `STORE_UNAVAILABLE`.
 */
export function budget(clock: Clock, milliseconds: number, what: string): Within {
  const end = clock.monotonic() + milliseconds;
  return (call) => {
    const left = end - clock.monotonic();
    if (left <= 0) return Promise.reject(tooSlow(what, milliseconds));
    return new Promise((resolve, reject) => {
      const cancel = clock.after(left, () => reject(tooSlow(what, milliseconds)));
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
  };
}

const tooSlow = (what: string, milliseconds: number): Error =>
  storeUnavailable(`${what} was not answered within ${milliseconds} ms; whether it was done is not known`);
