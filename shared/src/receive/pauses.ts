/**
 * How long a message that failed waits here before it is given back. A subscription without a retry policy delivers what
 * is given back at once, so a handler that fails fast would otherwise run hundreds of times a second.
 *
 * Per message, growing with each failure in a row, and forgotten when it succeeds. A crash forgets all of them: they
 * begin small again. What is known is bounded: of many thousands of messages that fail, the one that failed longest ago
 * is forgotten first.
 */
import { pauseAfter } from '../async/backoff.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { codeOf, refused } from '../errors.ts';
import { askedPauseMs, type Outcome } from '../outcome.ts';

export type RetryOptions = Readonly<{
  /** The pause after the first failure of a message, doubled with each further one (default `100ms`) … */
  min?: Duration;
  /** … up to this (default `60s`). */
  max?: Duration;
}>;

export type Pauses = Readonly<{
  /** Counts a failure, and says how long the message waits: `longestMs` at most. In milliseconds. */
  failed(messageId: string, outcome: Failed, longestMs: number): number;
  /** How often in a row the handler has answered nothing for this message. */
  noOutcomes(messageId: string): number;
  /** The message is done. */
  forget(messageId: string): void;
}>;

export type Failed = Exclude<Outcome, { kind: 'ack' }>;
type Known = Readonly<{ failures: number; noOutcomes: number }>;

const MIN = '100ms';
const MAX = '60s';
/** About 100 bytes each. */
const MOST_KNOWN = 10_000;

/** `roomMs`: how long the client holds a message beyond its handler. Throws ConfigError. */
export function growingPauses(retry: RetryOptions, roomMs: number): Pauses {
  const minMs = toMilliseconds(retry.min ?? MIN, 'retry.min');
  const maxMs = toMilliseconds(retry.max ?? MAX, 'retry.max');
  if (maxMs < minMs)
    throw refused('retry.max', retry.max ?? MAX, `at least retry.min ("${retry.min ?? MIN}")`);
  if (retry.max !== undefined && maxMs > roomMs) {
    throw refused(
      'retry.max',
      retry.max,
      `at most what maxExtension leaves beside handlerTimeout (${roomMs} ms)`,
    );
  }
  const known = new Map<string, Known>();
  return {
    failed(messageId, outcome, longestMs) {
      const { failures, noOutcomes } = known.get(messageId) ?? { failures: 0, noOutcomes: 0 };
      known.delete(messageId);
      const isNone = codeOf(outcome.error) === 'NO_OUTCOME';
      known.set(messageId, { failures: failures + 1, noOutcomes: isNone ? noOutcomes + 1 : 0 });
      for (const oldest of known.keys()) {
        if (known.size <= MOST_KNOWN) break;
        known.delete(oldest);
      }
      const grown = pauseAfter(failures + 1, { minMs, maxMs });
      return Math.max(0, Math.min(Math.max(grown, askedPauseMs(outcome)), longestMs));
    },
    noOutcomes: (messageId) => known.get(messageId)?.noOutcomes ?? 0,
    forget: (messageId) => void known.delete(messageId),
  };
}
