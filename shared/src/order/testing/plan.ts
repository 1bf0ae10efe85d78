/**
 * What a simulation is drawn from, and the context that its deliveries have.
 */
import type { Context } from '../../handler.ts';
import { silent } from '../../log.ts';
import type { VirtualClock } from '../../testing/virtual-clock.ts';
import type { TrafficPlan } from './traffic.ts';

export type Plan = TrafficPlan &
  Readonly<{
    seed: number;
    workers: number;
    /** Share of store calls that go wrong while faults are on. */
    faultRate: number;
    poison: 'halt' | 'skip';
    /** Whether somebody looks after keys that stand still. */
    operated: boolean;
    gaps: 'wait' | 'skip';
    /** Whether the outbox still has what was dropped. */
    repairs: boolean;
    /** Whether held messages wait in the payload room. */
    large: boolean;
    /** Whether wake-ups come, so that not all is left to the sweep. */
    woken: boolean;
    /** Whether a head that failed is tried again almost at once. */
    atOnce: boolean;
    /** Messages are published in random order over this time. */
    spreadMs: number;
    /** Or: the first of each number at once, in their turn, and only what comes again or under the same number spread. */
    inTurn: boolean;
    /** Where processes die more often than elsewhere. */
    crashSite?: string;
  }>;

export const CONSUMER = 'simulated';
/** More than the counted failures of a message that succeeds in the end: of at most five, the last three. */
export const MAX_ATTEMPTS = 4;
/** One for all: each of its own would cost a stack trace. */
const OVER = new Error('the time of the delivery is over');
export function contextFor(clock: VirtualClock, limitMs: number, consumer = CONSUMER): Context {
  const controller = new AbortController();
  const deadline = clock.monotonic() + limitMs;
  clock.after(limitMs, () => controller.abort(OVER));
  return {
    consumer,
    source: 'sub',
    now: clock.now,
    deadline,
    signal: controller.signal,
    log: silent,
  };
}
