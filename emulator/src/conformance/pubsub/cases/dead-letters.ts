/** Dead-letter topics: attempts, forwarding and what is added. */
import assert from 'node:assert/strict';
import { of, until, type PubsubCase, same } from '../expect.ts';
import { DEAD_LETTERS, ORDERING, PROTO } from '../sources.ts';
import { text, texts, type Fields, type PubsubWorld, type ReceivedMessage } from '../world.ts';

const make = of('Dead letters');
const [SUB, DEAD] = ['orders-sub', 'dead-sub'];

/** A subscription with a policy of so many attempts, and one that gets the dead letters. */
async function prepare(world: PubsubWorld, options: Fields = {}, maxDeliveryAttempts = 5): Promise<void> {
  await world.create('dead', DEAD);
  const deadLetterPolicy = { deadLetterTopic: world.topic('dead'), maxDeliveryAttempts };
  await world.create('orders', SUB, { deadLetterPolicy, ...options });
}

/** Nacks `times`, and tells the attempts that were counted. */
async function nackTimes(world: PubsubWorld, times: number, expected = 'a'): Promise<number[]> {
  const seen: number[] = [];
  for (let round = 0; round < times; round += 1) {
    const [got = assert.fail(`delivery ${round + 1} did not come`)] = await world.receive(SUB, 1);
    same(text(got), expected, `delivery ${round + 1}`);
    seen.push(got.deliveryAttempt);
    await world.nack(SUB, got);
  }
  return seen;
}

/** A server may forward when it would deliver again, so that the subscription is pulled as well: nothing may come. */
async function dead(world: PubsubWorld): Promise<ReceivedMessage> {
  for (let round = 0; round < 200; round += 1) {
    const again = texts(await world.pull(SUB).catch(() => []));
    if (again !== '' && again !== 'a2') assert.fail(`delivered once more than allowed: ${again}`);
    const [got] = await world.pull(DEAD, 1);
    if (got !== undefined) return got;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail('no dead letter came');
}

/** A fifth, CloudPubSubDeadLetterSourceDeliveryErrorMessage, is documented for subscriptions that write to BigQuery and the like only. */
const ADDED: Readonly<Record<string, (world: PubsubWorld) => RegExp>> = {
  CloudPubSubDeadLetterSourceDeliveryCount: () => /^5$/,
  CloudPubSubDeadLetterSourceSubscription: () => /^orders-sub$/,
  CloudPubSubDeadLetterSourceSubscriptionProject: ({ project }) => new RegExp(`^${project}$`),
  CloudPubSubDeadLetterSourceTopicPublishTime: () => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)$/,
};

export const deadLetters: readonly PubsubCase[] = [
  make('Delivery attempts count from 1 with every nack', PROTO, async (world) => {
    await prepare(world);
    await world.publish('orders', 'a');
    same(await nackTimes(world, 5), [1, 2, 3, 4, 5]);
  }),
  make('Delivery attempts count with every expired deadline', PROTO, async (world) => {
    await prepare(world);
    await world.publish('orders', 'a');
    const seen: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const [got] = await world.receive(SUB, 1);
      seen.push(got?.deliveryAttempt ?? 0);
      await world.pass(10_500);
    }
    same(seen, [1, 2, 3]);
  }),
  make('After the last attempt the message goes to the dead-letter topic', DEAD_LETTERS, async (world) => {
    await prepare(world);
    await world.publish('orders', 'a');
    await nackTimes(world, 5);
    same(text(await dead(world)), 'a');
    same(texts(await world.pull(SUB)), '', 'it is still in the subscription');
  }),
  make('It goes there when the last deadline expires, too', DEAD_LETTERS, async (world) => {
    await prepare(world);
    await world.publish('orders', 'a');
    await nackTimes(world, 4);
    await world.receive(SUB, 1);
    await world.pass(10_500);
    same(text(await dead(world)), 'a');
  }),
  make('Before the last attempt nothing goes there', DEAD_LETTERS, async (world) => {
    await prepare(world, {}, 7);
    await world.publish('orders', 'a');
    await nackTimes(world, 6);
    same(await world.pull(DEAD), []);
    same((await world.receive(SUB, 1))[0]?.deliveryAttempt, 7);
  }),
  ...Object.entries(ADDED).map(([name, form]) =>
    make(`The dead letter has the attribute ${name}`, DEAD_LETTERS, async (world) => {
      await prepare(world);
      await world.publish('orders', 'a');
      await nackTimes(world, 5);
      assert.match((await dead(world)).message.attributes[name] ?? '', form(world));
    }),
  ),
  make(
    'The dead letter keeps data, attributes and ordering key, and has an ID of its own',
    DEAD_LETTERS,
    async (world) => {
      await prepare(world);
      const original = { data: Buffer.from('a'), attributes: { colour: 'blue' }, orderingKey: 'k' };
      const [id] = await world.publish('orders', original);
      await nackTimes(world, 5);
      const { message } = await dead(world);
      same([text(await Promise.resolve({ message } as ReceivedMessage)), message.orderingKey], ['a', 'k']);
      same(message.attributes['colour'], 'blue');
      assert.notEqual(message.messageId, id);
    },
  ),
  make('A dead letter may have more attributes than a publisher may give it', DEAD_LETTERS, async (world) => {
    await prepare(world);
    const attributes = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`k${index}`, 'v']));
    await world.publish('orders', { data: Buffer.from('a'), attributes });
    await nackTimes(world, 5);
    same(Object.keys((await dead(world)).message.attributes).length, 104);
  }),
  make('An acknowledged message never becomes a dead letter', DEAD_LETTERS, async (world) => {
    await prepare(world);
    await world.publish('orders', 'a');
    await nackTimes(world, 4);
    await world.ack(SUB, ...(await world.receive(SUB, 1)));
    await world.pass(10_500);
    same(await world.pull(DEAD), []);
  }),
  make('The attempts keep to the retry policy', DEAD_LETTERS, async (world) => {
    const backoff = { seconds: '2', nanos: 0 };
    await prepare(world, { retryPolicy: { minimumBackoff: backoff, maximumBackoff: backoff } });
    await world.publish('orders', 'a');
    for (let round = 1; round <= 4; round += 1) {
      await world.nack(SUB, ...(await world.receive(SUB, 1)));
      await world.pass(1_200);
      same(texts(await world.pull(SUB)), '', `delivery ${round + 1} came after 1.2 s of 2 s`);
      await world.pass(1_300);
    }
    await world.nack(SUB, ...(await world.receive(SUB, 1)));
    same(text(await dead(world)), 'a');
  }),
  make(
    'The next message of an ordering key comes when the one before became a dead letter',
    ORDERING,
    async (world) => {
      await prepare(world, { enableMessageOrdering: true });
      for (const each of ['a1', 'a2'])
        await world.publish('orders', { data: Buffer.from(each), orderingKey: 'a' });
      await nackTimes(world, 5, 'a1');
      same(texts(await world.receive(SUB, 1)), 'a2');
      same(text(await dead(world)), 'a1');
    },
  ),
  make(
    'Failed pushes count as attempts, and the last one goes to the dead-letter topic',
    DEAD_LETTERS,
    async (world) => {
      const { url, got } = await world.endpoint(() => 500);
      await prepare(world, { pushConfig: { pushEndpoint: url } });
      await world.publish('orders', 'a');
      for (let round = 0; round < 40 && got.length < 5; round += 1) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        await world.pass(800);
      }
      await until(() => got.length >= 5, 'five pushes');
      same(text(await dead(world)), 'a');
      same(got.length, 5, 'it was pushed again');
    },
  ),
  make('A subscriber of the dead-letter topic that has no policy sees no attempts', PROTO, async (world) => {
    await prepare(world);
    await world.publish('orders', 'a');
    await nackTimes(world, 5);
    same((await dead(world)).deliveryAttempt, 0);
  }),
];
