/**
 * A stream of which everything but the first number is held, and no process works on it: as after hours without a consumer.
 *
 * The middleware holds the messages in a store in memory, and what it has stored there is copied through the store's port,
 * hundreds in one commit: one delivery each would take minutes and would leave the same documents.
 */
import { randomUUID } from 'node:crypto';
import { ack, type Context, type Message, silent, systemClock } from 'pubsub-guarantees';
import { orderedDelivery, type StreamRef, type StreamStore } from 'pubsub-guarantees/order';
import { memoryStreams } from 'pubsub-guarantees/testing';
import { inLanes } from '../once-redis/messages.ts';
import { CONSUMER } from './receiving.ts';

/** Held messages in one commit, with the stream's document. */
const BATCH = 400;
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

export const refOf = (key: string): StreamRef => ({ consumer: CONSUMER, source: SOURCE, key });

/** Numbers 2 to `waiting` + 1 are held, and counted; the first is missing. Answers the key. */
export async function heldStream(store: StreamStore, waiting: number): Promise<string> {
  const ref = refOf(randomUUID());
  let [version, held]: [string | undefined, number] = [undefined, 0];
  for (let from = 2; from <= waiting + 1; from += PART) {
    const numbers = Array.from({ length: Math.min(PART, waiting + 2 - from) }, (_, index) => from + index);
    const memory = memoryStreams({ clock: systemClock() });
    const hold = orderedDelivery(memory, { maxAhead: waiting + 1 }).middleware(async () => ack());
    await inLanes(numbers, PART, () => async (number) => {
      const outcome = await hold(messageOf(ref.key, number), contextOf());
      if (outcome.kind !== 'ack' || outcome.reason !== 'held') throw new Error(`${number} was not held`);
    });
    const { state } = await memory.read(ref);
    if (state === undefined) throw new Error('nothing was held');
    const all = await memory.held(ref, 1, PART);
    for (let at = 0; at < all.length; at += BATCH) {
      const create = all.slice(at, at + BATCH);
      held += create.length;
      const patch = { held, commit: randomUUID() };
      version = await store.commit(ref, { version, state }, { patch, create });
      if (version === undefined) throw new Error('the stream changed');
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
