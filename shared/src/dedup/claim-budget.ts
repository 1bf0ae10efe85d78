/**
 * One time budget for all the calls of one operation on a claim. A call that is abandoned may still be applied later;
 * the rules of the claim protocol expect that.
 */
import { type Budget, budget } from '../async/time-limit.ts';
import type { Clock } from '../clock.ts';
import { storeUnavailable } from '../errors.ts';

/** Used up: TransientError `STORE_UNAVAILABLE`, naming `what`. */
export const claimBudget = (clock: Clock, milliseconds: number, what: string): Budget =>
  budget(clock, milliseconds, () =>
    storeUnavailable(`${what} was not answered within ${milliseconds} ms; whether it was done is not known`),
  );
