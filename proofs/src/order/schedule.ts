/**
 * The plan of a simulation, and the context of its deliveries.
 */
import type { Context } from '../../../shared/src/handler.ts';
import { silent } from '../../../shared/src/log.ts';
import type { VirtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import type { StreamRef } from '../../../shared/src/order/stream-store.ts';
import type { TrafficPlan } from './traffic.ts';

export type Schedule = TrafficPlan &
  Readonly<{
    seed: number;
    workers: number;
    /** Share of store calls that go wrong while faults are on. */
    faultRate: number;
    onPoison: 'block' | 'skip';
    /** Whether an operator looks after streams that are blocked. */
    operated: boolean;
    onGap: 'wait' | 'skip';
    /** Whether the outbox still has what was dropped. */
    repairs: boolean;
    /** Whether held messages wait in the payload store. */
    large: boolean;
    /** Whether wake-ups come, so that not all is left to the sweep. */
    woken: boolean;
    /** Messages are published in random order over this time. */
    spreadMs: number;
    /**
     * Otherwise the first message of each number comes at once and in order, and only repeats and copies are spread.
     */
    inTurn: boolean;
    /** Where processes die more often than elsewhere. */
    crashSite?: string;
  }>;

export const CONSUMER = 'simulated';
export const SOURCE = 'sub';
export const refOf = (key: string): StreamRef => ({ consumer: CONSUMER, source: SOURCE, key });
/** More than the counted failures of a message that succeeds in the end: of at most five, the last three. */
export const MAX_ATTEMPTS = 4;
/** One error for all: each new one would cost a stack trace. */
const OVER = new Error('the time of the delivery is over');
export function contextFor(clock: VirtualClock, limitMs: number, consumer = CONSUMER): Context {
  const controller = new AbortController();
  const deadline = clock.monotonic() + limitMs;
  clock.after(limitMs, () => controller.abort(OVER));
  return {
    consumer,
    source: SOURCE,
    now: clock.now,
    deadline,
    signal: controller.signal,
    log: silent,
  };
}
