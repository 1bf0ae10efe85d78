import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@google-cloud/pubsub';
import { manualClock, type ManualClock } from '../manual-clock.ts';
import { subscriptionName, testServer, texts, topicName, type TestServer } from './test-server.ts';

const SUB = 'orders-sub';
const data = Buffer.from('a');
const DEAD = { deadLetterPolicy: { deadLetterTopic: topicName('dead'), maxDeliveryAttempts: 5 } };

/** Milliseconds, in whole seconds, until the message can be pulled again. */
async function waitFor(running: TestServer, clock: ManualClock): Promise<number> {
  for (let waited = 0; waited <= 700; waited += 1) {
    const [again] = await running.pull(SUB);
    if (again !== undefined) {
      await running.nack(SUB, again);
      return waited;
    }
    clock.advance(1000);
  }
  throw new Error('was never delivered again');
}

test('the retry policy doubles the backoff from the first redelivery on, up to its maximum', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  const retryPolicy = { minimumBackoff: { seconds: 2 }, maximumBackoff: { seconds: 12 } };
  await running.create('orders', SUB, { retryPolicy });
  await running.publish('orders', { data });
  const waits: number[] = [];
  for (let delivery = 0; delivery < 6; delivery += 1) waits.push(await waitFor(running, clock));
  assert.deepEqual(waits, [0, 2, 4, 8, 12, 12]);
});

test('the backoff holds after an expired deadline too, and fractions of seconds count', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  const retryPolicy = { minimumBackoff: { nanos: 500_000_000 }, maximumBackoff: { seconds: 1 } };
  await running.create('orders', SUB, { retryPolicy });
  await running.publish('orders', { data });
  assert.equal((await running.pull(SUB)).length, 1);
  clock.advance(10_499);
  assert.deepEqual(await running.pull(SUB), []);
  clock.advance(1);
  assert.equal(texts(await running.pull(SUB)), 'a');
});

test('one message that backs off does not hold up the others', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  await running.create('orders', SUB, { retryPolicy: {} });
  await running.publish('orders', { data });
  await running.nack(SUB, (await running.pull(SUB))[0]!);
  await running.publish('orders', { data: Buffer.from('b') });
  assert.equal(texts(await running.pull(SUB)), 'b');
  assert.equal(running.server.stats().backlog, 1);
});

test('counts delivery attempts from 1 with a dead-letter policy, and leaves them 0 without', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  await running.call('CreateTopic', { name: topicName('dead') });
  await running.create('orders', SUB, DEAD);
  await running.create('orders', 'plain-sub');
  await running.publish('orders', { data });
  const [first] = await running.pull(SUB);
  await running.nack(SUB, first!);
  const [second] = await running.pull(SUB);
  clock.advance(10_000);
  const [third] = await running.pull(SUB);
  assert.deepEqual(
    [first, second, third].map((received) => received?.deliveryAttempt),
    [1, 2, 3],
  );
  const [plain] = await running.pull('plain-sub');
  await running.nack('plain-sub', plain!);
  assert.equal((await running.pull('plain-sub'))[0]?.deliveryAttempt, 0);
});

test('forwards to the dead-letter topic after the last attempt, with where it came from', async (t) => {
  const clock = manualClock(Date.UTC(2030, 4, 6, 7, 8, 9, 10));
  const running = await testServer(t, clock);
  await running.call('CreateTopic', { name: topicName('dead') });
  await running.create('dead', 'dead-sub');
  await running.create('orders', SUB, DEAD);
  const attributes = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`k${index}`, 'v']));
  const [id] = await running.publish('orders', { data, attributes, orderingKey: 'key' });
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    assert.deepEqual(await running.pull('dead-sub'), []);
    const [received] = await running.pull(SUB);
    assert.equal(received?.deliveryAttempt, attempt);
    await running.nack(SUB, received);
  }
  assert.deepEqual(await running.pull(SUB), []);
  const [dead] = await running.pull('dead-sub');
  assert.deepEqual(dead?.message.data, data);
  assert.equal(dead?.message.orderingKey, 'key');
  assert.notEqual(dead?.message.messageId, id);
  assert.deepEqual(dead?.message.attributes, {
    ...attributes,
    CloudPubSubDeadLetterSourceDeliveryCount: '5',
    CloudPubSubDeadLetterSourceSubscription: SUB,
    CloudPubSubDeadLetterSourceSubscriptionProject: 'test-project',
    CloudPubSubDeadLetterSourceTopicPublishTime: '2030-05-06T07:08:09.010+00:00',
  });
  assert.equal(running.server.stats().backlog, 0);
});

test('a message stays while its dead-letter topic does not exist', async (t) => {
  const running = await testServer(t, manualClock());
  await running.call('CreateTopic', { name: topicName('dead') });
  await running.create('orders', SUB, DEAD);
  await running.call('DeleteTopic', { topic: topicName('dead') });
  await running.publish('orders', { data });
  for (let attempt = 1; attempt <= 7; attempt += 1) {
    const [received] = await running.pull(SUB);
    assert.equal(received?.deliveryAttempt, attempt);
    await running.nack(SUB, received);
  }
  assert.match(running.log.join(), /dead-letter topic .*\/dead does not exist/);
  await running.create('dead', 'dead-sub');
  await running.nack(SUB, (await running.pull(SUB))[0]!);
  assert.equal(texts(await running.pull('dead-sub')), 'a');
});

test('a policy that is added later counts from then on, one that is removed stops counting', async (t) => {
  const running = await testServer(t, manualClock());
  await running.call('CreateTopic', { name: topicName('dead') });
  await running.create('orders', SUB);
  await running.publish('orders', { data });
  for (let round = 0; round < 6; round += 1) await running.nack(SUB, (await running.pull(SUB))[0]!);
  const name = subscriptionName(SUB);
  const updateMask = { paths: ['dead_letter_policy'] };
  await running.call('UpdateSubscription', { subscription: { name, ...DEAD }, updateMask });
  const [counted] = await running.pull(SUB);
  assert.equal(counted?.deliveryAttempt, 1);
  await running.nack(SUB, counted);
  await running.call('UpdateSubscription', { subscription: { name }, updateMask });
  assert.equal((await running.pull(SUB))[0]?.deliveryAttempt, 0);
});

test('the real client sees the delivery attempts and the dead letter', async (t) => {
  const { pubsub } = await testServer(t);
  const [dead] = await pubsub.createTopic('dead');
  const [deadSubscription] = await dead.createSubscription('dead-sub');
  const [topic] = await pubsub.createTopic('orders');
  const [subscription] = await topic.createSubscription(SUB, {
    deadLetterPolicy: { deadLetterTopic: dead.name, maxDeliveryAttempts: 5 },
  });
  const attempts: number[] = [];
  subscription.on('message', (message) => {
    attempts.push(message.deliveryAttempt);
    message.nack();
  });
  const forwarded = new Promise<Message>((resolve) => deadSubscription.once('message', resolve));
  await topic.publishMessage({ data });
  const message = await forwarded;
  message.ack();
  await Promise.all([subscription.close(), deadSubscription.close()]);
  assert.deepEqual(attempts, [1, 2, 3, 4, 5]);
  assert.equal(message.attributes['CloudPubSubDeadLetterSourceDeliveryCount'], '5');
});
