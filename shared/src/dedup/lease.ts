/**
 * Holding a claim while a handler runs: the heartbeat that renews it, and the local belief about how long it is ours.
 *
 * The belief counts from the moment at which the last confirmed write was sent, never from its reply, so it always ends
 * before the store's lease does: by the monotonic clock, and by the wall clock too, because the former stops while the
 * machine is suspended. A renewal that hangs confirms nothing: the lease is lost when the belief ends.
 * One write is in flight at a time, and renewals stop before a claim is completed or released.
 */
import { type Clock, elapsedMs, type Moment, momentOf } from '../clock.ts';
import { leaseLost, TransientError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { ClaimStore, HeldClaim } from './claim-store.ts';
import { deadlineSignal } from './deadline-signal.ts';

export type Lease = Readonly<{
  /** Aborted when the lease is lost, when the delivery's time is over, or when the delivery is aborted. Made when asked for. */
  signal: AbortSignal;
  /** True once this holder may no longer believe that the claim is its own. */
  isLost(): boolean;
  /**
   * Ends the heartbeat until `resume`, waits for a renewal in flight, and answers with the claim as last seen.
   * `certain` is false when the outcome of the last renewal is not known: the record may have changed since.
   */
  pause(): Promise<Readonly<{ held: HeldClaim; certain: boolean }>>;
  resume(): void;
  /** Ends the heartbeat, waits for a renewal in flight, and answers with the claim as last seen. */
  stop(): Promise<HeldClaim>;
}>;

export type LeaseOptions = Readonly<{
  held: HeldClaim;
  /** When the claim was sent; of an adopted one, its owner's first attempt. */
  sentAt: Moment;
  /** Time of the monotonic clock that no renewal goes beyond: the end of the delivery. */
  deliveryDeadline: number;
  parent: AbortSignal;
  log: Log;
}>;

/** Pause before a renewal of unknown outcome is tried again. */
const RETRY_MS = 1_000;

export function holdLease(store: ClaimStore, clock: Clock, options: LeaseOptions): Lease {
  const { deliveryDeadline, log } = options;
  const { leaseMs, key } = options.held.request;
  const pauseMs = Math.min(RETRY_MS, leaseMs / 10);
  /** When the renewal of each nonce was sent. */
  const sent = [options.sentAt];
  let held = options.held;
  /** When the last confirmed write was sent. */
  let confirmedAt = options.sentAt;
  let lost = false;
  let certain = true;
  let nonce = 0;

  const leaseDeadline = (): number => confirmedAt.monotonicMs + leaseMs;
  const isOver = (): boolean => elapsedMs(clock, confirmedAt) >= leaseMs;
  const late = (): unknown => {
    lost ||= isOver();
    return lost
      ? leaseLost('the lease could not be renewed in time while the handler was running')
      : new TransientError('DELIVERY_TIMED_OUT', 'the time of the delivery ran out in the handler');
  };
  const end = (): number => Math.min(leaseDeadline(), deliveryDeadline);
  const guard = deadlineSignal(clock, options.parent, end(), late, isOver);
  let beating = true;
  let cancel = (): void => {};
  let writing: Promise<void> | undefined;

  const renew = async (): Promise<number> => {
    nonce += 1;
    const mine = nonce;
    sent[mine] = momentOf(clock);
    certain = false;
    try {
      const answer = await store.renew(held, mine);
      certain = true;
      if (answer.kind === 'lost') {
        lost = true;
        guard.abort(leaseLost('another delivery has taken the claim over'));
        return 0;
      }
      held = answer.held;
      const writtenAt = sent[answer.nonce] ?? options.sentAt;
      if (writtenAt.monotonicMs > confirmedAt.monotonicMs) confirmedAt = writtenAt;
      guard.moveTo(end());
      return Math.max(writtenAt.monotonicMs + leaseMs / 3 - clock.monotonic(), pauseMs);
    } catch (error) {
      log.warn('a claim could not be renewed', { event: 'dedup_renewal_failed', key, error: String(error) });
      return pauseMs;
    }
  };
  const beat = async (): Promise<void> => {
    const waitMs = await renew();
    writing = undefined;
    if (beating) schedule(waitMs);
  };
  /** A timer and nothing else until it fires: most handlers are done by then. */
  const schedule = (waitMs: number): void => {
    if (guard.isAborted()) return;
    cancel = clock.after(waitMs, () => {
      if (!guard.isAborted()) writing = beat();
    });
  };
  const start = (): void => schedule(leaseDeadline() - (leaseMs * 2) / 3 - clock.monotonic());
  const pause = async () => {
    beating = false;
    cancel();
    if (writing !== undefined) await writing;
    return { held, certain };
  };
  start();

  return {
    get signal() {
      return guard.signal;
    },
    isLost: () => lost || isOver(),
    pause,
    resume() {
      if (beating) return;
      beating = true;
      if (writing === undefined) start();
    },
    async stop() {
      beating = false;
      cancel();
      if (writing !== undefined) await writing;
      guard.close();
      return held;
    },
  };
}
