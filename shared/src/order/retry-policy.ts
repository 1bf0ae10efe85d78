/**
 * What happens to a key whose head fails: the one place that decides it.
 *
 * The key waits and its head is tried again after an exponential pause, up to `maxAttempts` times, or not at all when
 * the handler calls it a dead letter. Then it is poison: the key stands still (`halt`), or the number is
 * dead-lettered and recorded as given up (`skip`). The failure is logged as an error each time.
 */
import { type Duration, toMilliseconds } from '../duration.ts';
import { countsAsAttempt, PermanentError, TransientError } from '../errors.ts';
import type { Outcome } from '../outcome.ts';

export type Failure = Readonly<{
  error: unknown;
  /** Whether it says something about the message: a lost lease or a store that is down does not. */
  counts: boolean;
  /** It can never succeed. */
  permanent: boolean;
  /** Its dead letter is confirmed already. */
  published: boolean;
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

/** Whether the head is given up as poison. `attempts` includes this failure, where it counts. */
export const isPoison = (maxAttempts: number, attempts: number, failure: Failure): boolean =>
  failure.permanent || (failure.counts && attempts >= maxAttempts);

/** A head whose process died, or lost its lease, so often that it is not started again. */
export const exhausted = (attempts: number): Failure => ({
  error: new PermanentError(
    'ATTEMPTS_EXHAUSTED',
    `the message was started ${attempts} times; the last time its process died or lost its lease`,
  ),
  counts: false,
  permanent: true,
  published: false,
  afterMs: 0,
});

/** An outcome that is not an ack, as a failure of the head. An aborted run never counts. */
export function failureOf(outcome: Exclude<Outcome, { kind: 'ack' }>, aborted: boolean): Failure {
  const asked = outcome.kind === 'retry' && outcome.after !== undefined ? lengthOf(outcome.after) : 0;
  const wanted = outcome.error instanceof TransientError ? (outcome.error.retryAfterMs ?? 0) : 0;
  return {
    error: outcome.error,
    counts: !aborted && countsAsAttempt(outcome.error),
    permanent: !aborted && outcome.kind === 'deadLetter',
    published: outcome.kind === 'deadLetter' && outcome.published === true,
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
