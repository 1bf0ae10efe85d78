import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '../manual-clock.ts';
import {
  subscriptionName,
  testServer,
  text,
  texts,
  topicName,
  until,
  type TestServer,
} from './test-server.ts';
import type { StreamingPullResponse } from './wire.ts';

const SUB = 'orders-sub';
const START = Date.UTC(2030, 0, 1);
const MINUTE = 60_000;
const message = (content: string, rest: object = {}) => ({ data: Buffer.from(content), ...rest });
const refused = { code: 9 };

/** Pulls and acknowledges everything that is ready. */
async function drain({ pull, ack }: TestServer, subscription = SUB): Promise<string> {
  const got = await pull(subscription);
  if (got.length > 0) await ack(subscription, ...got);
  return texts(got);
}

test('seeking to the past replays what a subscription retains of acknowledged messages', async (t) => {
  const clock = manualClock(START);
  const running = await testServer(t, clock);
  const { pubsub, publish } = running;
  await running.create('orders', SUB, { retainAckedMessages: true, filter: 'NOT attributes:skip' });
  const subscription = pubsub.subscription(SUB);
  assert.equal((await subscription.getMetadata())[0].retainAckedMessages, true);
  await publish('orders', message('a'));
  clock.advance(MINUTE);
  await publish('orders', message('b'), message('skipped', { attributes: { skip: '' } }), message('c'));
  assert.equal(await drain(running), 'a,b,c');
  assert.equal(await drain(running), '');
  await subscription.seek(new Date(START + MINUTE));
  assert.equal(running.server.stats().backlog, 2);
  assert.equal(await drain(running), 'b,c');
  await subscription.seek(new Date(START));
  assert.equal(await drain(running), 'a,b,c', 'a sought message is retained as well');
});

test('seeking to the future purges, takes back what is outstanding, and does not touch later messages', async (t) => {
  const clock = manualClock(START);
  const running = await testServer(t, clock);
  const { publish, pull, ack, server, pubsub } = running;
  await running.create('orders', SUB);
  await publish('orders', message('a'), message('b'));
  const [held] = await pull(SUB, 1);
  await pubsub.subscription(SUB).seek(new Date(START + MINUTE));
  assert.deepEqual([server.stats().outstanding, server.stats().backlog], [0, 0]);
  await ack(SUB, held!);
  await publish('orders', message('c'));
  assert.equal(await drain(running), 'c');
  await pubsub.subscription(SUB).seek(new Date(START));
  assert.equal(await drain(running), '', 'nothing acknowledged is retained without the option');
  assert.equal(clock.timers(), 0);
});

test('replays in order per key, also what was backing off or outstanding', async (t) => {
  const clock = manualClock(START);
  const running = await testServer(t, clock);
  const { publish, pull, nack, ack, pubsub } = running;
  await running.create('orders', SUB, {
    enableMessageOrdering: true,
    retainAckedMessages: true,
    retryPolicy: { minimumBackoff: { seconds: 60 } },
  });
  const orderingKey = 'k';
  await publish('orders', ...['1', '2', '3', '4'].map((content) => message(content, { orderingKey })));
  const [one, two] = await pull(SUB);
  await ack(SUB, one!);
  await nack(SUB, two!);
  await pubsub.subscription(SUB).seek(new Date(START));
  assert.equal(await drain(running), '1,2,3,4');
});

test('a topic retains for every subscription, for later ones and through their filters', async (t) => {
  const clock = manualClock(START);
  const running = await testServer(t, clock);
  const { pubsub, call, publish, create } = running;
  await pubsub.createTopic({ name: 'orders', messageRetentionDuration: { seconds: 3600 } });
  await publish('orders', message('a'), message('b', { attributes: { k: '' } }));
  await create('orders', 'late-sub', { filter: 'attributes:k', messageRetentionDuration: { seconds: 600 } });
  assert.equal(await drain(running, 'late-sub'), '');
  clock.advance(30 * MINUTE);
  await pubsub.subscription('late-sub').seek(new Date(START));
  assert.equal(await drain(running, 'late-sub'), 'b');
  clock.advance(31 * MINUTE);
  await pubsub.subscription('late-sub').seek(new Date(START));
  assert.equal(await drain(running, 'late-sub'), '', 'beyond the retention of the topic');
  for (const seconds of [599, 2_678_401]) {
    const topic = { name: topicName('orders'), messageRetentionDuration: { seconds } };
    const updateMask = { paths: ['message_retention_duration'] };
    await assert.rejects(call('UpdateTopic', { topic, updateMask }), { code: 3 });
  }
});

test('what is retained of acknowledged messages ends with the retention', async (t) => {
  const clock = manualClock(START);
  const running = await testServer(t, clock);
  const options = { retainAckedMessages: true, messageRetentionDuration: { seconds: 600 } };
  await running.create('orders', SUB, options);
  await running.publish('orders', message('a'));
  await drain(running);
  clock.advance(10 * MINUTE + 1);
  await running.pubsub.subscription(SUB).seek(new Date(START));
  assert.equal(await drain(running), '');
});

test('snapshots keep the backlog of their moment and what is published later', async (t) => {
  const clock = manualClock(START);
  const running = await testServer(t, clock);
  const { pubsub, call, publish, pull, ack, create } = running;
  await create('orders', SUB);
  await publish('orders', message('a'), message('b'));
  const [first] = await pull(SUB, 1);
  await ack(SUB, first!);
  const [snapshot] = await pubsub.subscription(SUB).createSnapshot('before');
  await publish('orders', message('c'));
  assert.equal(await drain(running), 'b,c');
  await snapshot.seek();
  assert.equal(await drain(running), 'b,c');
  await create('orders', 'other-sub', { filter: 'attributes:none' });
  await pubsub.subscription('other-sub').seek('before');
  assert.equal(await drain(running, 'other-sub'), '', 'through the filter of the one that seeks');
  const name = 'projects/test-project/snapshots/before';
  assert.deepEqual(
    (await pubsub.getSnapshots())[0].map((one) => one.name),
    [name],
  );
  const got = await call('GetSnapshot', { snapshot: name });
  const expires = String(START / 1000 + 7 * 86_400);
  assert.deepEqual([got['topic'], got['expireTime']], [topicName('orders'), { seconds: expires, nanos: 0 }]);
  assert.deepEqual((await call('ListTopicSnapshots', { topic: topicName('orders') }))['snapshots'], [name]);
  const change = (path: string) =>
    call('UpdateSnapshot', { snapshot: { name, labels: { a: 'b' } }, updateMask: { paths: [path] } });
  assert.deepEqual((await change('labels'))['labels'], { a: 'b' });
  await assert.rejects(change('topic'), { code: 3 });
  await assert.rejects(pubsub.subscription(SUB).createSnapshot('before'), { code: 6 });
  await snapshot.delete();
  await assert.rejects(call('GetSnapshot', { snapshot: name }), { code: 5 });
  await assert.rejects(pubsub.subscription(SUB).seek('before'), { code: 5 });
});

test('snapshots expire, and belong to one topic', async (t) => {
  const clock = manualClock(START);
  const { pubsub, call, publish, create } = await testServer(t, clock);
  await create('orders', SUB);
  await create('bills', 'bills-sub');
  await publish('orders', message('a'));
  await pubsub.subscription(SUB).createSnapshot('mine');
  await assert.rejects(pubsub.subscription('bills-sub').seek('mine'), refused);
  await assert.rejects(call('Seek', { subscription: subscriptionName(SUB) }), { code: 3 });
  clock.advance(7 * 86_400_000 - 3_600_000 + 1);
  await assert.rejects(pubsub.subscription(SUB).createSnapshot('too-late'), refused);
  clock.advance(3_600_000);
  await assert.rejects(pubsub.subscription(SUB).seek('mine'), { code: 5 });
});

test('a detached subscription has no backlog, gets nothing more, and cannot be pulled, sought or snapshot', async (t) => {
  const running = await testServer(t, manualClock(START));
  const { pubsub, publish, pull, server, call } = running;
  await running.create('orders', SUB);
  await publish('orders', message('a'));
  const subscription = pubsub.subscription(SUB);
  assert.equal((await subscription.detached())[0], false);
  await pubsub.detachSubscription(SUB);
  assert.equal((await subscription.detached())[0], true);
  await publish('orders', message('b'));
  assert.deepEqual([server.stats().outstanding, server.stats().backlog], [0, 0]);
  await assert.rejects(pull(SUB), refused);
  await assert.rejects(subscription.seek(new Date(START)), refused);
  await assert.rejects(subscription.createSnapshot('none'), refused);
  const listed = await call('ListTopicSubscriptions', { topic: topicName('orders') });
  assert.deepEqual(listed['subscriptions'], []);
  const changed = { name: subscriptionName(SUB), labels: { a: 'b' } };
  await call('UpdateSubscription', { subscription: changed, updateMask: { paths: ['labels'] } });
  await subscription.delete();
  await assert.rejects(pubsub.detachSubscription(SUB), { code: 5 });
});

test('detaching ends open streams and pushes', async (t) => {
  const { call, create, publish, stream, server } = await testServer(t, manualClock(START));
  await create('orders', SUB);
  await create('orders', 'push-sub', { pushConfig: { pushEndpoint: 'http://127.0.0.1:1/' } });
  const codes: (number | undefined)[] = [];
  const pulling = stream();
  pulling.on('error', (error: Error & { code?: number }) => codes.push(error.code));
  pulling.on('data', () => {});
  pulling.write({ subscription: subscriptionName(SUB), streamAckDeadlineSeconds: 10 });
  await publish('orders', message('a'));
  await until(() => server.stats().outstanding > 0);
  for (const id of [SUB, 'push-sub'])
    await call('DetachSubscription', { subscription: subscriptionName(id) });
  await until(() => codes.length === 1);
  assert.deepEqual(codes, [9]);
  const { outstanding, backlog, pushing } = server.stats();
  assert.deepEqual([outstanding, backlog, pushing], [0, 0, 0]);
  const pushConfig = { pushEndpoint: 'http://127.0.0.1:1/' };
  await call('ModifyPushConfig', { subscription: subscriptionName('push-sub'), pushConfig });
  await publish('orders', message('b'));
  assert.equal(server.stats().backlog, 0);
});

test('a purge frees a stream for what comes next, and a replay reaches it by itself', async (t) => {
  const clock = manualClock(START);
  const { pubsub, create, publish, stream, server } = await testServer(t, clock);
  await create('orders', SUB, { retainAckedMessages: true });
  const pulling = stream();
  const got: string[] = [];
  pulling.on('error', () => {});
  pulling.on('data', ({ receivedMessages }: StreamingPullResponse) => {
    for (const received of receivedMessages ?? []) got.push(text(received));
  });
  pulling.write({
    subscription: subscriptionName(SUB),
    streamAckDeadlineSeconds: 600,
    maxOutstandingMessages: '1',
  });
  await publish('orders', message('a'), message('b'));
  await until(() => got.length === 1);
  await pubsub.subscription(SUB).seek(new Date(START + MINUTE));
  clock.advance(2 * MINUTE);
  await publish('orders', message('c'));
  await until(() => got.length === 2);
  assert.deepEqual(got, ['a', 'c']);
  await pubsub.subscription(SUB).seek(new Date(START));
  await until(() => got.length === 3);
  assert.deepEqual(got, ['a', 'c', 'a']);
  assert.deepEqual([server.stats().outstanding, server.stats().backlog], [1, 2]);
  pulling.cancel();
});
