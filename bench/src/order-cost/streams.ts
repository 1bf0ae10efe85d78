/**
 * Ordered streams delivered straight into the middleware, and what became of them: each number must run exactly once and
 * in its turn, with the payload of its own message, or the run ends with an error.
 */
import { randomUUID } from 'node:crypto';
import type { Firestore } from '@google-cloud/firestore';
import { ack, compose, type Context, type Handler, type Message, silent } from 'pubsub-guarantees';
import { orderedDelivery } from 'pubsub-guarantees/order';
import { firestoreStreams } from 'pubsub-guarantees/order/firestore';

export type Stream = Readonly<{
  key: string;
  /** Delivers a message, again and again until it is acknowledged. */
  deliver(number: number): Promise<void>;
  ran(): number;
  deliveries(): number;
}>;

/** A subscription's own limit of deliveries would be about this. */
const MOST_DELIVERIES = 100;

/** All streams of one consumer, in one process: one middleware, as a subscriber has it. */
export function consumerOn(firestore: Firestore): Readonly<{ stream(): Stream }> {
  const consumer = `bench-${randomUUID()}`;
  const ran = new Map<string, number>();
  const handler: Handler = compose(
    async ({ attributes, data }) => {
      const { sequenceKey: key = '', sequence = '' } = attributes;
      const last = ran.get(key) ?? 0;
      if (Number(sequence) !== last + 1 || data.toString() !== `${key} ${sequence}`) {
        throw new Error(`${sequence} of ${key} ran after ${last}`);
      }
      ran.set(key, last + 1);
      return ack();
    },
    [orderedDelivery(firestoreStreams(firestore)).middleware],
  );
  return {
    stream() {
      const key = `key-${randomUUID()}`;
      let deliveries = 0;
      return {
        key,
        async deliver(number) {
          const message = messageOf(key, number);
          for (let count = 1; count <= MOST_DELIVERIES; count += 1) {
            deliveries += 1;
            const outcome = await handler(message, contextOf(consumer));
            if (outcome.kind === 'ack') return;
            if (outcome.kind === 'deadLetter')
              throw new Error(`${number} of ${key}`, { cause: outcome.error });
          }
          throw new Error(`${number} of ${key} was not acknowledged in ${MOST_DELIVERIES} deliveries`);
        },
        ran: () => ran.get(key) ?? 0,
        deliveries: () => deliveries,
      };
    },
  };
}

/**
 * 1 to `count`, each up to `window` places late, so that it is overtaken by whatever is within the window. The same in
 * every run.
 */
export function shuffled(count: number, window: number): readonly number[] {
  let seed = 1;
  const share = (): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return seed / 2 ** 32;
  };
  return Array.from({ length: count }, (_, index) => ({ number: index + 1, at: index + share() * window }))
    .toSorted((left, right) => left.at - right.at)
    .map(({ number }) => number);
}

/** Delivers all numbers, `outstanding` at a time: the next one when one of them is acknowledged. */
export async function deliverAll(
  stream: Stream,
  numbers: readonly number[],
  outstanding: number,
): Promise<void> {
  const queue = numbers.values();
  const lane = async (): Promise<void> => {
    for (const number of queue) await stream.deliver(number);
  };
  await all(Array.from({ length: outstanding }, lane));
  if (stream.ran() !== numbers.length) {
    throw new Error(`${stream.ran()} of ${numbers.length} messages of ${stream.key} ran`);
  }
}

/** Rejects with the first failure once every one has ended: the client must not be closed under the others. */
export async function all(running: readonly Promise<void>[]): Promise<void> {
  for (const one of await Promise.allSettled(running)) if (one.status === 'rejected') throw one.reason;
}

const messageOf = (key: string, number: number): Message => ({
  id: `${key}-${number}`,
  data: Buffer.from(`${key} ${number}`),
  attributes: { sequence: String(number), sequenceKey: key },
  publishTime: new Date(0),
});

const contextOf = (consumer: string): Context => ({
  consumer,
  source: 'projects/bench/subscriptions/bench',
  now: () => Date.now(),
  deadline: performance.now() + 600_000,
  signal: new AbortController().signal,
  log: silent,
});
