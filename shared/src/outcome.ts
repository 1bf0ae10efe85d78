/**
 * What a handler answers. Nothing else decides about an acknowledgement: exactly one function (`settle`) turns an
 * outcome into ack or nack, and a handler never sees either.
 */
import { type Duration, toMilliseconds } from './duration.ts';
import { PermanentError, TransientError, refused } from './errors.ts';
import type { OutgoingMessage } from './message.ts';

export type AckReason = 'handled' | 'duplicate' | 'scheduled' | 'held' | 'stale' | 'cancelled';

export type Outcome =
  /** Done. The messages in `publish` are published before anything counts the message as done. */
  | Readonly<{ kind: 'ack'; reason: AckReason; publish?: readonly OutgoingMessage[] }>
  /** Deliver it again. */
  | Readonly<{ kind: 'retry'; error: unknown; after?: Duration }>
  /**
   * It can never succeed. `published` says that its dead letter is confirmed;
   * without it the message must not be acknowledged.
   */
  | Readonly<{ kind: 'deadLetter'; error: unknown; published?: true }>;

const REASONS: readonly string[] = [
  'handled',
  'duplicate',
  'scheduled',
  'held',
  'stale',
  'cancelled',
] satisfies readonly AckReason[];

/**
 * Throws ConfigError for a reason that is none (`ack(message)`), or messages that are no list.
 *
 * @example
 * const done = ack();
 * const forwarded = ack('handled', [{ topic: 'out', data: Buffer.from('x'), attributes: {} }]);
 */
export function ack(reason: AckReason = 'handled', publish: readonly OutgoingMessage[] = []): Outcome {
  if (!REASONS.includes(reason)) throw refused('reason', reason, REASONS.join(', '));
  if (!Array.isArray(publish)) throw refused('publish', publish, 'a list of messages');
  return publish.length === 0 ? { kind: 'ack', reason } : { kind: 'ack', reason, publish };
}

/**
 * It is delivered again: at once as the subscription says, or after a pause where `retryLater` or `receive` is outside.
 *
 * @example
 * const outcome = retry(new TransientError('BANK_CLOSED', 'the bank is closed'), '15m');
 */
export const retry = (error: unknown, after?: Duration): Outcome =>
  after === undefined ? { kind: 'retry', error } : { kind: 'retry', error, after };

/**
 * It can never succeed: `deadLettering` outside publishes it to the dead-letter topic.
 *
 * @example
 * const outcome = deadLetter(new PermanentError('NO_SUCH_ORDER', 'the order does not exist'));
 */
export const deadLetter = (error: unknown): Outcome => ({ kind: 'deadLetter', error });

/** What was thrown, as an outcome: only a PermanentError makes a dead letter; everything else is tried again. */
export const outcomeOf = (error: unknown): Outcome =>
  error instanceof PermanentError ? deadLetter(error) : retry(error);

const KINDS: ReadonlySet<unknown> = new Set<Outcome['kind']>(['ack', 'retry', 'deadLetter']);

export const isOutcome = (value: unknown): value is Outcome =>
  typeof value === 'object' && value !== null && 'kind' in value && KINDS.has(value.kind);

/** The pause that a failed message asks for, in milliseconds; 0 for what is no length of time. */
export function askedPauseMs(outcome: Exclude<Outcome, { kind: 'ack' }>): number {
  const after = outcome.kind === 'retry' && outcome.after !== undefined ? lengthOf(outcome.after) : 0;
  return Math.max(after, askedPauseOf(outcome.error));
}

/** The pause that an error asks for with `retryAfterMs`. */
export const askedPauseOf = (error: unknown): number => {
  const wanted = error instanceof TransientError ? (error.retryAfterMs ?? 0) : 0;
  return Number.isNaN(wanted) ? 0 : wanted;
};

/** A handler's mistake here must not keep the failure itself from being stored. */
function lengthOf(after: Duration): number {
  try {
    return toMilliseconds(after);
  } catch {
    return 0;
  }
}
