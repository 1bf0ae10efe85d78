/**
 * What has neither been delivered nor dead-lettered yet, and what each of it waits for. A message behind a number
 * that the file never publishes is held by the toolkit, rightly, for as long as the number is missing: waiting longer
 * for it is hopeless, and the report names the number.
 */
import { type Position, positionOf } from './logical.ts';
import { nameOf, type Trace } from './trace.ts';

export type Missing = Readonly<{
  trace: Trace;
  text: string;
  /** No line of the file can end the wait. */
  hopeless: boolean;
}>;

type Stream = { available: Set<number>; delivered: Set<number> };

export function missingOf(traces: readonly Trace[]): readonly Missing[] {
  const streams = streamsOf(traces);
  return traces.filter(isOpen).map((trace) => {
    const { lane } = trace.logical;
    const position = firstPosition(trace);
    const stream = position && streams.get(streamName(lane.source, position.key));
    if (position === undefined || stream === undefined) {
      return { trace, text: `${nameOf(trace)}: not delivered`, hopeless: false };
    }
    const gap = firstAbsent(stream.available);
    if (position.number > gap) {
      const text = `${nameOf(trace)}: held, key ${JSON.stringify(position.key)} waits for number ${gap}, which the file does not publish`;
      return { trace, text, hopeless: true };
    }
    const next = firstAbsent(stream.delivered);
    const why = next < position.number ? `, the key waits for number ${next}` : '';
    return { trace, text: `${nameOf(trace)}: not delivered${why}`, hopeless: false };
  });
}

/** Published at least once, and neither delivered nor dead-lettered. */
function isOpen({ logical, arrivals, deadLetters }: Trace): boolean {
  const published = logical.calls.some(({ messageId }) => messageId !== undefined);
  return published && deadLetters.length === 0 && !arrivals.some(({ arrival }) => arrival.effect);
}

function firstPosition({ logical }: Trace): Position | undefined {
  const event = logical.calls[0]?.event;
  return event && logical.lane.inOrder ? positionOf(event.attributes, event.orderingKey) : undefined;
}

export const streamName = (topic: string, key: string): string => JSON.stringify([topic, key]);

function streamsOf(traces: readonly Trace[]): ReadonlyMap<string, Stream> {
  const streams = new Map<string, Stream>();
  for (const trace of traces) {
    const delivered = trace.arrivals.some(({ arrival }) => arrival.effect);
    // A dead-lettered member is a gap, unless it was delivered as well.
    if (trace.deadLetters.length > 0 && !delivered) continue;
    for (const { event } of trace.logical.calls) {
      const position = trace.logical.lane.inOrder && positionOf(event.attributes, event.orderingKey);
      if (!position) continue;
      const name = streamName(event.topic, position.key);
      const stream = streams.get(name) ?? { available: new Set(), delivered: new Set() };
      streams.set(name, stream);
      stream.available.add(position.number);
      if (delivered) stream.delivered.add(position.number);
    }
  }
  return streams;
}

function firstAbsent(numbers: ReadonlySet<number>): number {
  let next = 1;
  while (numbers.has(next)) next += 1;
  return next;
}
