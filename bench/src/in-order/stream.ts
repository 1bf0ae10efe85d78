/** One key's messages: in which order they are sent, and a subscription that has all of them waiting. */
import { randomUUID } from 'node:crypto';
import type { Subscription } from '@google-cloud/pubsub';
import type { World } from './world.ts';

/** Published together, and awaited: the order of what is sent is the order of what waits. */
const CHUNK = 200;

export const inTurn = (count: number): readonly number[] =>
  Array.from({ length: count }, (_, index) => index + 1);

/**
 * The numbers as they arrive over a window: each is sent once fifty are waiting to be sent, in random order. The same
 * for every way and in every run.
 */
export function shuffled(count: number, window: number): readonly number[] {
  let seed = 1;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  const waiting: number[] = [];
  const order: number[] = [];
  const sendOne = (): void => void order.push(...waiting.splice(random(waiting.length), 1));
  for (const number of inTurn(count)) {
    waiting.push(number);
    if (waiting.length === window) sendOne();
  }
  while (waiting.length > 0) sendOne();
  return order;
}

export type Stream = Readonly<{ key: string; subscription: Subscription }>;

/** A topic and a subscription of their own, with a message for each number, sent in this order. */
export async function waitingStream(
  { pubsub }: World,
  order: readonly number[],
  isOrdered: boolean,
): Promise<Stream> {
  const key = randomUUID();
  const [created] = await pubsub.createTopic(`in-order-${key}`);
  const [subscription] = await created.createSubscription(`in-order-${key}`, {
    ackDeadlineSeconds: 60,
    enableMessageOrdering: isOrdered,
  });
  const topic = pubsub.topic(created.name, {
    messageOrdering: isOrdered,
    batching: { maxMessages: CHUNK, maxMilliseconds: 5 },
  });
  for (let from = 0; from < order.length; from += CHUNK) {
    const sent = order.slice(from, from + CHUNK).map((number) =>
      topic.publishMessage({
        data: Buffer.from('{"order":17,"state":"paid"}'),
        attributes: { sequence: String(number), sequenceKey: key },
        ...(isOrdered && { orderingKey: key }),
      }),
    );
    await Promise.all(sent);
  }
  return { key, subscription };
}
