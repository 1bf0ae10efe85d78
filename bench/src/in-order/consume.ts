/**
 * Consumes what waits for one key, in one of the ways, and says how many deliveries and how much time it took. Throws when a
 * number is missing, and `OutOfOrder` when its first run is not in its turn.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { ack, compose, type Middleware, TransientError } from 'pubsub-guarantees';
import { pulled, type Receiving } from './receiving.ts';
import { waitingStream } from './stream.ts';
import type { Way } from './ways.ts';
import type { World } from './world.ts';

export type Consumed = Readonly<{
  /** From the first delivery at the endpoint to the end of the last handler. */
  elapsedMs: number;
  perSecond: number;
  deliveriesPerMessage: number;
  /** Deliveries at the endpoint at the same time, at most. */
  outstanding: number;
  /** Fewer than there are where the time was over. */
  handled: number;
}>;

export type ConsumeOptions = Readonly<{
  /** Each so-manieth message fails once. */
  failEvery?: number;
  /** What the handler does for a message (default: nothing). */
  work?: (number: number) => Promise<void>;
  /** Ends the run, which then counts as far as it got (default: an error after 120 s). */
  limitMs?: number;
  /** How messages come (default: streaming pull). */
  receiving?: Receiving;
}>;

export class OutOfOrder extends Error {}

const LIMIT_MS = 120_000;
/** Without a delivery for so long, nothing comes any more. */
const QUIET_MS = 100;

export async function consume(
  world: World,
  way: Way,
  order: readonly number[],
  { failEvery = Number.POSITIVE_INFINITY, work, limitMs, receiving = pulled }: ConsumeOptions = {},
): Promise<Consumed> {
  const { subscription } = await waitingStream(world, order, way.isOrdered);
  const started = way.start(world);
  const done = Promise.withResolvers<void>();
  const failed = new Set<number>();
  let [handled, deliveries, firstAt, lastAt, latestAt] = [0, 0, 0, 0, 0];
  let [inFlight, outstanding] = [0, 0];
  const counting: Middleware = (next) => async (message, context) => {
    latestAt = performance.now();
    if (deliveries === 0) firstAt = latestAt;
    deliveries += 1;
    inFlight += 1;
    outstanding = Math.max(outstanding, inFlight);
    try {
      return await next(message, context);
    } finally {
      inFlight -= 1;
    }
  };
  const handler = compose(
    async (message) => {
      const number = Number(message.attributes['sequence']);
      if (number % failEvery === 0 && !failed.has(number)) {
        failed.add(number);
        throw new TransientError('BENCH', 'this one fails once');
      }
      // A second run would be a repeat after a lost lease: none is expected here.
      if (number !== handled + 1) done.reject(new OutOfOrder(`${way.name}: ${number} ran after ${handled}`));
      await work?.(number);
      handled = number;
      lastAt = performance.now();
      if (handled === order.length) done.resolve();
      return ack();
    },
    [counting, started.middleware],
  );
  const receiver = await receiving.start(subscription, handler);
  const over = new AbortController();
  const late = wait(limitMs ?? LIMIT_MS, 'late', { signal: over.signal }).catch(() => 'late');
  try {
    const ended = await Promise.race([done.promise, late]);
    if (ended === 'late' && limitMs === undefined) {
      throw new Error(`${way.name}: ${handled} of ${order.length} after ${LIMIT_MS / 1_000} s`);
    }
    if (ended === 'late') lastAt = performance.now();
    else while (performance.now() - latestAt < QUIET_MS) await wait(QUIET_MS / 4);
  } finally {
    over.abort();
    await receiver.close();
    await started.stop();
  }
  const elapsedMs = lastAt - firstAt;
  return {
    elapsedMs,
    perSecond: (handled / elapsedMs) * 1_000,
    deliveriesPerMessage: deliveries / order.length,
    outstanding,
    handled,
  };
}
