/**
 * One time budget for all the calls of one operation on a claim.
 */
import { bounded } from '../bounded.ts';
import type { Clock } from '../clock.ts';
import { storeUnavailable } from '../errors.ts';

/** Runs `call`, for at most what is left of the budget. */
export type Within = <Value>(call: () => Promise<Value>) => Promise<Value>;

/**
 * When it is used up, the call under way is given up and no other is begun: TransientError `STORE_UNAVAILABLE`. The
 * call may still be applied later; the rules of the claim protocol expect that.
 */
export function budget(clock: Clock, milliseconds: number, what: string): Within {
  const end = clock.monotonic() + milliseconds;
  const tooSlow = (): Error =>
    storeUnavailable(`${what} was not answered within ${milliseconds} ms; whether it was done is not known`);
  return (call) => {
    const left = end - clock.monotonic();
    return left <= 0 ? Promise.reject(tooSlow()) : bounded(clock, left, call, tooSlow);
  };
}
