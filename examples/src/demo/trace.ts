/**
 * Puts what arrived beside what was published. An arrival counts for a logical message only if identity, bytes and
 * the publisher's attributes are all as published; anything else is a violation, and the message it should have been
 * stays undelivered.
 */
import { hasIdentity, type Logical, logicalMessages, positionOf, sameBytes } from './logical.ts';
import type { Arrival, DeadLetter, Observed, Published } from './observed.ts';
import type { Violation } from './violation.ts';

export type Matched = Readonly<{
  arrival: Arrival;
  /** The publish calls that this arrival may stem from. */
  calls: readonly Published[];
}>;

export type Trace = Readonly<{
  logical: Logical;
  /** In order of arrival. */
  arrivals: readonly Matched[];
  deadLetters: readonly DeadLetter[];
}>;

type Building = { logical: Logical; arrivals: Matched[]; deadLetters: DeadLetter[] };

/** Delivery options: taken off on the way out once applied, or left for information by a lane that does not apply them. */
const DELIVERY_OPTIONS = ['delay', 'deliverAt', 'scheduleKey'];
/** Added by the toolkit. */
const ADDED = ['dedupId', 'originPublishTime', 'deliveredAfter', 'fencingToken'];

export function traceAll(observed: Observed): Readonly<{ traces: Trace[]; violations: Violation[] }> {
  const traces = logicalMessages(observed.published).map(
    (logical): Building => ({ logical, arrivals: [], deadLetters: [] }),
  );
  const index = indexOf(traces);
  const violations: Violation[] = [];
  for (const arrival of observed.arrivals) {
    const found = find(index, arrival.topic, arrival.attributes['dedupId']);
    const violation = place(found, arrival);
    if (violation !== undefined) violations.push(violation);
  }
  for (const deadLetter of observed.deadLetters) placeDeadLetter(traces, deadLetter);
  return { traces, violations };
}

/** `fifo-in line 12`, with what it is known by. */
export function nameOf({ logical }: Pick<Trace, 'logical'>): string {
  const { event, messageId } = logical.calls[0] as Published;
  const position = logical.lane.inOrder ? positionOf(event.attributes, event.orderingKey) : undefined;
  const id = event.attributes['dedupId'];
  const known =
    position !== undefined
      ? `key ${JSON.stringify(position.key)} number ${position.number}`
      : id !== undefined
        ? `dedupId ${JSON.stringify(id)}`
        : `message ID ${messageId ?? 'unknown'}`;
  return `${event.topic} line ${event.line} (${known})`;
}

function indexOf(traces: readonly Building[]): Map<string, Set<Building>> {
  const index = new Map<string, Set<Building>>();
  for (const trace of traces) {
    const { lane, calls } = trace.logical;
    for (const { event, messageId } of calls) {
      const own = event.attributes['dedupId'];
      if (own === undefined && messageId === undefined) continue;
      const key = own === undefined ? `${lane.target} id ${messageId}` : `${lane.target} own ${own}`;
      const known = index.get(key) ?? new Set();
      index.set(key, known.add(trace));
    }
  }
  return index;
}

function find(
  index: ReadonlyMap<string, Set<Building>>,
  topic: string,
  dedupId: string | undefined,
): Building[] {
  if (dedupId === undefined) return [];
  const messageId = dedupId.slice(dedupId.lastIndexOf('/') + 1);
  return [
    ...(index.get(`${topic} own ${dedupId}`) ?? []),
    ...(dedupId.includes('/') ? (index.get(`${topic} id ${messageId}`) ?? []) : []),
  ];
}

function place(found: readonly Building[], arrival: Arrival): Violation | undefined {
  const dedupId = arrival.attributes['dedupId'];
  const first = found[0];
  if (first === undefined) {
    const known = dedupId === undefined ? 'without dedupId' : `with dedupId ${JSON.stringify(dedupId)}`;
    return {
      kind: 'unexpected',
      text: `${arrival.topic}: a message ${known} that no publish call accounts for`,
    };
  }
  const bytes = found.flatMap((trace) =>
    trace.logical.calls
      .filter((call) => hasIdentity(call, dedupId) && sameBytes(call.event.data, arrival.data))
      .map((call) => ({ trace, call })),
  );
  if (bytes.length === 0) {
    const was = first.logical.calls[0]?.event.data.length;
    return {
      kind: 'corrupted',
      text: `${nameOf(first)}: other data arrived than was published (${arrival.data.length} bytes, published ${was})`,
    };
  }
  const same = bytes.filter(({ call }) => sameAttributes(call, arrival));
  const trace = (same[0] ?? bytes[0])?.trace;
  if (trace === undefined) return undefined;
  if (same.length === 0) {
    return {
      kind: 'corrupted',
      text: `${nameOf(trace)}: other attributes or ordering key arrived than were published`,
    };
  }
  trace.arrivals.push({
    arrival,
    calls: same.filter((one) => one.trace === trace).map(({ call }) => call),
  });
  return undefined;
}

/** The ordering key as well, where the publisher set one. */
function sameAttributes(call: Published, arrival: Arrival): boolean {
  const { orderingKey } = call.event;
  if (orderingKey !== undefined && orderingKey !== arrival.orderingKey) return false;
  return sameEntries(publishersOwn(call.event.attributes), publishersOwn(arrival.attributes));
}

/** `dedupId` is left out: it is compared as the identity. */
function publishersOwn(attributes: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(attributes)
    .filter(([key]) => !DELIVERY_OPTIONS.includes(key) && !ADDED.includes(key) && !/^goog/i.test(key))
    .toSorted(([left], [right]) => (left < right ? -1 : 1));
}

const sameEntries = (left: unknown, right: unknown): boolean =>
  JSON.stringify(left) === JSON.stringify(right);

/** A dead letter keeps the data and whatever attributes had room: the line that explains most of it is meant. */
function placeDeadLetter(traces: readonly Building[], deadLetter: DeadLetter): void {
  const shared = (call: Published): number =>
    Object.entries(call.event.attributes).filter(([key, value]) => deadLetter.attributes[key] === value)
      .length;
  const scored = traces.flatMap((trace) =>
    trace.logical.calls
      .filter(({ event }) => sameBytes(event.data, deadLetter.data))
      .map((call) => ({
        trace,
        // A message without any sign of life explains a dead letter better than one that was delivered.
        score:
          (hasIdentity(call, deadLetter.attributes['dedupId']) ? 1_000 : 0) +
          shared(call) * 2 +
          (trace.arrivals.length === 0 && trace.deadLetters.length === 0 ? 1 : 0),
      })),
  );
  const best = scored.toSorted((left, right) => right.score - left.score)[0];
  best?.trace.deadLetters.push(deadLetter);
}
