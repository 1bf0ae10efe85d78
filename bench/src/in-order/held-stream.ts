/**
 * A key of which everything but the first number is held, and nobody works on it: as after hours without a consumer.
 *
 * The middleware holds the messages in a store in memory, and what it has stored there is copied through the store's port,
 * hundreds in one transaction: one delivery each would take minutes and would leave the same documents.
 */
import { randomUUID } from 'node:crypto';
import {
  ack,
  type Context,
  inOrder,
  memoryOrder,
  type Message,
  type OrderStore,
  silent,
  systemClock,
} from 'pubsub-guarantees';
import { inLanes } from '../once-redis/messages.ts';
import { CONSUMER } from './receiving.ts';

/** Documents in one transaction. */
const BATCH = 500;
/** Streams are held apart in memory: its lists are short then. */
const PART = 500;
const SOURCE = 'projects/bench/subscriptions/held';

export const messageOf = (key: string, number: number): Message => ({
  id: `${number}`,
  data: Buffer.from('{"order":17,"state":"paid"}'),
  attributes: { sequence: String(number), sequenceKey: key },
  publishTime: new Date(),
  subscription: SOURCE,
});

/** Numbers 2 to `waiting` + 1 are held; the first is missing. Answers the key. */
export async function heldStream(store: OrderStore, waiting: number): Promise<string> {
  const ref = { consumer: CONSUMER, key: randomUUID() };
  for (let from = 2; from <= waiting + 1; from += PART) {
    const numbers = Array.from({ length: Math.min(PART, waiting + 2 - from) }, (_, index) => from + index);
    const memory = memoryOrder({ clock: systemClock() });
    const hold = inOrder(memory, { maxAhead: waiting + 1 })(async () => ack());
    await inLanes(numbers, PART, () => async (number) => {
      const outcome = await hold(messageOf(ref.key, number), contextOf());
      if (outcome.kind !== 'ack' || outcome.reason !== 'held') throw new Error(`${number} was not held`);
    });
    const { state } = await memory.read(ref);
    if (state === undefined) throw new Error('nothing was held');
    const { lease: _, ...base } = state;
    const create = await memory.held(ref, 1, PART);
    for (let at = 0; at < create.length; at += BATCH) {
      const part = create.slice(at, at + BATCH);
      const decide = () => ({
        result: undefined,
        create: part,
        ...(from === 2 && at === 0 && { patch: base }),
      });
      await store.transact(ref, state, { numbers: [0] }, decide);
    }
  }
  return ref.key;
}

const contextOf = (limitMs = 600_000): Context => ({
  consumer: CONSUMER,
  source: SOURCE,
  now: Date.now,
  deadline: performance.now() + limitMs,
  signal: new AbortController().signal,
  log: silent,
});
