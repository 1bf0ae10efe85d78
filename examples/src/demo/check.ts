/**
 * The judge: what was published and what arrived in, verdict out. Pure, and knows nothing of the toolkit's own code.
 * Every promise can be seen broken here: see the tests, which break each of them by hand.
 */
import { outOfOrder } from './in-order-check.ts';
import { LANES, type Lane } from './lanes.ts';
import { missingOf } from './missing.ts';
import type { Arrival, Observed, Published } from './observed.ts';
import { type Matched, nameOf, type Trace, traceAll } from './trace.ts';
import type { Violation } from './violation.ts';

export type Counts = Readonly<{
  /** Publish calls that were confirmed. */
  published: number;
  /** Logical messages among them. */
  distinct: number;
  /** Publish calls that repeated a logical message. */
  duplicatesPublished: number;
  /** Runs of the subscriber's handler. */
  delivered: number;
  /** Runs beyond the first of a logical message. */
  duplicatesDelivered: number;
  /** Arrivals before their time, wall clock against the forwarded publish time and the delay that was asked for. */
  early: number;
  /** Of what was asked for later: the longest time between due and first arrival. */
  maxLatenessMs: number;
  outOfOrder: number;
  /** Logical messages that were neither delivered as published nor dead-lettered. */
  lost: number;
  /** Logical messages in the dead letters. */
  deadLettered: number;
  /** Further copies beyond the publish calls: a crash made them, and the subscriber's gate recognised their dedupId. */
  repeats: number;
  /** Further copies because a lane without "once" was published to more than once. The gate recognised them as well. */
  foreseen: number;
}>;

type Row = Counts & Readonly<{ lane: Lane }>;
export type Report = Readonly<{
  rows: readonly Row[];
  total: Counts;
  violations: readonly Violation[];
  /** Of each dead-lettered message: which, and why. */
  deadLetters: readonly string[];
  held: boolean;
}>;

export function check(observed: Observed): Report {
  const { traces, violations } = traceAll(observed);
  const places = new Map<Arrival, number>(observed.arrivals.map((arrival, index) => [arrival, index]));
  const unpublished = observed.published.filter(({ messageId }) => messageId === undefined);
  const all = [
    ...violations,
    ...traces.flatMap(duplicateOf),
    ...traces.flatMap(earlyOf),
    ...outOfOrder(traces, (arrival) => places.get(arrival) ?? 0),
    ...missingOf(traces).map(({ text }): Violation => ({ kind: 'lost', text })),
    ...unpublished.map(({ event, error }): Violation => {
      return {
        kind: 'not published',
        text: `${event.topic} line ${event.line}: ${error ?? 'no reason given'}`,
      };
    }),
  ];
  const rows = LANES.map((lane): Row => {
    const own = traces.filter(({ logical }) => logical.lane === lane);
    return { lane, ...count(own, lane, observed) };
  });
  return {
    rows,
    total: rows.reduce<Counts>(add, NOTHING),
    violations: all,
    deadLetters: deadLetterLines(observed, traces),
    held: all.length === 0,
  };
}

const NOTHING: Counts = {
  published: 0,
  distinct: 0,
  duplicatesPublished: 0,
  delivered: 0,
  duplicatesDelivered: 0,
  early: 0,
  maxLatenessMs: 0,
  outOfOrder: 0,
  lost: 0,
  deadLettered: 0,
  repeats: 0,
  foreseen: 0,
};

function add(left: Counts, right: Counts): Counts {
  const names = Object.keys(NOTHING) as (keyof Counts)[];
  const sums = Object.fromEntries(names.map((name) => [name, left[name] + right[name]])) as Counts;
  return { ...sums, maxLatenessMs: Math.max(left.maxLatenessMs, right.maxLatenessMs) };
}

function count(traces: readonly Trace[], lane: Lane, observed: Observed): Counts {
  const calls = observed.published.filter(({ event }) => event.topic === lane.source);
  const published = calls.filter(({ messageId }) => messageId !== undefined).length;
  const distinct = traces.filter(({ logical }) => logical.calls.some(isPublished)).length;
  const arrivals = observed.arrivals.filter(({ topic }) => topic === lane.target);
  const places = new Map<Arrival, number>(arrivals.map((arrival, index) => [arrival, index]));
  return {
    published,
    distinct,
    duplicatesPublished: published - distinct,
    delivered: arrivals.filter(({ effect }) => effect).length,
    duplicatesDelivered: traces.reduce((sum, trace) => sum + Math.max(effectsOf(trace) - 1, 0), 0),
    early: traces.reduce((sum, trace) => sum + earlyOf(trace).length, 0),
    maxLatenessMs: Math.max(0, ...traces.map(latenessOf)),
    outOfOrder: outOfOrder(traces, (arrival) => places.get(arrival) ?? 0).length,
    lost: missingOf(traces).length,
    deadLettered: traces.filter(({ deadLetters }) => deadLetters.length > 0).length,
    repeats: traces.reduce((sum, trace) => sum + furtherCopies(trace) - foreseenCopies(trace), 0),
    foreseen: traces.reduce((sum, trace) => sum + foreseenCopies(trace), 0),
  };
}

const furtherCopies = ({ arrivals }: Trace): number => Math.max(copies(arrivals) - 1, 0);

/** "In order" swallows a number that comes again as "once" swallows a dedupId. */
function foreseenCopies(trace: Trace): number {
  const { lane, calls } = trace.logical;
  return lane.once || lane.inOrder ? 0 : Math.min(furtherCopies(trace), calls.length - 1);
}

const isPublished = ({ messageId }: Published): boolean => messageId !== undefined;

const effectsOf = ({ arrivals }: Trace): number => arrivals.filter(({ arrival }) => arrival.effect).length;

/** A redelivery has the message ID of the first delivery: it is no further copy. */
const copies = (arrivals: readonly Matched[]): number =>
  new Set(arrivals.map(({ arrival }) => arrival.messageId)).size;

function duplicateOf(trace: Trace): Violation[] {
  const effects = effectsOf(trace);
  return effects > 1 ? [{ kind: 'duplicate', text: `${nameOf(trace)}: delivered ${effects} times` }] : [];
}

function earlyOf(trace: Trace): Violation[] {
  if (!trace.logical.lane.later) return [];
  return trace.arrivals.flatMap((matched): Violation[] => {
    const due = dueOf(matched);
    if (due === undefined || matched.arrival.atMs >= due) return [];
    const text = Number.isNaN(due)
      ? 'arrived without the publish time that its delay counts from'
      : `arrived ${due - matched.arrival.atMs} ms early`;
    return [{ kind: 'early', text: `${nameOf(trace)}: ${text}` }];
  });
}

function latenessOf(trace: Trace): number {
  const first = trace.arrivals[0];
  const due = first && trace.logical.lane.later ? dueOf(first) : undefined;
  return first === undefined || due === undefined || Number.isNaN(due) ? 0 : first.arrival.atMs - due;
}

/**
 * The earliest due time that a publish call of this message asked for; undefined when none asked, NaN when it is not
 * known. Counted from the server's publish time as forwarded, never from a clock beside the publish call.
 */
function dueOf({ arrival, calls }: Matched): number | undefined {
  const origin = Date.parse(arrival.attributes['originPublishTime'] ?? '');
  const dueTimes = calls.map(({ event }) => {
    const { delay, deliverAt } = event.attributes;
    if (delay !== undefined) return origin + Number(delay) * 1_000;
    return deliverAt === undefined ? undefined : Date.parse(deliverAt);
  });
  // A call that asked for no delay may have been delivered at once.
  return dueTimes.some((due) => due === undefined) ? undefined : Math.min(...(dueTimes as number[]));
}

function deadLetterLines(observed: Observed, traces: readonly Trace[]): string[] {
  return observed.deadLetters.map((deadLetter) => {
    const trace = traces.find(({ deadLetters }) => deadLetters.includes(deadLetter));
    const { deadLetterReason = 'no reason', deadLetterError = '' } = deadLetter.attributes;
    const name = trace === undefined ? `message ID ${deadLetter.messageId}` : nameOf(trace);
    return `${name}: ${deadLetterReason}${deadLetterError === '' ? '' : `: ${deadLetterError}`}`;
  });
}
