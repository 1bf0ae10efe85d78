/**
 * The sweep of in-order delivery: mends or skips gaps whose time is over, retries heads that failed, takes over keys
 * whose owner died, and goes on with keys that were let go of with something ready. Gaps are found by the index on
 * `waitingSince`, all the rest by one: `readyAt` not after now. Keys that stand still are in neither.
 *
 * Several sweeps may run at once, beside deliveries: each key is taken by one of them. A sweep that dies leaves
 * leases that expire.
 */
import { codeOf, textOf } from '../errors.ts';
import type { Context, Handler } from '../handler.ts';
import { drainIfDue } from './drain.ts';
import { reportOldGaps } from './old-gaps.ts';
import { type InOrderOptions, type Ports, portsOf } from './options.ts';
import type { OrderStore, ReadyKey } from './order-store.ts';
import { type GapSweep, sweepGaps } from './sweep-gaps.ts';
import { ATTR, gauge, isMeasured } from '../telemetry/instruments.ts';

export type SweepResult = Readonly<{
  /** Keys that were due. */
  ready: number;
  /** Keys that this sweep took; the others had gone to somebody else. */
  taken: number;
  /** Numbers that were run and counted as done. */
  drained: number;
  /** Keys that were given up because the store did not answer; they stay due. */
  failed: number;
  /** Missing numbers that their publisher's outbox had, and that were published again. */
  repaired: number;
  /** Missing numbers that were given up. */
  skipped: number;
}>;

/** A delivery's context without its source: what is held runs under the source that it came through. */
export type SweepContext = Omit<Context, 'source' | 'fencingToken' | 'possibleDuplicate'>;

/** Keys worked on at once. A slow handler of one key must not keep the others waiting for the next sweep. */
const CONCURRENCY = 8;
/** Keys per query; more where a sweep meets a whole page that it cannot take. */
const PAGE = 100;

/**
 * `options` and `next` are those of the middleware: `inOrder(store, options)(next)`.
 * Call it every minute in production (Cloud Scheduler), more often where a failed head should be tried sooner.
 * It ends by the context's deadline. Rejects with `STORE_UNAVAILABLE` when the store cannot be asked.
 */
export function sweepOrder(
  store: OrderStore,
  options: InOrderOptions,
  next: Handler,
): (context: SweepContext) => Promise<SweepResult> {
  const ports = portsOf(store, options);
  const gaps = sweepGaps(ports);
  return async (context) => {
    // First, so that what a gap kept waiting runs in this very sweep.
    const total = { ready: 0, taken: 0, drained: 0, ...(await mended(gaps, context)) };
    // Keys that stay due because they could not be taken. They are answered again, in front of all others.
    const passed = new Set<string>();
    let limit = PAGE;
    while (ports.clock.monotonic() < context.deadline && !context.signal.aborted) {
      const page = await store.ready(context.consumer, limit);
      const before = total.taken;
      const fresh = page.filter(({ ref }) => !passed.has(ref.key));
      await sweepPage(ports, fresh, next, context, total, passed);
      if (page.length < limit) break;
      if (total.taken === before) limit *= 2;
    }
    await reportOldGaps(ports, context);
    await measure(ports, context);
    return total;
  };
}

/** Whatever is wrong with gaps (an index that was turned off, for one) does not keep what is due from its turn. */
async function mended(
  gaps: (context: SweepContext) => Promise<GapSweep>,
  context: SweepContext,
): Promise<GapSweep> {
  try {
    return await gaps(context);
  } catch (error) {
    context.log.error('in order: gaps were not looked for; the next sweep tries again', {
      consumer: context.consumer,
      code: codeOf(error),
      error: textOf(error),
    });
    return { repaired: 0, skipped: 0, failed: 1 };
  }
}

/** Streams of each kind whose messages are counted, the oldest first: what more of them hold is not in the sum. */
const MEASURED = 10;

/**
 * Only where somebody measures: two counts (a read for each 1,000 keys), the oldest streams that wait or stand still,
 * and how many messages each of these holds (a read for each 1,000).
 */
async function measure({ store }: Ports, { consumer, log }: SweepContext): Promise<void> {
  if (!isMeasured()) return;
  try {
    const [waiting, halted] = await Promise.all(
      (['waiting', 'halted'] as const).map((state) => store.list(consumer, { state, limit: MEASURED })),
    );
    const troubled = [...(waiting?.keys ?? []), ...(halted?.keys ?? [])].filter((key) => 'state' in key);
    const counts = await Promise.all(troubled.map(({ ref }) => store.countHeld(ref)));
    const [oldest] = waiting?.keys ?? [];
    const since = oldest !== undefined && 'state' in oldest ? oldest.state.waitingSince : null;
    const ageMs = oldest !== undefined && 'state' in oldest && since !== null ? oldest.nowMs - since : 0;
    const attributes = { [ATTR.consumer]: consumer };
    gauge(
      'heldMessages',
      counts.reduce((sum, held) => sum + held, 0),
      attributes,
    );
    gauge('blockedStreams', await store.count(consumer, 'halted'), attributes);
    gauge('waitingStreams', await store.count(consumer, 'waiting'), attributes);
    gauge('oldestGap', Math.max(0, ageMs) / 1_000, attributes);
  } catch (error) {
    log.warn('in order: the state of the streams was not measured', { error: textOf(error) });
  }
}

type Total = { -readonly [Field in keyof SweepResult]: SweepResult[Field] };

async function sweepPage(
  ports: Ports,
  page: readonly ReadyKey[],
  next: Handler,
  context: SweepContext,
  total: Total,
  passed: Set<string>,
): Promise<void> {
  const readAt = ports.clock.monotonic();
  const queue = page.values();
  const work = async (): Promise<void> => {
    for (const key of queue) {
      if (ports.clock.monotonic() >= context.deadline || context.signal.aborted) return;
      total.ready += 1;
      try {
        if (!('state' in key)) throw key.error;
        const seen = { ...key, storeOffsetMs: key.nowMs - readAt };
        const drained = await drainIfDue(ports, key.ref, seen, next, { ...context, source: '' });
        if (drained === undefined) {
          passed.add(key.ref.key);
          continue;
        }
        total.taken += 1;
        total.drained += drained;
      } catch (error) {
        passed.add(key.ref.key);
        total.failed += 1;
        context.log.warn('in order: a key was not swept; the next sweep tries again', {
          consumer: key.ref.consumer,
          sequenceKey: key.ref.key,
          error: textOf(error),
        });
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, page.length) }, work));
}
