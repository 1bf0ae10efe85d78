/** How a key is left to deliveries of this process that wait for it, by whoever has worked on it. */
import { inHandOf } from './in-hand.ts';
import type { Lease } from './lease.ts';
import type { KeyRef, OrderStore } from './order-store.ts';
import type { Arrival } from './place.ts';
import type { Waiting } from './turn.ts';

/**
 * Asks for those in hand from a number on, `ran` of which are about to be answered. It may be asked several times, by a
 * decision that is called again; whoever was answered once is remembered.
 */
export function asking(
  store: OrderStore,
  ref: KeyRef,
  from: number,
  ran: number,
): Readonly<{ line: () => readonly Arrival[]; asked: ReadonlyMap<Arrival, Waiting> }> {
  const asked = new Map<Arrival, Waiting>();
  const line = (): readonly Arrival[] => {
    const waiting = inHandOf(store).line(ref, from, ran);
    for (const one of waiting) asked.set(one.delivery.arrival, one);
    return waiting.map(({ delivery }) => delivery.arrival);
  };
  return { line, asked };
}

/**
 * Leaves the key, whose lease was kept for `admitted`, to the first of them. False where it has gone meanwhile: then the
 * caller still has the key. Only the very deliveries that were asked for: another copy of a number may have come in
 * their place, whose identity nobody has compared.
 */
export function handOver(
  { store }: Readonly<{ store: OrderStore }>,
  ref: KeyRef,
  lease: Lease,
  asked: ReadonlyMap<Arrival, Waiting>,
  admitted: readonly Arrival[],
): boolean {
  const line = admitted.flatMap((arrival) => asked.get(arrival) ?? []);
  const [first] = line;
  if (first === undefined || !first.waits()) return false;
  const hand = inHandOf(store);
  const { number } = first.delivery.arrival;
  const done = hand.working(ref);
  hand.runs(ref, number + 1, number + line.length);
  first.answer({ kind: 'lead', lease, line, done });
  return true;
}
