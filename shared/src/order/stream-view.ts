/**
 * What an operator sees of a stream: nothing of hashes, and of a lease only its end and its name. Pure.
 */
import type { Gap } from './gaps.ts';
import { hasLiveLease, type StreamState } from './stream-state.ts';
import type { HeldMessage, StreamRef } from './stream-store.ts';

/**
 * `blocked`: stopped at poison. `running`: a process works on it. `stalled`: that process died, and the next sweep takes
 * over. `retrying`: its next message failed and is tried again. `due`: the next sweep, or delivery, goes on with it.
 * `waiting`: for a number that has not come. `idle`: nothing waits.
 */
export type StreamStatus = 'blocked' | 'running' | 'stalled' | 'retrying' | 'due' | 'waiting' | 'idle';

export type StreamView = Readonly<{
  key: string;
  /** Empty where a stream spans all sources of its consumer. */
  source: string;
  status: StreamStatus;
  /** The highest number that is done or skipped. */
  last: number;
  /** The number that it waits for, or works on. */
  next: number;
  /** Messages that are held. */
  held: number;
  /** Failures and died processes of `next`. */
  attempts: number;
  /** When a `next` that failed is tried again. */
  nextTryAt?: Date;
  /** Since when messages wait for a number that has not come. */
  waitingSince?: Date;
  /** Why, and since when, it is blocked. */
  poison?: Readonly<{ number: number; code: string; text: string; at: Date }>;
  /** Until when a process has the stream. */
  leasedUntil?: Date;
  epoch?: string;
  /** Numbers that were skipped; the oldest of more than 100 ranges are joined. */
  skipped: readonly Readonly<{ from: number; to: number }>[];
}>;

export type StreamDetails = StreamView &
  Readonly<{
    /** The first number that is held. */
    firstHeld?: number;
    /** The numbers that are missing in front of it. */
    gap?: Gap;
    /** Names the lease of the process that has the stream. */
    leaseOwner?: string;
    /** Messages that were counted, where they are other than `held` says: another program has changed them. */
    counted?: number;
  }>;

export function streamView({ key, source }: StreamRef, state: StreamState, nowMs: number): StreamView {
  const { last, held, attempts, nextTryAt, waitingSince, blocked, lease, epoch, skipped } = state;
  return {
    key,
    source,
    status: statusOf(state, nowMs),
    last,
    next: last + 1,
    held,
    attempts,
    ...(nextTryAt > 0 && { nextTryAt: new Date(nextTryAt) }),
    ...(waitingSince !== null && { waitingSince: new Date(waitingSince) }),
    ...(blocked !== null && {
      poison: { number: last + 1, code: blocked.code, text: blocked.text, at: new Date(blocked.atMs) },
    }),
    ...(lease !== null && { leasedUntil: new Date(lease.untilMs) }),
    ...(epoch !== null && { epoch }),
    skipped,
  };
}

export function streamDetails(
  view: StreamView,
  state: StreamState,
  counted: number,
  first: HeldMessage | undefined,
): StreamDetails {
  const isGap = first !== undefined && first.number > view.next;
  return {
    ...view,
    ...(first !== undefined && { firstHeld: first.number }),
    ...(isGap && { gap: { from: view.next, to: first.number - 1 } }),
    ...(state.lease !== null && { leaseOwner: state.lease.owner }),
    ...(counted !== state.held && { counted }),
  };
}

function statusOf(state: StreamState, nowMs: number): StreamStatus {
  if (state.blocked !== null) return 'blocked';
  if (hasLiveLease(state, nowMs)) return 'running';
  if (state.lease !== null) return 'stalled';
  if (state.nextTryAt > nowMs) return 'retrying';
  if (state.readyAt !== null) return 'due';
  return state.waitingSince === null ? 'idle' : 'waiting';
}
