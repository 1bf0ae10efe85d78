import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { createFaults } from '../faults/index.ts';
import { manualClock } from '../manual-clock.ts';
import { subscriptionName, testServer, texts, topicName, until, type TestServer } from './test-server.ts';

const HOUR = 3_600_000;
const message = (content: string, rest: object = {}) => ({ data: Buffer.from(content), ...rest });
/** As through a file. */
const filed = (saved: object): object => JSON.parse(JSON.stringify(saved)) as object;
/** A server of another process, on a clock that stands where the other stood. */
async function fresh(t: TestContext, saved: object, now?: number) {
  const clock = manualClock(now);
  const running = await testServer(t, clock);
  running.server.load(filed(saved));
  return { ...running, clock };
}
const configOf = ({ call }: TestServer, id: string) =>
  call('GetSubscription', { subscription: subscriptionName(id) });

test('a fresh server has every option of topics, subscriptions and snapshots that was saved', async (t) => {
  const first = await testServer(t, manualClock());
  const { call, create } = first;
  const retention = { seconds: 1200, nanos: 0 };
  const topic = {
    name: topicName('orders'),
    labels: { team: 'a' },
    messageRetentionDuration: retention,
    messageStoragePolicy: { allowedPersistenceRegions: ['europe-west1'], enforceInTransit: true },
    kmsKeyName: 'projects/p/locations/l/keyRings/r/cryptoKeys/k',
    ingestionDataSourceSettings: {
      cloudStorage: {
        bucket: 'mine',
        matchGlob: '**',
        minimumObjectCreateTime: { seconds: 1_700_000_000, nanos: 5 },
        textFormat: { delimiter: ';' },
      },
      platformLogsSettings: { severity: 'INFO' },
    },
  };
  await call('CreateTopic', topic);
  await create('orders', 'plain');
  await create('orders', 'pulled', {
    ackDeadlineSeconds: 77,
    messageRetentionDuration: { seconds: 601, nanos: 500_000_000 },
    labels: { stage: 'test' },
    enableMessageOrdering: true,
    expirationPolicy: {},
    deadLetterPolicy: { deadLetterTopic: topicName('orders'), maxDeliveryAttempts: 7 },
    retryPolicy: { minimumBackoff: { seconds: 0 }, maximumBackoff: { seconds: 20 } },
    filter: 'NOT attributes:skip',
    retainAckedMessages: true,
    enableExactlyOnceDelivery: true,
  });
  await create('orders', 'pushed', {
    pushConfig: { pushEndpoint: 'http://127.0.0.1:1/none', noWrapper: { writeMetadata: true } },
    messageRetentionDuration: { seconds: 86_400 },
    expirationPolicy: { ttl: { seconds: 86_400 } },
  });
  await create('orders', 'detached');
  await call('DetachSubscription', { subscription: subscriptionName('detached') });
  await create('gone', 'orphan');
  const snapshot = { name: 'projects/test-project/snapshots/shot', labels: { b: 'c' } };
  await call('CreateSnapshot', { ...snapshot, subscription: subscriptionName('pulled') });
  await call('DeleteTopic', { topic: topicName('gone') });

  const saved = first.server.save();
  const second = await fresh(t, saved);
  for (const id of ['plain', 'pulled', 'pushed', 'detached', 'orphan']) {
    assert.deepEqual(await configOf(second, id), await configOf(first, id), id);
  }
  const [, same] = await Promise.all(
    [first, second].map((each) => each.call('GetTopic', { topic: topic.name })),
  );
  assert.deepEqual(same, await call('GetTopic', { topic: topic.name }));
  const subscriptionsOf = (each: TestServer) => each.call('ListTopicSubscriptions', { topic: topic.name });
  assert.deepEqual(await subscriptionsOf(second), await subscriptionsOf(first));
  const shotOf = (each: TestServer) => each.call('GetSnapshot', { snapshot: snapshot.name });
  assert.deepEqual(await shotOf(second), await shotOf(first));
  // Its own message IDs may have begun above those of the other.
  assert.deepEqual({ ...second.server.save(), nextMessageId: '' }, { ...saved, nextMessageId: '' });
});

test('messages wait in their order with their attempts, and what was outstanding waits again uncounted', async (t) => {
  const clock = manualClock();
  const first = await testServer(t, clock);
  await first.call('CreateTopic', { name: topicName('dead') });
  await first.create('orders', 'work', {
    enableMessageOrdering: true,
    deadLetterPolicy: { deadLetterTopic: topicName('dead'), maxDeliveryAttempts: 5 },
    retryPolicy: { minimumBackoff: { seconds: 600 } },
  });
  const keyed = (content: string, orderingKey: string) => message(content, { orderingKey });
  const ids = [
    ...(await first.publish('orders', keyed('a1', 'a'), keyed('a2', 'a'))),
    ...(await first.publish('orders', keyed('b1', 'b'), keyed('b2', 'b'))),
    ...(await first.publish('orders', message('free', { attributes: { x: 'ü' } }))),
  ];
  const got = await first.pull('work');
  assert.equal(texts(got), 'a1,a2,b1,b2,free');
  // `a1` has failed once and backs off; the others are outstanding.
  await first.nack('work', got[0]!);

  const second = await fresh(t, first.server.save(), clock.now() + 5_000);
  const again = await second.pull('work');
  assert.deepEqual(
    again.map(({ message: { messageId } }) => messageId),
    ids,
  );
  assert.deepEqual(
    again.map(({ deliveryAttempt }) => deliveryAttempt),
    [2, 1, 1, 1, 1],
  );
  assert.deepEqual(
    again.map((received) => received.message),
    got.map((received) => received.message),
  );
  // The fifth failure in all takes it to the dead-letter topic, whichever server it happened on.
  await second.create('dead', 'dead-lettered');
  await second.nack('work', again[0]!);
  for (let failures = 3; failures <= 5; failures += 1) {
    second.clock.advance(600_000);
    await second.nack('work', (await second.pull('work')).find((each) => texts([each]) === 'a1')!);
  }
  assert.equal(texts(await second.pull('dead-lettered')), 'a1');
});

test('what a topic and a subscription retain can be sought after loading, and a snapshot too', async (t) => {
  const clock = manualClock();
  const first = await testServer(t, clock);
  await first.call('CreateTopic', { name: topicName('orders'), messageRetentionDuration: { seconds: 3600 } });
  await first.create('orders', 'retains', { retainAckedMessages: true });
  await first.publish('orders', message('1'), message('2'));
  const snapshot = 'projects/test-project/snapshots/shot';
  await first.call('CreateSnapshot', { name: snapshot, subscription: subscriptionName('retains') });
  await first.ack('retains', ...(await first.pull('retains')));
  await first.publish('orders', message('3'));
  await first.ack('retains', ...(await first.pull('retains')));
  await first.create('orders', 'late');

  const second = await fresh(t, first.server.save(), clock.now() + 1_000);
  assert.equal(texts(await second.pull('retains')), '');
  const seek = (id: string, to: object) => second.call('Seek', { subscription: subscriptionName(id), ...to });
  await seek('late', { time: { seconds: 1 } });
  assert.equal(texts(await second.pull('late')), '1,2,3', 'from what the topic retains');
  await seek('retains', { snapshot });
  assert.equal(texts(await second.pull('retains')), '1,2,3', 'the snapshot');
});

test('message IDs of before are never given again, although both clocks show the same time', async (t) => {
  const first = await testServer(t, manualClock());
  await first.create('orders', 'work');
  const before = await first.publish('orders', ...Array.from({ length: 50 }, (_, i) => message(`${i}`)));
  await first.ack('work', ...(await first.pull('work')));
  const second = await fresh(t, first.server.save());
  const [after] = await second.publish('orders', message('x'));
  assert.ok(before.every((id) => BigInt(id) < BigInt(after!)));
});

test('a real subscriber that is connected during a load receives what is published afterwards', async (t) => {
  const running = await testServer(t);
  await running.create('orders', 'work');
  const saved = filed(running.server.save());
  const got: string[] = [];
  const errors: unknown[] = [];
  const subscription = running.pubsub.subscription('work', { streamingOptions: { maxStreams: 1 } });
  subscription.on('message', (received) => {
    got.push(received.data.toString());
    received.ack();
  });
  subscription.on('error', (error) => errors.push(error));
  await running.publish('orders', message('before'));
  await until(() => got.length === 1);
  running.server.load(saved);
  await running.publish('orders', message('after'));
  await until(() => got.includes('after'));
  await subscription.close();
  assert.deepEqual([got, errors], [['before', 'after'], []]);
});

test('streams and waiting pulls end with UNAVAILABLE, ack IDs are stale, and no timer of before is left', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  const empty = running.server.save();
  await running.create('orders', 'work', { retryPolicy: { minimumBackoff: { seconds: 60 } } });
  await running.publish('orders', message('a'), message('b'));
  const [one, other] = await running.pull('work');
  await running.nack('work', one!);
  await running.create('orders', 'idle');
  const ends: unknown[] = [];
  const stream = running.stream();
  stream.resume();
  stream.on('error', (error: Error & { code?: number }) => ends.push(error.code));
  stream.write({ subscription: subscriptionName('idle'), streamAckDeadlineSeconds: 10 });
  const waiting = running.call('Pull', { subscription: subscriptionName('idle'), maxMessages: 1 });
  await until(() => clock.timers() === 2);
  const saved = filed(running.server.save());
  running.server.load(empty);
  assert.equal(clock.timers(), 0);
  await assert.rejects(waiting, { code: 14 });
  await until(() => ends.length === 1);
  assert.deepEqual(ends, [14]);
  assert.deepEqual([running.server.stats().topics, running.server.stats().backlog], [0, 0]);
  running.server.load(saved);
  await running.ack('work', other!);
  assert.equal(texts(await running.pull('work')), 'a,b', 'the old ack ID settles nothing');
});

test('a push in flight is dropped without settling anything, and those of the loaded state go on by themselves', async (t) => {
  const bodies: string[] = [];
  const closed: number[] = [];
  const target = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    request.on('data', (chunk: Buffer) => bodies.push(chunk.toString()));
    response.on('close', () => closed.push(response.statusCode));
    // The first hangs.
    if (bodies.length > 0) response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    target.closeAllConnections();
    target.close();
  });
  const pushEndpoint = `http://127.0.0.1:${(target.address() as AddressInfo).port}/push`;
  const running = await testServer(t, manualClock());
  await running.create('orders', 'pushed', { pushConfig: { pushEndpoint } });
  await running.publish('orders', message('a'));
  await until(() => bodies.length === 1 && running.server.stats().pushing === 1);
  const saved = filed(running.server.save());
  running.server.load({});
  await until(() => closed.length === 1);
  assert.deepEqual([running.server.stats().pushing, bodies.length, running.log], [0, 1, []]);
  running.server.load(saved);
  await until(() => bodies.length === 2);
  await until(() => running.server.stats().outstanding === 0);
  assert.equal(running.server.stats().backlog, 0);
  assert.deepEqual(running.log, []);
});

test('retention goes by the times of publishing, also for what was loaded', async (t) => {
  const first = await testServer(t, manualClock(HOUR));
  await first.create('orders', 'work', { messageRetentionDuration: { seconds: 1200 } });
  await first.publish('orders', message('a'));
  const second = await fresh(t, first.server.save(), 2 * HOUR);
  assert.equal(texts(await second.pull('work')), '');
});

test('what was handed over twice and acknowledged twice is retained once, and can be loaded', async (t) => {
  const faults = createFaults();
  const first = await testServer(t, manualClock(), undefined, faults);
  await first.create('orders', 'retains', { retainAckedMessages: true });
  const about = { service: 'pubsub', method: 'deliver', resource: subscriptionName('retains') };
  faults.set({ rules: [{ ...about, nth: 1, action: { type: 'duplicate' } }] });
  await first.publish('orders', message('a'));
  const got = await first.pull('retains');
  assert.equal(texts(got), 'a,a');
  await first.ack('retains', ...got);
  const second = await fresh(t, first.server.save());
  await second.call('Seek', { subscription: subscriptionName('retains'), time: { seconds: 1 } });
  assert.equal(texts(await second.pull('retains')), 'a');
});
