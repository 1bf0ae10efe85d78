/**
 * What an operator sees of an ordered stream: nothing of owners' names, hashes and rings. Pure.
 */
import type { Gap } from './giving-up.ts';
import { hasLiveLease, type KeyState } from './key-state.ts';
import type { HeldMessage } from './order-store.ts';

/**
 * `halted`: stands still at poison. `running`: somebody works on it. `stalled`: whoever worked on it died; the next
 * sweep takes it. `retrying`: its next message failed and is tried again. `ready`: the next sweep, or delivery, goes
 * on with it. `waiting`: for a number that has not come. `idle`: nothing waits.
 */
export type StreamState = 'halted' | 'running' | 'stalled' | 'retrying' | 'ready' | 'waiting' | 'idle';

export type StreamView = Readonly<{
  key: string;
  state: StreamState;
  /** The highest number that is done or given up. */
  last: number;
  /** The number that it waits for, or works on. */
  next: number;
  /** Failures and died processes of `next`. */
  attempts: number;
  /** When a `next` that failed is tried again. */
  nextTryAt?: Date;
  /** Since when messages wait for a number that has not come. */
  waitingSince?: Date;
  /** Why and since when it stands still. */
  poison?: Readonly<{ number: number; code: string; text: string; at: Date }>;
  /** Until when somebody has the key. */
  leasedUntil?: Date;
  epoch?: string;
  /** Numbers that were given up; see `MAX_RANGES` for their limit. */
  skipped: readonly Readonly<{ from: number; to: number }>[];
}>;

export type StreamDetails = StreamView &
  Readonly<{
    /** Messages that are stored. */
    held: number;
    /** The first of them. */
    firstHeld?: number;
    /** The numbers that are missing in front of it. */
    gap?: Gap;
    /** Names the lease of who has the key. */
    leaseOwner?: string;
  }>;

export function streamView(key: string, state: KeyState, nowMs: number): StreamView {
  const { last, attempts, nextTryAt, waitingSince, halted, lease, epoch, skipped } = state;
  return {
    key,
    state: streamState(state, nowMs),
    last,
    next: last + 1,
    attempts,
    ...(nextTryAt > 0 && { nextTryAt: new Date(nextTryAt) }),
    ...(waitingSince !== null && { waitingSince: new Date(waitingSince) }),
    ...(halted !== null && {
      poison: { number: last + 1, code: halted.code, text: halted.text, at: new Date(halted.atMs) },
    }),
    ...(lease !== null && { leasedUntil: new Date(lease.untilMs) }),
    ...(epoch !== null && { epoch }),
    skipped,
  };
}

export function streamDetails(
  view: StreamView,
  state: KeyState,
  held: number,
  first: HeldMessage | undefined,
): StreamDetails {
  const isGap = first !== undefined && first.number > view.next;
  return {
    ...view,
    held,
    ...(first !== undefined && { firstHeld: first.number }),
    ...(isGap && { gap: { from: view.next, to: first.number - 1 } }),
    ...(state.lease !== null && { leaseOwner: state.lease.owner }),
  };
}

function streamState(state: KeyState, nowMs: number): StreamState {
  if (state.halted !== null) return 'halted';
  if (hasLiveLease(state, nowMs)) return 'running';
  if (state.lease !== null) return 'stalled';
  if (state.nextTryAt > nowMs) return 'retrying';
  if (state.readyAt !== null) return 'ready';
  return state.waitingSince === null ? 'idle' : 'waiting';
}
