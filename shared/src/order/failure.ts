/**
 * Judges a number that has failed, the one place that does, and publishes the dead letter of poison. What becomes of the
 * stream then: `holdOrBlock` in settle.ts, and the end of a batch in batch.ts.
 *
 * The stream waits, and the number is tried again after an exponential pause, up to `retry.maxAttempts` starts, or not at
 * all when the handler calls it a dead letter. Then it is poison. Its dead letter is published before anything counts
 * the number as passed: a crash in between publishes it a second time, and a publish that fails leaves the number where
 * it is.
 */
import { pauseAfter } from '../async/backoff.ts';
import { codeOf, countsAsAttempt, PermanentError, textOf } from '../errors.ts';
import { compose, type Context, type Handler } from '../handler.ts';
import type { Message } from '../message.ts';
import { cutText } from '../dead-letter/cut-text.ts';
import { askedPauseMs, deadLetter, type Outcome } from '../outcome.ts';
import type { StreamPolicy } from './options.ts';
import { load } from './stored-form.ts';
import type { Blocked } from './stream-state.ts';
import type { HeldMessage, StreamRef } from './stream-store.ts';

export type Failure = Readonly<{
  error: unknown;
  /** Whether it says something about the message: a lost lease, or a store that is down, does not. */
  counts: boolean;
  /** It can never succeed. */
  permanent: boolean;
  /** Its dead letter is confirmed already. */
  published: boolean;
  /** The handler asked for at least this pause. */
  afterMs: number;
}>;

export type Verdict = Readonly<{
  failure: Failure;
  /** Counted attempts, with this one where it counts. */
  attempts: number;
  /** Until the next try. */
  pauseMs: number;
  /** The number is not tried again. */
  isPoison: boolean;
}>;

/** Ten years, as for a delay. A store's times end in the year 9999: a later next try could not be written. */
const LONGEST_PAUSE_MS = 315_360_000_000;

export function judgeFailure(
  policy: Pick<StreamPolicy, 'retryMinMs' | 'retryMaxMs' | 'maxAttempts'>,
  attemptsBefore: number,
  failure: Failure,
): Verdict {
  const { retryMinMs, retryMaxMs, maxAttempts } = policy;
  const attempts = attemptsBefore + (failure.counts ? 1 : 0);
  const pauseMs = pauseAfter(attempts, { minMs: retryMinMs, maxMs: retryMaxMs });
  return {
    failure,
    attempts,
    pauseMs: Math.min(Math.max(pauseMs, failure.afterMs), LONGEST_PAUSE_MS),
    isPoison: failure.permanent || (failure.counts && attempts >= maxAttempts),
  };
}

/** A number whose processes died, or lost their leases, so often that it is not started again. */
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

/** An outcome that is not an ack, as a failure. A run that was aborted never counts. */
export function failureOf(outcome: Exclude<Outcome, { kind: 'ack' }>, aborted: boolean): Failure {
  return {
    error: outcome.error,
    counts: !aborted && countsAsAttempt(outcome.error) && !isMissingHere(outcome.error),
    permanent: !aborted && outcome.kind === 'deadLetter' && !isMissingHere(outcome.error),
    published: outcome.kind === 'deadLetter' && outcome.published === true,
    afterMs: askedPauseMs(outcome),
  };
}

/** This process lacks a setting that another one has: it says nothing about the message. */
const isMissingHere = (error: unknown): boolean =>
  error instanceof PermanentError && error.code === 'NO_PAYLOAD_STORE';

/** Publishes the dead letter of a message. What it answers says whether that is confirmed. */
export const deadLetterPublisher = (
  { deadLetters }: Pick<StreamPolicy, 'deadLetters'>,
  error: unknown,
): ((message: Message, context: Context) => Promise<Outcome>) => {
  const publishDeadLetter: Handler = compose(async () => deadLetter(error), [deadLetters]);
  return publishDeadLetter;
};

export const isDeadLettered = (outcome: Outcome): boolean =>
  outcome.kind === 'deadLetter' && outcome.published === true;

/**
 * What is held; or, for bytes that no reader understands or that are gone, a message under the name of its number.
 * Rejects with TransientError where the payload store does not answer, and `NO_PAYLOAD_STORE` where there is none.
 */
export async function loadHeld(
  payloads: StreamPolicy['payloads'],
  ref: StreamRef,
  held: HeldMessage,
): Promise<Message> {
  try {
    return await load(payloads, held);
  } catch (error) {
    if (!(error instanceof PermanentError) || error.code === 'NO_PAYLOAD_STORE') throw error;
    return {
      id: `${ref.key}/${held.number}`,
      data: Buffer.from(held.message),
      attributes: { sequence: String(held.number), sequenceKey: ref.key },
      publishTime: new Date(0),
    };
  }
}

/** The text is for operators who look at the stream; the whole of it is in the log. */
export const blockedBy = (error: unknown, atMs: number): Blocked => ({
  code: cutText(codeOf(error), 100),
  text: cutText(textOf(error), 300),
  atMs,
});
