/**
 * How long the last message waits that waited for a missing number: from the call of the endpoint with that number to the
 * start of the last handler. Linear in the number of messages that waited.
 */
import { ack, type Handler, silent, systemClock } from 'pubsub-guarantees';
import { orderedDelivery } from 'pubsub-guarantees/order';
import { deliver } from 'pubsub-guarantees/receive';
import { firestoreStreams } from 'pubsub-guarantees/order/firestore';
import { heldStream, messageOf } from './held-stream.ts';
import { CONSUMER } from './receiving.ts';
import type { World } from './world.ts';

export type Closing = Readonly<{ waiting: number; p50: number; p99: number; perMessageMs: number }>;

/** A delivery's budget is half of this: the largest gap closes within it. */
const TIMEOUT = '590s';

export async function closings(world: World, waiting: number, rounds: number): Promise<Closing> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) times.push(await closing(world, waiting));
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
  const p50 = at(0.5);
  return { waiting, p50, p99: at(0.99), perMessageMs: p50 / waiting };
}

async function closing({ firestore }: World, waiting: number): Promise<number> {
  const store = firestoreStreams(firestore);
  const key = await heldStream(store, waiting);
  let last = 0;
  let lastAt = 0;
  const next: Handler = async (message) => {
    const number = Number(message.attributes['sequence']);
    if (number !== last + 1) throw new Error(`${number} ran after ${last}`);
    [last, lastAt] = [number, performance.now()];
    return ack();
  };
  const handler = orderedDelivery(store).middleware(next);
  const begun = performance.now();
  const options = { consumer: CONSUMER, clock: systemClock(), log: silent, handlerTimeout: TIMEOUT } as const;
  const outcome = await deliver(handler, messageOf(key, 1), options);
  if (outcome.kind !== 'ack' || last !== waiting + 1) {
    throw new Error(`of ${waiting + 1} messages ${last} ran, and the delivery ended as ${outcome.kind}`);
  }
  return lastAt - begun;
}
