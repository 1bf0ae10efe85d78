import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../clock.ts';
import { manualClock } from '../manual-clock.ts';
import { subscriptionName, testServer, texts, topicName, until } from '../pubsub/test-server.ts';
import { createFaults } from './index.ts';

const TOPIC = topicName('orders');
const SUBSCRIPTION = subscriptionName('work');

/** A server with a topic and a subscription, and one rule of Pub/Sub. */
async function faulty(t: TestContext, rule: object, options: Readonly<Record<string, unknown>> = {}) {
  const faults = createFaults();
  const server = await testServer(t, systemClock(), undefined, faults);
  await server.create('orders', 'work', options);
  faults.set({ rules: [{ service: 'pubsub', ...rule }] });
  const injected = () =>
    faults.log().map(({ method, resource, n, action }) => `${method} ${resource} ${n} ${action}`);
  return { faults, injected, ...server };
}

const hello = { data: Buffer.from('hello') };
const UNAVAILABLE = 14;

test('fails a call before anything is done', async (t) => {
  const action = { type: 'fail', code: 'RESOURCE_EXHAUSTED', message: 'too much' };
  const { call, publish, pull, injected } = await faulty(t, { method: 'Publish', nth: 1, action });
  await assert.rejects(call('Publish', { topic: TOPIC, messages: [hello] }), {
    code: 8,
    details: 'too much',
  });
  await publish('orders', { data: Buffer.from('second') });
  assert.equal(texts(await pull('work')), 'second');
  assert.deepEqual(injected(), [`Publish ${TOPIC} 1 fail`]);
});

test('loses the reply of a publish, which the real client then makes again', async (t) => {
  const { pubsub, pull } = await faulty(t, { method: 'Publish', nth: 1, action: { type: 'lose-reply' } });
  await pubsub.topic('orders').publishMessage(hello);
  assert.match(texts(await pull('work')), /^hello(,hello)+$/);
});

test('loses a reply with the status that the rule names', async (t) => {
  const { call, server } = await faulty(t, {
    method: 'CreateTopic',
    action: { type: 'lose-reply', code: 'DEADLINE_EXCEEDED' },
  });
  await assert.rejects(call('CreateTopic', { name: topicName('second') }), { code: 4 });
  assert.equal(server.stats().topics, 2);
});

test('publishes twice', async (t) => {
  const { publish, pull } = await faulty(t, { method: 'Publish', nth: 2, action: { type: 'duplicate' } });
  await publish('orders', { data: Buffer.from('a') });
  const [id] = await publish('orders', { data: Buffer.from('b') });
  const received = await pull('work');
  assert.equal(texts(received), 'a,b,b');
  assert.equal(received[2]?.message.messageId, id, 'the client hears of the second');
});

test('delays a call in real time, and carries it out even when its client has ended it', async (t) => {
  const { cancellable, publish, pull, server } = await faulty(t, {
    method: 'Publish',
    nth: [1, 2],
    action: { type: 'delay', ms: 60 },
  });
  const start = performance.now();
  await publish('orders', { data: Buffer.from('late') });
  assert.ok(performance.now() - start >= 55);
  const { answer, cancel } = cancellable('Publish', { topic: TOPIC, messages: [hello] });
  setTimeout(cancel, 20);
  await assert.rejects(answer, { code: 1 });
  await until(() => server.stats().backlog === 2);
  assert.equal(texts(await pull('work')), 'late,hello');
});

for (const [when, kept] of [
  ['before', 'again'],
  ['after', 'hello,again'],
] as const) {
  test(`cuts the connection ${when} the work, with all the calls on it`, async (t) => {
    const { call, stream, pull, publish, create } = await faulty(t, {
      method: 'Publish',
      nth: 1,
      action: { type: 'cut', when },
    });
    await create('orders', 'other');
    const open = stream();
    const opened = new Promise((resolve) => open.once('data', resolve));
    const ended = new Promise((resolve) =>
      open.once('error', (error: { code?: number }) => resolve(error.code)),
    );
    open.write({ subscription: subscriptionName('other'), streamAckDeadlineSeconds: 10 });
    await opened;
    await assert.rejects(call('Publish', { topic: TOPIC, messages: [hello] }), { code: UNAVAILABLE });
    assert.equal(await ended, UNAVAILABLE);
    await publish('orders', { data: Buffer.from('again') });
    assert.equal(texts(await pull('work')), kept);
  });
}

test('answers an acknowledgement that it drops: the message comes again', async (t) => {
  const clock = manualClock();
  const faults = createFaults();
  const { create, publish, pull, ack, server } = await testServer(t, clock, undefined, faults);
  await create('orders', 'work', { ackDeadlineSeconds: 10 });
  faults.set({ rules: [{ service: 'pubsub', method: 'Acknowledge', nth: 1, action: { type: 'drop-ack' } }] });
  await publish('orders', hello);
  await ack('work', ...(await pull('work')));
  assert.equal(server.stats().outstanding, 1);
  clock.advance(10_000);
  const again = await pull('work');
  assert.equal(texts(again), 'hello');
  await ack('work', ...again);
  assert.deepEqual([server.stats().outstanding, server.stats().backlog], [0, 0]);
});

test('drops a new deadline, and an acknowledgement that comes on a stream', async (t) => {
  const clock = manualClock();
  const faults = createFaults();
  const { create, publish, pull, nack, stream, server } = await testServer(t, clock, undefined, faults);
  await create('orders', 'work', { ackDeadlineSeconds: 10 });
  const action = { type: 'drop-ack' };
  faults.set({
    rules: [
      { service: 'pubsub', method: 'ModifyAckDeadline', nth: 1, action },
      { service: 'pubsub', method: 'Acknowledge', action: { type: 'fail' } },
      { service: 'pubsub', method: 'Acknowledge', nth: 1, action },
    ],
  });
  await publish('orders', hello);
  const received = await pull('work');
  await nack('work', ...received);
  assert.equal(server.stats().outstanding, 1, 'the nack was thrown away');
  await nack('work', ...received);
  assert.equal(server.stats().outstanding, 0);

  const open = stream();
  const ids: string[] = [];
  open.on('data', ({ receivedMessages = [] }: { receivedMessages?: { ackId: string }[] }) =>
    ids.push(...receivedMessages.map(({ ackId }) => ackId)),
  );
  open.on('error', () => {});
  open.write({ subscription: SUBSCRIPTION, streamAckDeadlineSeconds: 10 });
  await until(() => ids.length === 1);
  open.write({ ackIds: [...ids] });
  await until(() => faults.log().length === 2);
  assert.equal(server.stats().outstanding, 1, 'what cannot fail on a stream is not counted as failed');
  open.write({ ackIds: [...ids] });
  await until(() => server.stats().outstanding === 0);
  open.end();
});

test('drops no acknowledgement of an exactly-once subscription, and records that', async (t) => {
  const { faults, publish, pull, ack, server } = await faulty(
    t,
    { method: 'Acknowledge', action: { type: 'drop-ack' } },
    { enableExactlyOnceDelivery: true },
  );
  await publish('orders', hello);
  await ack('work', ...(await pull('work')));
  assert.equal(server.stats().outstanding, 0);
  assert.match(faults.log()[0]?.skipped ?? '', /exactly-once/);
  assert.deepEqual(faults.fired(), [0]);
});

test('cuts a stream when it has sent so many responses; the real subscriber opens another', async (t) => {
  const { pubsub, publish, injected, faults } = await faulty(t, {
    method: 'StreamingPull',
    nth: [1, 2],
    action: { type: 'cut', afterMessages: 2 },
  });
  const subscription = pubsub.subscription('work', { streamingOptions: { maxStreams: 1 } });
  const got: string[] = [];
  subscription.on('message', (message) => {
    got.push(message.data.toString());
    message.ack();
  });
  subscription.on('error', () => {});
  for (const text of ['a', 'b', 'c']) {
    await publish('orders', { data: Buffer.from(text) });
    // Each in a response of its own, so that the first stream is cut while there is more.
    await until(() => got.includes(text));
  }
  assert.deepEqual(injected(), [
    `StreamingPull ${SUBSCRIPTION} 1 cut`,
    `StreamingPull ${SUBSCRIPTION} 2 cut`,
  ]);
  assert.equal(faults.fired()[0], 2);
  await subscription.close();
});

test('fails and delays the opening of a stream, counted by the subscription in its first request', async (t) => {
  const { faults, stream } = await faulty(t, {
    method: 'StreamingPull',
    resource: SUBSCRIPTION,
    nth: 1,
    action: { type: 'fail', code: 'PERMISSION_DENIED' },
  });
  const outcome = () =>
    new Promise<unknown>((resolve) => {
      const open = stream();
      open.on('data', (first) => {
        resolve(first);
        open.cancel();
      });
      open.on('error', (error: { code?: number }) => resolve(error.code));
      open.write({ subscription: SUBSCRIPTION, streamAckDeadlineSeconds: 10 });
    });
  assert.equal(await outcome(), 7);
  faults.set({ rules: [{ service: 'pubsub', method: 'StreamingPull', action: { type: 'delay', ms: 50 } }] });
  const start = performance.now();
  assert.equal(typeof (await outcome()), 'object');
  assert.ok(performance.now() - start >= 45);
});
