import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '../manual-clock.ts';
import { testServer, text, texts, topicName, until, type TestServer } from './test-server.ts';

const SUB = 'orders-sub';
const ORDERED = { enableMessageOrdering: true };
const keyed = (content: string) => ({ data: Buffer.from(content), orderingKey: content[0] ?? '' });

/** One by one: a request holds messages of one key only. */
const publishAll = async (running: TestServer, ...contents: readonly string[]) => {
  for (const content of contents) await running.publish('orders', keyed(content));
};

test('blocks a key while anything of it is outstanding, and no other key', async (t) => {
  const running = await testServer(t, manualClock());
  await running.create('orders', SUB, ORDERED);
  await publishAll(running, 'a1', 'a2', 'b1', 'a3');
  const [a1] = await running.pull(SUB, 1);
  assert.equal(text(a1!), 'a1');
  assert.equal(texts(await running.pull(SUB)), 'b1');
  assert.deepEqual(await running.pull(SUB), []);
  await running.ack(SUB, a1!);
  assert.equal(texts(await running.pull(SUB)), 'a2,a3');
});

test('delivers a run of a key in one batch, and holds later publishes until it is acknowledged', async (t) => {
  const running = await testServer(t, manualClock());
  await running.create('orders', SUB, ORDERED);
  await publishAll(running, 'a1', 'a2', 'a3');
  const run = await running.pull(SUB);
  assert.equal(texts(run), 'a1,a2,a3');
  await publishAll(running, 'a4');
  await running.ack(SUB, run[0]!, run[2]!);
  assert.deepEqual(await running.pull(SUB), []);
  await running.ack(SUB, run[1]!);
  assert.equal(texts(await running.pull(SUB)), 'a4');
});

test('after a nack the message and every later unacknowledged one come again in order', async (t) => {
  const running = await testServer(t, manualClock());
  await running.create('orders', SUB, ORDERED);
  await publishAll(running, 'a1', 'a2', 'a3', 'a4');
  const run = await running.pull(SUB);
  await running.nack(SUB, run[1]!);
  assert.deepEqual(await running.pull(SUB), [], 'a1 is outstanding still');
  await running.ack(SUB, run[0]!, run[3]!);
  assert.equal(texts(await running.pull(SUB)), 'a2,a3,a4', 'the acknowledgement of a4 was too late');
});

test('order holds when all of a run is nacked, in whatever order', async (t) => {
  for (const order of [
    [0, 1, 2],
    [2, 1, 0],
    [1, 2, 0],
  ]) {
    const running = await testServer(t, manualClock());
    await running.create('orders', SUB, ORDERED);
    await publishAll(running, 'a1', 'a2', 'a3');
    const run = await running.pull(SUB);
    await running.nack(SUB, ...order.map((index) => run[index]!));
    assert.equal(texts(await running.pull(SUB)), 'a1,a2,a3');
  }
});

test('after an expiry the message and every later one come again in order', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  await running.create('orders', SUB, ORDERED);
  await publishAll(running, 'a1', 'a2', 'a3');
  const run = await running.pull(SUB);
  await running.ack(SUB, run[0]!);
  clock.advance(10_000);
  assert.equal(texts(await running.pull(SUB)), 'a2,a3');
});

test('a key waits for the backoff of its first message, other keys do not', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  const retryPolicy = { minimumBackoff: { seconds: 5 }, maximumBackoff: { seconds: 60 } };
  await running.create('orders', SUB, { ...ORDERED, retryPolicy });
  await publishAll(running, 'a1', 'a2');
  await running.nack(SUB, (await running.pull(SUB, 1))[0]!);
  await publishAll(running, 'a3', 'b1');
  assert.equal(texts(await running.pull(SUB)), 'b1');
  clock.advance(4_999);
  assert.deepEqual(await running.pull(SUB), []);
  clock.advance(1);
  assert.equal(texts(await running.pull(SUB)), 'a1,a2,a3');
});

test('a dead-lettered message leaves its key in order, and does not use up the attempts of later ones', async (t) => {
  const running = await testServer(t, manualClock());
  await running.call('CreateTopic', { name: topicName('dead') });
  const deadLetterPolicy = { deadLetterTopic: topicName('dead'), maxDeliveryAttempts: 5 };
  await running.create('orders', SUB, { ...ORDERED, deadLetterPolicy });
  await publishAll(running, 'a1', 'a2');
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    const run = await running.pull(SUB);
    assert.deepEqual(
      run.map((received) => [text(received), received.deliveryAttempt]),
      [
        ['a1', attempt],
        ['a2', 1],
      ],
    );
    await running.nack(SUB, run[0]!);
    if (attempt === 5) await running.ack(SUB, run[1]!);
  }
  assert.deepEqual([running.server.stats().outstanding, running.server.stats().backlog], [0, 0]);
});

test('without message ordering a key does not hold anything back', async (t) => {
  const running = await testServer(t, manualClock());
  await running.create('orders', SUB);
  await publishAll(running, 'a1', 'a2');
  const [a1] = await running.pull(SUB, 1);
  assert.equal(a1?.message.orderingKey, 'a');
  assert.equal(texts(await running.pull(SUB)), 'a2');
});

test('the real client sees no message of a key for the first time before an earlier one, through nacks', async (t) => {
  const { pubsub, server } = await testServer(t);
  const [topic] = await pubsub.createTopic('orders');
  const [subscription] = await topic.createSubscription(SUB, ORDERED);
  topic.setPublishOptions({ messageOrdering: true });
  const first = new Map<string, number[]>();
  const nacked = new Set<string>();
  const acked = new Set<string>();
  subscription.on('message', (message) => {
    const [key, index] = [message.orderingKey ?? '', Number(message.data.toString())];
    const name = `${key}${index}`;
    const seen = first.get(key) ?? [];
    first.set(key, seen);
    if (!seen.includes(index)) seen.push(index);
    if (index % 7 === 3 && !nacked.has(name)) {
      nacked.add(name);
      message.nack();
    } else {
      acked.add(name);
      message.ack();
    }
  });
  for (let index = 0; index < 50; index += 1) {
    await Promise.all(
      ['a', 'b', 'c', 'd'].map((orderingKey) =>
        topic.publishMessage({ data: Buffer.from(String(index)), orderingKey }),
      ),
    );
  }
  await until(() => acked.size === 200);
  await until(() => server.stats().outstanding === 0 && server.stats().backlog === 0);
  await subscription.close();
  for (const key of ['a', 'b', 'c', 'd'])
    assert.deepEqual(
      first.get(key),
      Array.from({ length: 50 }, (_, index) => index),
    );
  assert.equal(nacked.size, 28);
});
