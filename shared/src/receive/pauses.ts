/**
 * How long a message that failed waits here before it is given back. A subscription without a retry policy delivers what
 * is given back at once, so a handler that fails fast would otherwise run hundreds of times a second.
 *
 * Per message, growing with each failure in a row, and forgotten when it succeeds. A crash forgets all of them: they
 * begin small again. What is known is bounded: of many thousands of messages that fail, the one that failed longest ago
 * is forgotten first.
 */
import { pauseAfter } from '../async/backoff.ts';
import { codeOf, refused } from '../errors.ts';
import { askedPauseMs, type Outcome } from '../outcome.ts';
import { type RetryPauses, retryPauses } from '../options.ts';

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
export function growingPauses(retry: RetryPauses, roomMs: number): Pauses {
  const { minMs, maxMs } = retryPauses(retry, MIN, MAX);
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
