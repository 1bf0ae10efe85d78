/**
 * What happens to a key whose head fails: the one place that decides it.
 *
 * The key waits and its head is tried again after an exponential pause, without a limit, also when the handler calls
 * it a dead letter: giving one number up would leave a hole that everything behind it runs past. Nothing is lost or
 * passed over; the failure is logged as an error each time.
 */
import { type Duration, toMilliseconds } from '../duration.ts';
import { countsAsAttempt, TransientError } from '../errors.ts';
import type { Outcome } from '../outcome.ts';

export type Failure = Readonly<{
  error: unknown;
  /** Whether it says something about the message: a lost lease or a store that is down does not. */
  counts: boolean;
  /** The handler asked for at least this pause. */
  afterMs: number;
}>;

/** Ten years, as for a delay. A store's times end in the year 9999: a later next try could not be written. */
const LONGEST_PAUSE_MS = 315_360_000_000;

export type HeadRetry = Readonly<{ attempts: number; pauseMs: number }>;

export function headRetry(
  pauses: Readonly<{ retryMinMs: number; retryMaxMs: number }>,
  attemptsBefore: number,
  failure: Failure,
): HeadRetry {
  const attempts = attemptsBefore + (failure.counts ? 1 : 0);
  const pauseMs = Math.min(pauses.retryMaxMs, pauses.retryMinMs * 2 ** Math.max(attempts - 1, 0));
  return { attempts, pauseMs: Math.min(Math.max(pauseMs, failure.afterMs), LONGEST_PAUSE_MS) };
}

/** An outcome that is not an ack, as a failure of the head. An aborted run never counts. */
export function failureOf(outcome: Exclude<Outcome, { kind: 'ack' }>, aborted: boolean): Failure {
  const asked = outcome.kind === 'retry' && outcome.after !== undefined ? lengthOf(outcome.after) : 0;
  const wanted = outcome.error instanceof TransientError ? (outcome.error.retryAfterMs ?? 0) : 0;
  return {
    error: outcome.error,
    counts: !aborted && countsAsAttempt(outcome.error),
    afterMs: Math.max(asked, Number.isNaN(wanted) ? 0 : wanted),
  };
}

/** What is no length of time asks for nothing: it must not keep the failure itself from being stored. */
function lengthOf(after: Duration): number {
  try {
    return toMilliseconds(after);
  } catch {
    return 0;
  }
}
