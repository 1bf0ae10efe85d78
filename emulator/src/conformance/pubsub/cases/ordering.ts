/** Ordering keys: what is held back, and what comes again with what. */
import assert from 'node:assert/strict';
import { of, type PubsubCase, same } from '../expect.ts';
import { ORDERING, PROTO } from '../sources.ts';
import { texts, type Fields, type PubsubWorld, type ReceivedMessage } from '../world.ts';

const make = of('Ordering');
const SUB = 'orders-sub';
const ORDERED = { enableMessageOrdering: true };

/** Each message is its key and a number: a1, a2, b1. One request each, as a request holds one key. */
async function publishAll(
  world: PubsubWorld,
  options: Fields,
  ...contents: readonly string[]
): Promise<void> {
  await world.create('orders', SUB, options);
  for (const each of contents) await more(world, each);
}
const more = (world: PubsubWorld, content: string) =>
  world.publish('orders', { data: Buffer.from(content), orderingKey: content[0] });

/** Takes and acknowledges until `count` have come, in whatever portions the server hands out. */
async function drain(world: PubsubWorld, count: number): Promise<string> {
  const all: ReceivedMessage[] = [];
  for (let round = 0; round < 20 && all.length < count; round += 1) {
    const got = await world.receive(SUB, 1);
    if (got.length === 0) break;
    await world.ack(SUB, ...got);
    all.push(...got);
  }
  return texts(all);
}

export const ordering: readonly PubsubCase[] = [
  make('Messages of a key are pulled in the order of publishing', ORDERING, async (world) => {
    await publishAll(world, ORDERED, 'a1', 'a2', 'a3', 'a4', 'a5');
    same(await drain(world, 5), 'a1,a2,a3,a4,a5');
  }),
  make('The messages of one request keep their order', ORDERING, async (world) => {
    await world.create('orders', SUB, ORDERED);
    const contents = Array.from({ length: 20 }, (_, index) => `a${index}`);
    await world.publish('orders', ...contents.map((each) => ({ data: Buffer.from(each), orderingKey: 'a' })));
    same(await drain(world, 20), contents.join());
  }),
  make('The real client gets the messages of each key in order', ORDERING, async (world) => {
    await world.create('orders', SUB, ORDERED);
    const topic = world.pubsub.topic('orders', { messageOrdering: true });
    const seen: string[] = [];
    const subscription = world.pubsub.subscription(SUB);
    subscription.on('message', (message) => {
      seen.push(message.data.toString());
      message.ack();
    });
    const sent = ['a', 'b'].flatMap((key) => Array.from({ length: 20 }, (_, index) => `${key}${index}`));
    await Promise.all(
      sent.map((each) => topic.publishMessage({ data: Buffer.from(each), orderingKey: each.slice(0, 1) })),
    );
    for (let round = 0; round < 800 && seen.length < 40; round += 1) {
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    await subscription.close();
    for (const key of ['a', 'b']) {
      const own = (list: readonly string[]) => list.filter((each) => each.startsWith(key));
      same(own(seen), own(sent));
    }
  }),
  make(
    'While a message of a key is outstanding the next pull gets none of that key',
    ORDERING,
    async (world) => {
      await publishAll(world, ORDERED, 'a1', 'a2');
      same(texts(await world.receive(SUB, 1)), 'a1');
      same(texts(await world.pull(SUB)), '');
    },
  ),
  make('Another key is not held back', ORDERING, async (world) => {
    await publishAll(world, ORDERED, 'a1', 'a2', 'b1');
    const [first] = await world.receive(SUB, 1);
    const rest = await world.receive(SUB, 1);
    same(texts(first === undefined ? [] : [first, ...rest]), 'a1,b1');
  }),
  make('After the acknowledgement the next of the key comes', ORDERING, async (world) => {
    await publishAll(world, ORDERED, 'a1', 'a2');
    await world.ack(SUB, ...(await world.receive(SUB, 1)));
    same(texts(await world.receive(SUB, 1)), 'a2');
  }),
  make('A nacked message comes again before the later ones of its key', ORDERING, async (world) => {
    await publishAll(world, ORDERED, 'a1', 'a2', 'a3');
    await world.nack(SUB, ...(await world.receive(SUB, 1)));
    same(await drain(world, 3), 'a1,a2,a3');
  }),
  make(
    'After a nack of the second, the second and everything later come again in order',
    ORDERING,
    async (world) => {
      await publishAll(world, ORDERED, 'a0', 'a1', 'a2', 'a3');
      const [first, second] = await world.receive(SUB, 4);
      if (first === undefined) assert.fail('nothing came');
      await world.ack(SUB, first);
      await world.nack(SUB, second ?? (await world.receive(SUB, 1))[0] ?? assert.fail('a1 did not come'));
      same(await drain(world, 3), 'a1,a2,a3');
    },
  ),
  make(
    'Redelivery of a message brings the later ones of its key again, acknowledged or not',
    ORDERING,
    async (world) => {
      await world.create('orders', SUB, ORDERED);
      await world.publish(
        'orders',
        ...['a1', 'a2', 'a3'].map((each) => ({ data: Buffer.from(each), orderingKey: 'a' })),
      );
      const got = await world.pull(SUB);
      same(texts(got), 'a1,a2,a3', `one pull got ${texts(got)}`);
      await world.nack(SUB, ...got.slice(0, 1));
      await world.ack(SUB, ...got.slice(1));
      same(await drain(world, 3), 'a1,a2,a3');
    },
  ),
  make('Order is kept when a deadline passes', ORDERING, async (world) => {
    await publishAll(world, ORDERED, 'a1', 'a2', 'a3');
    await world.receive(SUB, 1);
    await world.pass(10_500);
    same(await drain(world, 3), 'a1,a2,a3');
  }),
  make('A backoff of a message holds back the later ones of its key', ORDERING, async (world) => {
    const retryPolicy = { minimumBackoff: { seconds: '3' }, maximumBackoff: { seconds: '60' } };
    await publishAll(world, { ...ORDERED, retryPolicy }, 'a1', 'a2');
    const got = await world.receive(SUB, 1);
    await world.nack(SUB, ...got.slice(0, 1));
    same(texts(await world.pull(SUB)), '', 'something came before the backoff was over');
    await world.pass(3_500);
    same(await drain(world, 2), 'a1,a2');
  }),
  make('Messages without a key are not held back', ORDERING, async (world) => {
    await world.create('orders', SUB, ORDERED);
    await world.publish('orders', 'x', 'y');
    const got = [...(await world.receive(SUB, 1)), ...(await world.receive(SUB, 1))];
    same(got.length, 2);
  }),
  make('Without message ordering a key holds nothing back, and is still shown', PROTO, async (world) => {
    await publishAll(world, {}, 'a1', 'a2');
    const got = [...(await world.receive(SUB, 1)), ...(await world.receive(SUB, 1))];
    same(
      got.map(({ message }) => message.orderingKey),
      ['a', 'a'],
    );
  }),
];
