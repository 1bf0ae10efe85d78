/**
 * What the sweep does about numbers that do not come: first they are asked of the publisher's outbox, then the stream
 * waits for them, or goes on without them.
 *
 * Keys are found by the index on the time since which they wait. What a store or an outbox does not answer decides
 * nothing: the next sweep tries again. A sweep that dies after a repair may ask for the same numbers twice.
 */
import { textOf } from '../errors.ts';
import { ATTR, count } from '../telemetry/instruments.ts';
import { hasNotBegun, isOpening } from './counter-start.ts';
import { type Gap, gapOf, markingRepair, mayRepair, skippingGap } from './giving-up.ts';
import { freshKey, type KeyState } from './key-state.ts';
import type { Ports } from './options.ts';
import type { KeyRef } from './order-store.ts';
import type { SweepContext } from './sweep.ts';

export type GapSweep = Readonly<{
  /** Numbers that were published again. */
  repaired: number;
  /** Numbers that were given up. */
  skipped: number;
  /** Keys about which nothing could be decided. */
  failed: number;
}>;

const PAGE = 100;

/** Where an earlier sweep had to stop, so that the oldest gaps do not keep the later ones from their turn for ever. */
type Rest = { after?: string };

export function sweepGaps(ports: Ports): (context: SweepContext) => Promise<GapSweep> {
  const rest: Rest = {};
  return async (context) => {
    const total = { repaired: 0, skipped: 0, failed: 0 };
    // Nothing would be done about what is found.
    if (ports.repair === undefined && ports.gapPolicy === 'wait' && ports.counter === undefined) return total;
    const over = (): boolean => ports.clock.monotonic() >= context.deadline || context.signal.aborted;
    do {
      const { keys, next } = await ports.store.list(context.consumer, {
        state: 'waiting',
        forMs: ports.gapTimeoutMs,
        limit: PAGE,
        ...(rest.after !== undefined && { after: rest.after }),
      });
      for (const key of keys) {
        if (over()) return total;
        try {
          if (!('state' in key)) throw key.error;
          addTo(total, await mendKey(ports, key.ref, key.state, key.nowMs, context));
        } catch (error) {
          total.failed += 1;
          context.log.warn('in order: a gap was not looked after; a later sweep tries again', {
            consumer: key.ref.consumer,
            sequenceKey: key.ref.key,
            error: textOf(error),
          });
        }
      }
      if (next === undefined) delete rest.after;
      else rest.after = next;
    } while (rest.after !== undefined && !over());
    return total;
  };
}

type Mended = Pick<GapSweep, 'repaired' | 'skipped'>;

function addTo(total: { -readonly [Field in keyof Mended]: number }, { repaired, skipped }: Mended): void {
  total.repaired += repaired;
  total.skipped += skipped;
}

/** Does what is to be done about the gap of one key, as it was read, if its time is over. */
export async function mendKey(
  ports: Ports,
  ref: KeyRef,
  state: KeyState,
  nowMs: number,
  context: SweepContext,
): Promise<Mended> {
  const { store, gapTimeoutMs } = ports;
  let [repaired, skipped] = [0, 0];
  // Its head is due, and may be what is missing: a drain comes first.
  if (state.readyAt !== null || !mayRepair(state, gapTimeoutMs, nowMs)) return { repaired, skipped };
  const opens = isOpening(state, state.last + 1);
  // What is older than the subscription is not published again, to everybody, for a consumer that has just come.
  const repair = opens && hasNotBegun(state) ? undefined : ports.repair;
  const gapPolicy = opens ? 'skip' : ports.gapPolicy;
  if (repair === undefined && gapPolicy === 'wait') return { repaired, skipped };
  const missing = gapOf(state, (await store.held(ref, state.last + 1, 1))[0]);
  if (missing === undefined) return { repaired, skipped };
  const base = freshKey(ports.start);
  const query = { from: missing.from, limit: 1 };
  // Once repaired and still not here after its time: what was published did not arrive, or not as this number.
  const isFirst = state.repairedAt === null;
  if (repair !== undefined && (isFirst || gapPolicy === 'wait')) {
    const published = await repair.republish(ref.key, missing);
    repaired = published.length;
    for (const _ of published) count('gapRepairs', { [ATTR.consumer]: ref.consumer });
    if (published.length > 0 || gapPolicy === 'wait') {
      const event = published.length > 0 ? 'order_gap_repaired' : 'order_gap_not_found';
      report(context, ref, missing, event, published.length);
      await store.transact(ref, base, query, markingRepair(missing));
      return { repaired, skipped };
    }
  }
  if (gapPolicy === 'wait') return { repaired, skipped };
  const end = opens ? Math.min(missing.to, (state.opening ?? 1) - 1) : missing.to;
  const decide = skippingGap(gapTimeoutMs, { from: missing.from, to: end });
  const given = await store.transact(ref, base, query, decide);
  if (given === undefined) return { repaired, skipped };
  if (opens && hasNotBegun(state)) {
    // Nothing is missed: it is from before this consumer's time.
    const fields = { event: 'order_stream_began', consumer: ref.consumer, sequenceKey: ref.key };
    context.log.info('in order: a stream that is older than its consumer begins', {
      ...fields,
      first: given.to + 1,
    });
    return { repaired, skipped };
  }
  skipped = given.to - given.from + 1;
  count('gapSkips', { [ATTR.consumer]: ref.consumer });
  report(context, ref, given, 'order_gap_skipped', skipped);
  return { repaired, skipped };
}

function report(context: SweepContext, ref: KeyRef, gap: Gap, event: string, numbers: number): void {
  const isSkip = event === 'order_gap_skipped';
  const fields = { event, consumer: ref.consumer, sequenceKey: ref.key, ...gap, numbers };
  if (isSkip) context.log.error('in order: a stream goes on without numbers that never came', fields);
  else context.log.warn('in order: numbers that never came were looked for at their publisher', fields);
}
