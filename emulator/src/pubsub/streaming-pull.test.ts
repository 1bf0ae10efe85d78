import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { manualClock } from '../manual-clock.ts';
import { cpuMillisecondsDuring, turnsDuring } from '../spent.ts';
import {
  subscriptionName,
  testServer,
  text,
  texts,
  until,
  type Stream,
  type TestServer,
} from './test-server.ts';
import type { ReceivedMessage, StreamingPullRequest, StreamingPullResponse } from './wire.ts';

const SUB = 'orders-sub';
const message = (content: string) => ({ data: Buffer.from(content) });

/** Opens a stream and collects what comes on it. */
function open(t: TestContext, { stream: start }: TestServer, request: Partial<StreamingPullRequest> = {}) {
  const stream: Stream = start();
  const responses: StreamingPullResponse[] = [];
  const received: ReceivedMessage[] = [];
  const ends: (string | number)[] = [];
  stream.on('data', (response: StreamingPullResponse) => {
    responses.push(response);
    received.push(...(response.receivedMessages ?? []));
  });
  stream.on('error', (error: Error & { code?: number }) => ends.push(error.code ?? error.message));
  stream.on('end', () => ends.push('end'));
  t.after(() => stream.cancel());
  stream.write({ subscription: subscriptionName(SUB), streamAckDeadlineSeconds: 10, ...request });
  return { stream, responses, received, ends };
}

test('receives five thousand messages with the real client, each once, and keeps nothing', async (t) => {
  const { pubsub, server } = await testServer(t);
  const [topic] = await pubsub.createTopic('orders');
  const [subscription] = await topic.createSubscription(SUB);
  const ids = new Set<string>();
  let count = 0;
  subscription.on('message', (received) => {
    count += 1;
    ids.add(received.id);
    received.ack();
  });
  const took = await cpuMillisecondsDuring(async () => {
    await Promise.all(
      Array.from({ length: 5000 }, (_, index) => topic.publishMessage({ data: Buffer.from(String(index)) })),
    );
    await until(() => count >= 5000);
  });
  await subscription.close();
  await until(() => server.stats().outstanding === 0);
  assert.deepEqual([count, ids.size, server.stats().backlog], [5000, 5000, 0]);
  assert.ok(took < 5000, `${took} ms of CPU time`);
});

test('delivers within a few turns of the event loop after the publish', async (t) => {
  const running = await testServer(t);
  await running.create('orders', SUB);
  const { stream, received } = open(t, running);
  await until(() => true);
  const took: number[] = [];
  for (let round = 1; round <= 30; round += 1) {
    const arrival = new Promise<void>((resolve) => {
      const look = (): void => (received.length >= round ? resolve() : void stream.once('data', look));
      look();
    });
    const turns = await turnsDuring(async () => {
      await running.publish('orders', message('a'));
      await arrival;
    });
    took.push(turns);
  }
  const median = took.toSorted((a, b) => a - b)[15]!;
  assert.ok(median < 25, `${median} turns`);
});

test('sends the properties of the subscription first and answers keep-alive requests', async (t) => {
  const running = await testServer(t);
  await running.create('orders', SUB, { enableMessageOrdering: true });
  await running.publish('orders', message('a'));
  const { stream, responses, received } = open(t, running, { protocolVersion: '1' });
  await until(() => received.length === 1);
  assert.deepEqual(responses[0]?.subscriptionProperties, {
    exactlyOnceDeliveryEnabled: false,
    messageOrderingEnabled: true,
  });
  assert.deepEqual(responses[0]?.receivedMessages, []);
  const before = responses.length;
  stream.write({});
  await until(() => responses.length === before + 1);
});

test('keeps to the outstanding messages that the client allows', async (t) => {
  const running = await testServer(t, manualClock());
  await running.create('orders', SUB);
  await running.publish('orders', ...['a', 'b', 'c', 'd', 'e'].map(message));
  const { stream, received } = open(t, running, { maxOutstandingMessages: '2' });
  await until(() => received.length === 2);
  await running.publish('orders', message('f'));
  assert.equal(running.server.stats().outstanding, 2);
  await running.ack(SUB, received[0]!);
  await until(() => received.length === 3);
  stream.write({ ackIds: [received[1]!.ackId] });
  await until(() => received.length === 4);
  stream.write({ modifyDeadlineAckIds: [received[2]!.ackId], modifyDeadlineSeconds: [0] });
  await until(() => received.length === 5);
  assert.equal(texts(received), 'a,b,c,d,e');
  assert.equal(running.server.stats().outstanding, 2);
});

test('keeps to the outstanding bytes, and delivers a message that is larger alone', async (t) => {
  const running = await testServer(t, manualClock());
  await running.create('orders', SUB);
  const sizes = [600, 300, 200, 5000, 10];
  await running.publish('orders', ...sizes.map((size) => ({ data: Buffer.alloc(size) })));
  const { received } = open(t, running, { maxOutstandingBytes: '1000' });
  await until(() => received.length === 2);
  await running.ack(SUB, received[0]!);
  await until(() => received.length === 3);
  await running.ack(SUB, received[1]!);
  await running.publish('orders', message('x'));
  assert.equal(received.length, 3);
  await running.ack(SUB, received[2]!);
  await until(() => received.length === 4);
  assert.equal(received[3]?.message.data.length, 5000);
  await running.ack(SUB, received[3]!);
  await until(() => received.length === 6);
});

test('uses the deadline of the stream, and takes new ones on the stream', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  await running.create('orders', SUB);
  const { stream, received, responses } = open(t, running, {
    streamAckDeadlineSeconds: 30,
    protocolVersion: '1',
  });
  await running.publish('orders', message('a'));
  await until(() => received.length === 1);
  clock.advance(29_999);
  stream.write({ modifyDeadlineAckIds: [received[0]!.ackId], modifyDeadlineSeconds: [100] });
  stream.write({ streamAckDeadlineSeconds: 60 });
  await until(() => responses.length === 4);
  await running.publish('orders', message('b'));
  await until(() => received.length === 2);
  clock.advance(60_000);
  await until(() => received.length === 3);
  clock.advance(40_000);
  await until(() => received.length === 4);
  assert.equal(texts(received), 'a,b,b,a');
});

test('refuses bad first requests with the reason as the status of the stream', async (t) => {
  const running = await testServer(t);
  await running.create('orders', SUB);
  await running.create('orders', 'push-sub', { pushConfig: { pushEndpoint: 'http://127.0.0.1:1/' } });
  const cases: [Partial<StreamingPullRequest>, number][] = [
    [{ subscription: subscriptionName('missing') }, 5],
    [{ streamAckDeadlineSeconds: 9 }, 3],
    [{ streamAckDeadlineSeconds: 601 }, 3],
    [{ subscription: subscriptionName('push-sub') }, 9],
    [{ ackIds: ['nonsense'] }, 3],
    [{ modifyDeadlineAckIds: ['abcdef12-0-0'], modifyDeadlineSeconds: [] }, 3],
  ];
  for (const [request, code] of cases) {
    const { ends } = open(t, running, request);
    await until(() => ends.includes(code));
  }
});

test('ends cleanly with the client, and what was delivered can still be acknowledged', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  await running.create('orders', SUB);
  await running.publish('orders', message('a'), message('b'));
  const { stream, received, ends } = open(t, running);
  await until(() => received.length === 2);
  stream.end();
  await until(() => ends.length > 0);
  assert.deepEqual(ends, ['end']);
  await running.publish('orders', message('c'));
  assert.equal(texts(await running.pull(SUB)), 'c');
  await running.ack(SUB, received[0]!);
  clock.advance(10_000);
  assert.deepEqual((await running.pull(SUB)).map(text).toSorted(), ['b', 'c']);
});

test('ends with an error when the subscription is deleted, turned to push, or the server closes', async (t) => {
  const running = await testServer(t);
  await running.create('orders', SUB);
  const deleted = open(t, running);
  await until(() => deleted.responses.length === 1);
  await running.call('DeleteSubscription', { subscription: subscriptionName(SUB) });
  await until(() => deleted.ends.includes(5));
  await running.create('orders', SUB);
  const turned = open(t, running);
  await until(() => turned.responses.length === 1);
  const pushConfig = { pushEndpoint: 'http://127.0.0.1:1/' };
  await running.call('ModifyPushConfig', { subscription: subscriptionName(SUB), pushConfig });
  await until(() => turned.ends.includes(9));
  await running.call('ModifyPushConfig', { subscription: subscriptionName(SUB) });
  const closed = open(t, running);
  await until(() => closed.responses.length === 1);
  await running.server.close();
  await until(() => closed.ends.includes(14));
});

test('shares a backlog among streams', async (t) => {
  const running = await testServer(t, manualClock());
  await running.create('orders', SUB);
  const streams = [1, 2, 3].map(() => open(t, running));
  await until(() => streams.every(({ responses }) => responses.length === 1));
  await running.publish('orders', ...Array.from({ length: 900 }, () => message('a')));
  const count = () => streams.map(({ received }) => received.length);
  await until(() => count().reduce((a, b) => a + b, 0) === 900);
  assert.deepEqual(count(), [300, 300, 300]);
});
