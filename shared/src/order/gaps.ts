/**
 * What becomes of numbers that do not come: first they are asked of the publisher's outbox, then the stream waits for
 * them, or goes on without them.
 *
 * What a store or an outbox does not answer decides nothing: the next sweep tries again. A process that dies after a
 * repair may ask for the same numbers twice.
 */
import { ATTR, count } from '../telemetry/instruments.ts';
import { type Decided, decidedCommit, type Looked } from './decided-commit.ts';
import type { StreamPolicy } from './options.ts';
import { logFieldsOf } from './report.ts';
import { hasNotBegun, isOpening, isSkipped, NO_GAP, skippingTo, type StreamState } from './stream-state.ts';
import type { HeldMessage, StreamRef } from './stream-store.ts';
import type { VisitContext } from './mailbox.ts';

/** The numbers that are missing before the first held one, both ends included. */
export type Gap = Readonly<{ from: number; to: number }>;

export type GapsClosed = Readonly<{
  /** Numbers that were published again. */
  repaired: number;
  /** Numbers that were skipped. */
  skipped: number;
}>;

const NOTHING: GapsClosed = { repaired: 0, skipped: 0 };

/** Whether anything is ever done about gaps. */
export const closesGaps = ({ repair, onGap, counter }: StreamPolicy): boolean =>
  repair !== undefined || onGap !== 'wait' || counter !== undefined;

/** The gap in front of the first held message, if there is one and no process works on the stream. */
function gapOf(state: StreamState, first: HeldMessage | undefined): Gap | undefined {
  if (first === undefined || state.lease !== null || state.blocked !== null) return undefined;
  const gap = { from: state.last + 1, to: first.number - 1 };
  return gap.to < gap.from ? undefined : gap;
}

/** Does what is to be done about the gap of one stream, as it was read, if its time is over. */
export async function closeGap(
  policy: StreamPolicy,
  ref: StreamRef,
  state: StreamState,
  nowMs: number,
  context: VisitContext,
): Promise<GapsClosed> {
  const { store, gapTimeoutMs } = policy;
  // The next message is due, and may be what is missing: a visit comes first.
  if (state.readyAt !== null || !mayAct(state, gapTimeoutMs, nowMs)) return NOTHING;
  const opens = isOpening(state, state.last + 1);
  // What is older than the subscription is not published again, to every subscriber, for one that has just come.
  const repair = opens && hasNotBegun(state) ? undefined : policy.repair;
  // What is missing below the opening was published before there was a consumer: the policy is not asked.
  const action = opens ? 'skip' : policy.onGap;
  if (repair === undefined && action === 'wait') return NOTHING;
  const missing = gapOf(state, (await store.held(ref, state.last + 1, 1))[0]);
  if (missing === undefined) return NOTHING;
  // Once repaired and still not here after its time: what was published did not arrive, or not as this number.
  if (repair !== undefined && (state.repairedAt === null || action === 'wait')) {
    const { length: repaired } = await repair.republish(ref.key, missing);
    for (let index = 0; index < repaired; index += 1) count('gapRepairs', { [ATTR.consumer]: ref.consumer });
    if (repaired > 0 || action === 'wait') {
      const event = repaired > 0 ? 'order_gap_repaired' : 'order_gap_not_found';
      const fields = { event, ...logFieldsOf(ref), ...missing, numbers: repaired };
      context.log.warn('in order: numbers that never came were asked of their publisher', fields);
      await decidedCommit(policy, ref, markingRepair(missing));
      return { repaired, skipped: 0 };
    }
  }
  if (action === 'wait') return NOTHING;
  const end = opens ? Math.min(missing.to, (state.opening ?? 1) - 1) : missing.to;
  const gap = await decidedCommit(policy, ref, skippingGap(gapTimeoutMs, { from: missing.from, to: end }));
  return gap === undefined ? NOTHING : skipped(ref, state, gap, context);
}

function skipped(ref: StreamRef, before: StreamState, gap: Gap, { log }: VisitContext): GapsClosed {
  if (isOpening(before, gap.from) && hasNotBegun(before)) {
    // Nothing is missed: it is from before this consumer's time.
    const fields = { event: 'order_stream_began', ...logFieldsOf(ref), first: gap.to + 1 };
    log.info('in order: a stream that is older than its consumer begins', fields);
    return NOTHING;
  }
  const numbers = gap.to - gap.from + 1;
  count('gapSkips', { [ATTR.consumer]: ref.consumer });
  const fields = { event: 'order_gap_skipped', ...logFieldsOf(ref), ...gap, numbers };
  log.error('in order: a stream goes on without numbers that never came', fields);
  return { repaired: 0, skipped: numbers };
}

/** Skips the missing numbers of a gap whose time is over, as far as `missing` goes. */
function skippingGap(timeoutMs: number, missing: Gap) {
  return ({ state, nowMs, first }: Looked): Decided<Gap | undefined> => {
    // Its own commit, whose reply was lost.
    if (state.last >= missing.to && isSkipped(state, missing.to)) return { result: missing };
    const gap = gapOf(state, first);
    if (gap?.from !== missing.from || !mayAct(state, timeoutMs, nowMs)) return { result: undefined };
    const given = { from: gap.from, to: Math.min(gap.to, missing.to) };
    return { result: given, fields: { ...skippingTo(state, given.to), ...NO_GAP, readyAt: nowMs } };
  };
}

/** Remembers that the missing numbers were looked for, so that the next sweep does not do it again. */
function markingRepair(missing: Gap) {
  return ({ state, nowMs, first }: Looked): Decided<boolean> => {
    if (gapOf(state, first)?.from !== missing.from) return { result: false };
    return { result: true, fields: { repairedAt: nowMs } };
  };
}

/** Whether the gap is repaired or skipped now: it is old enough, and the last repair has had its time to show. */
const mayAct = (state: StreamState, timeoutMs: number, nowMs: number): boolean =>
  isOld(state, timeoutMs, nowMs) && (state.repairedAt === null || state.repairedAt + timeoutMs <= nowMs);

/** Whether the gap is as old as `timeoutMs`. Its age belongs to one value of `last`. */
const isOld = (state: StreamState, timeoutMs: number, nowMs: number): boolean =>
  state.waitingSince !== null && state.gapAt === state.last && state.waitingSince + timeoutMs <= nowMs;
