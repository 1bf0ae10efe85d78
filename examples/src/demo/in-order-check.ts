/**
 * First deliveries of a key must be 1, 2, 3, …. Repeats of earlier numbers are no violation (they are counted where
 * repeats are counted); a number that comes before its predecessor is.
 */
import { positionOf } from './logical.ts';
import { streamName } from './missing.ts';
import { nameOf, type Trace } from './trace.ts';
import type { Violation } from './violation.ts';

type First = { number: number; order: number; trace: Trace };

/** `order` gives the place of an arrival among all arrivals. */
export function outOfOrder(
  traces: readonly Trace[],
  order: (arrival: Trace['arrivals'][number]['arrival']) => number,
): readonly Violation[] {
  const streams = new Map<string, { firsts: Map<number, First>; settled: Set<number> }>();
  for (const trace of traces) {
    if (!trace.logical.lane.inOrder) continue;
    const streamOf = (key: string) => {
      const name = streamName(trace.logical.lane.source, key);
      const stream = streams.get(name) ?? { firsts: new Map(), settled: new Set() };
      streams.set(name, stream);
      return stream;
    };
    for (const { arrival } of trace.arrivals) {
      const position = positionOf(arrival.attributes, arrival.orderingKey);
      if (position === undefined) continue;
      const { firsts } = streamOf(position.key);
      const known = firsts.get(position.number);
      const first = { number: position.number, order: order(arrival), trace };
      if (known === undefined || first.order < known.order) firsts.set(position.number, first);
    }
    // The same dedupId under two numbers is one message: its other number will not come.
    if (trace.arrivals.length > 0 || trace.deadLetters.length > 0) {
      for (const { event } of trace.logical.calls) {
        const position = positionOf(event.attributes, event.orderingKey);
        if (position !== undefined) streamOf(position.key).settled.add(position.number);
      }
    }
  }
  return [...streams.values()].flatMap(({ firsts, settled }) => violationsOf(firsts, settled));
}

function violationsOf(firsts: ReadonlyMap<number, First>, settled: ReadonlySet<number>): Violation[] {
  const violations: Violation[] = [];
  let next = 1;
  for (const first of [...firsts.values()].toSorted((left, right) => left.order - right.order)) {
    while (!firsts.has(next) && settled.has(next)) next += 1;
    if (first.number !== next) {
      violations.push({
        kind: 'out of order',
        text: `${nameOf(first.trace)}: arrived when number ${next} was next`,
      });
    }
    next = Math.max(next, first.number + 1);
  }
  return violations;
}
