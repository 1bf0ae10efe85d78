/**
 * The sweep of in-order delivery: repairs or skips gaps whose time is over, and visits the streams that are due: next
 * messages that failed, streams whose process died, and streams that were released with something left to do. Streams
 * that are blocked are none of these.
 *
 * Several sweeps may run at once, beside deliveries: each stream is taken by one of them. A sweep that dies leaves
 * leases that expire.
 */
import { forEachAtMost } from '../async/pool.ts';
import { codeOf, textOf } from '../errors.ts';
import type { Handler } from '../handler.ts';
import type { Sweep } from '../sweep.ts';
import { ATTR, gauge, isMeasured } from '../telemetry/instruments.ts';
import { closeGap, closesGaps } from './gaps.ts';
import { sweepContext } from '../options.ts';
import type { StreamPolicy } from './options.ts';
import { logFieldsOf } from './report.ts';
import type { ListedStream, StreamAdmin, StreamQuery } from './stream-store.ts';
import type { VisitContext, VisitStream } from './mailbox.ts';

/** `due`: streams that were due. `done`: those that this sweep worked on; another process had the others, or had done what was due. */
export type StreamSweep = Sweep<{
  /** Numbers that ran and are counted as done. */
  drained: number;
  /** Missing numbers that their publisher's outbox had, and that were published again. */
  repaired: number;
  /** Missing numbers that were skipped. */
  skipped: number;
}>;

/** Streams worked on at once. A slow handler of one must not keep the others waiting for the next sweep. */
const CONCURRENCY = 8;
/** The oldest waiting, and blocked, streams whose held messages are counted: what more of them hold is not in the sum. */
const MEASURED = 10;

/**
 * A sweep for each handler. Call it every minute in production (Cloud Scheduler), more often where a failed message
 * should be tried sooner. It ends by the context's deadline, and the next one goes on where it ended. Rejects with
 * `STORE_UNAVAILABLE` when the store cannot be asked.
 */
export function streamSweep(policy: StreamPolicy, visit: VisitStream): (next: Handler) => StreamSweep {
  const waiting = pagesInTurn(policy.store, { state: 'waiting', forMs: policy.gapTimeoutMs });
  const due = pagesInTurn(policy.store, { state: 'due' });
  return (next) => async (context) => {
    sweepContext('context', context);
    const total = { due: 0, done: 0, failed: 0, isWhole: true, drained: 0, repaired: 0, skipped: 0 };
    const isOver = (): boolean => policy.clock.monotonic() >= context.deadline || context.signal.aborted;
    const each = (work: (stream: Readable) => Promise<void>) => async (stream: ListedStream) => {
      try {
        if (!('state' in stream)) throw stream.error;
        await work(stream);
      } catch (error) {
        total.failed += 1;
        const fields = { ...logFieldsOf(stream.ref), code: codeOf(error), error: textOf(error) };
        context.log.warn('in order: a stream was not swept; the next sweep tries again', fields);
      }
    };
    // First, so that what a gap kept waiting runs in this very sweep. What is wrong with the list of gaps (an index that
    // was turned off, for one) keeps nothing that is due from its turn.
    if (closesGaps(policy)) {
      const close = each(async ({ ref, state, nowMs }) => {
        const { repaired, skipped } = await closeGap(policy, ref, state, nowMs, context);
        total.repaired += repaired;
        total.skipped += skipped;
      });
      try {
        await forEachAtMost(CONCURRENCY, waiting(context.consumer, isOver), close);
      } catch (error) {
        total.failed += 1;
        total.isWhole = false;
        const fields = { consumer: context.consumer, code: codeOf(error), error: textOf(error) };
        context.log.error('in order: gaps were not closed; the next sweep tries again', fields);
      }
    }
    const work = each(async ({ ref }) => {
      const { taken, drained } = await visit(ref, context, next);
      total.done += taken ? 1 : 0;
      total.drained += drained;
    });
    await forEachAtMost(CONCURRENCY, due(context.consumer, isOver), (stream) => {
      total.due += 1;
      return work(stream);
    });
    total.isWhole &&= !isOver();
    await reportWaiting(policy, context);
    return total;
  };
}

type Readable = Extract<ListedStream, { state: object }>;

/**
 * One line for as long as a stream has waited for a number longer than the gap's timeout, so that an alert on it needs
 * no metric; and, where metrics are collected, how many streams are blocked and wait, and how much they hold.
 */
async function reportWaiting({ store, gapTimeoutMs }: StreamPolicy, context: VisitContext): Promise<void> {
  const { consumer, log } = context;
  try {
    const waiting = await oldest(store, consumer, 'waiting');
    const [first] = waiting;
    const waitedMs =
      first === undefined ? 0 : Math.max(0, first.nowMs - (first.state.waitingSince ?? first.nowMs));
    if (first !== undefined && waitedMs >= gapTimeoutMs) {
      log.warn('in order: a stream has waited for a number for longer than the gap timeout', {
        event: 'order_gap_old',
        ...logFieldsOf(first.ref),
        missing: first.state.last + 1,
        waitedSeconds: Math.floor(waitedMs / 1_000),
      });
    }
    if (!isMeasured()) return;
    const blocked = await oldest(store, consumer, 'blocked');
    const held = [...waiting, ...blocked].reduce((sum, { state }) => sum + state.held, 0);
    const attributes = { [ATTR.consumer]: consumer };
    gauge('heldMessages', held, attributes);
    gauge('blockedStreams', await store.count(consumer, 'blocked'), attributes);
    gauge('waitingStreams', await store.count(consumer, 'waiting'), attributes);
    gauge('oldestGap', waitedMs / 1_000, attributes);
  } catch (error) {
    log.warn('in order: waiting streams were not counted', { consumer, error: textOf(error) });
  }
}

async function oldest(
  store: StreamPolicy['store'],
  consumer: string,
  state: 'waiting' | 'blocked',
): Promise<readonly Readable[]> {
  const { streams } = await store.list(consumer, { state, limit: MEASURED });
  return streams.filter((stream): stream is Readable => 'state' in stream);
}

/** Where the last pass stopped: the page, and the streams of it that had their turn. */
type Place = { after: string | undefined; had: Set<string> };

export type PagesInTurn = (
  consumer: string,
  isOver: () => boolean,
) => AsyncGenerator<ListedStream, void, void>;

/** Streams of one list. */
const PAGE = 100;

/** Several workers may share what one call answers. Rejects as `list` does. */
export function pagesInTurn(
  store: Pick<StreamAdmin, 'list'>,
  query: Pick<StreamQuery, 'state' | 'forMs'>,
): PagesInTurn {
  const places = new Map<string, Place>();
  return async function* pass(consumer, isOver) {
    const place = places.get(consumer) ?? { after: undefined, had: new Set() };
    places.set(consumer, place);
    const mine = new Set<string>();
    let wraps = place.after !== undefined || place.had.size > 0;
    while (true) {
      const { after } = place;
      const page = await store.list(consumer, {
        ...query,
        limit: PAGE,
        ...(after !== undefined && { after }),
      });
      const named = page.streams.map((stream) => [JSON.stringify(stream.ref), stream] as const);
      const present = new Set(named.map(([name]) => name));
      // A stream that has left the page and is here again later is due again.
      for (const name of place.had) if (!present.has(name)) place.had.delete(name);
      for (const [name, stream] of named) {
        if (place.had.has(name) || mine.has(name)) continue;
        if (isOver()) return;
        place.had.add(name);
        mine.add(name);
        yield stream;
      }
      if (isOver()) return;
      place.after = page.next;
      place.had.clear();
      if (page.next !== undefined) continue;
      if (!wraps) return;
      wraps = false;
    }
  };
}
