/**
 * The relay's decisions, pure: whether a stream may be taken, which row is next, and what is written about a failure.
 */
import { pauseAfter } from '../async/backoff.ts';
import { codeOf, PermanentError, textOf } from '../errors.ts';
import { askedPauseOf } from '../outcome.ts';
import type { RowFailure, StreamRow, StreamState, StreamView, StreamWrite } from './outbox-store.ts';

export const UNKNOWN: StreamState = {
  sent: 0,
  owner: undefined,
  untilMs: 0,
  attempts: 0,
  nextTryMs: 0,
  blocked: undefined,
};

export type Availability = 'free' | 'busy' | 'waiting' | 'blocked';

/** Judged on the store's clock alone. An owner whose lease is over does not count: it stops before that. */
export function availabilityOf({ state = UNKNOWN, nowMs }: StreamView): Availability {
  if (state.blocked !== undefined) return 'blocked';
  if (state.owner !== undefined && state.untilMs > nowMs) return 'busy';
  return state.nextTryMs > nowMs ? 'waiting' : 'free';
}

/**
 * `missing`: a row between the last one sent and this one is gone: only an operator can have removed
 * it. Publishing on would leave the consumer with a permanent gap without a trace.
 */
export function next({ place, isSent }: StreamRow, sent: number): 'publish' | 'skip' | 'missing' {
  if (isSent) return 'skip';
  return place.after > sent ? 'missing' : 'publish';
}

export type Pauses = Readonly<{ retryMinMs: number; retryMaxMs: number }>;

/** After the `attempts`-th failure in a row. */
export function pauseOf(attempts: number, error: unknown, { retryMinMs, retryMaxMs }: Pauses): number {
  return Math.max(pauseAfter(attempts, { minMs: retryMinMs, maxMs: retryMaxMs }), askedPauseOf(error));
}

/** Longest text of an error that is stored. */
const TEXT_CHARACTERS = 1_000;

/** Undefined for what may succeed later. */
export function permanentFailureOf(number: number, error: unknown): RowFailure | undefined {
  if (!(error instanceof PermanentError)) return undefined;
  return { number, code: codeOf(error), text: textOf(error).slice(0, TEXT_CHARACTERS) };
}

/** The stream released with `sent` as its last number; `failure` is of the number after it. */
export function released(
  before: StreamState,
  sent: number,
  failure: Readonly<{ number: number; error: unknown }> | undefined,
  nowMs: number,
  pauses: Pauses,
): StreamWrite {
  const free = { sent, owner: undefined, leaseMs: 0, parkedMs: before.parkedMs };
  if (failure === undefined) return { ...free, attempts: 0, nextTryMs: 0, blocked: undefined };
  const blocked = permanentFailureOf(failure.number, failure.error);
  const attempts = (sent > before.sent ? 0 : before.attempts) + 1;
  const pauseMs = blocked === undefined ? pauseOf(attempts, failure.error, pauses) : 0;
  return { ...free, attempts, nextTryMs: pauseMs === 0 ? 0 : nowMs + pauseMs, blocked };
}
