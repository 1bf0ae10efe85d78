import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { manualClock, type ManualClock } from '../manual-clock.ts';
import { movableClock } from '../movable-clock.ts';
import { subscriptionName, testServer, texts, topicName, until, type TestServer } from './test-server.ts';

const [MINUTE_MS, DAY_MS] = [60_000, 86_400_000];
const NOT_FOUND = { code: 5 };
const name = subscriptionName('work');

type Started = TestServer & Readonly<{ clock: ManualClock }>;

/** With a subscription `work` that expires after two days. */
async function started(t: TestContext, options: object = {}): Promise<Started> {
  const clock = manualClock();
  const server = await testServer(t, clock);
  await server.create('orders', 'work', { ...twoDays(), ...options });
  return { ...server, clock };
}

const twoDays = () => ({
  messageRetentionDuration: { seconds: 86_400 },
  expirationPolicy: { ttl: { seconds: 172_800 } },
});

const config = ({ call }: TestServer) => call('GetSubscription', { subscription: name });
const isGone = (server: TestServer) => assert.rejects(config(server), NOT_FOUND);

test('a subscription that no client uses is deleted when its ttl has passed, and not before', async (t) => {
  const server = await started(t);
  const { clock, call, log, publish } = server;
  clock.advance(2 * DAY_MS - 1);
  assert.equal((await config(server))['name'], name);
  clock.advance(1);
  await assert.rejects(server.pull('work'), NOT_FOUND);
  assert.deepEqual(log, [`${name} has expired: it was not used for the time of its expiration policy`]);
  await publish('orders', { data: Buffer.from('a') });
  const { subscriptions } = await call('ListTopicSubscriptions', { topic: topicName('orders') });
  assert.deepEqual(subscriptions, []);
  assert.deepEqual(
    (await call('ListSubscriptions', { project: 'projects/test-project' }))['subscriptions'],
    [],
  );
});

test('without a policy it takes 31 days; with a policy without a ttl it never happens', async (t) => {
  const server = await started(t, { expirationPolicy: null });
  await server.create('orders', 'eternal', { expirationPolicy: {} });
  server.clock.advance(31 * DAY_MS - 1);
  await config(server);
  server.clock.advance(1);
  await isGone(server);
  server.clock.advance(4_000 * DAY_MS);
  await server.call('GetSubscription', { subscription: subscriptionName('eternal') });
});

test('everything that a subscriber does is use; publishing, reading and listing are none', async (t) => {
  const server = await started(t);
  const { call, clock } = server;
  const subscription = name;
  await server.publish('orders', { data: Buffer.from('a') });
  // Settled again and again: that is accepted as well.
  const received = await server.pull('work');
  const uses: Record<string, () => Promise<unknown>> = {
    'an empty pull': () => server.pull('work'),
    'an acknowledgement': () => server.ack('work', ...received),
    'a nack': () => server.nack('work', ...received),
    'a seek': () => call('Seek', { subscription, time: { seconds: 0 } }),
    'a snapshot': () => call('CreateSnapshot', { name: 'projects/p/snapshots/shot', subscription }),
    'an update': () =>
      call('UpdateSubscription', {
        subscription: { name, labels: { a: 'b' } },
        updateMask: { paths: ['labels'] },
      }),
    'a change of the push': () => call('ModifyPushConfig', { subscription }),
  };
  for (const [what, use] of Object.entries(uses)) {
    clock.advance(2 * DAY_MS - 1);
    await assert.doesNotReject(use, what);
  }
  clock.advance(2 * DAY_MS - 1);
  await server.publish('orders', { data: Buffer.from('b') });
  await config(server);
  await call('ListSubscriptions', { project: 'projects/test-project' });
  await call('ListTopicSubscriptions', { topic: topicName('orders') });
  clock.advance(1);
  await isGone(server);
});

test('an update to a ttl that would have passed already counts from the update', async (t) => {
  const server = await started(t, { expirationPolicy: null });
  server.clock.advance(20 * DAY_MS);
  const subscription = { name, expirationPolicy: { ttl: { seconds: 86_400 } } };
  await server.call('UpdateSubscription', { subscription, updateMask: { paths: ['expiration_policy'] } });
  server.clock.advance(DAY_MS - 1);
  await config(server);
  server.clock.advance(1);
  await isGone(server);
});

test('a request that is refused is no use', async (t) => {
  const server = await started(t);
  server.clock.advance(2 * DAY_MS - 1);
  await assert.rejects(server.call('Pull', { subscription: name, maxMessages: 0 }));
  await assert.rejects(server.call('Seek', { subscription: name }));
  server.clock.advance(1);
  await isGone(server);
});

test('an open stream keeps it for as long as it is open, and the time starts at its end', async (t) => {
  const server = await started(t);
  const { clock, stream } = server;
  const open = stream();
  const received: string[] = [];
  let ended = false;
  open.on('data', ({ receivedMessages = [] }) => received.push(texts(receivedMessages)));
  open.on('end', () => (ended = true));
  open.write({ subscription: name, streamAckDeadlineSeconds: 10 });
  await until(() => received.length > 0);
  clock.advance(40 * DAY_MS);
  await config(server);
  open.end();
  await until(() => ended);
  clock.advance(2 * DAY_MS - 1);
  await config(server);
  clock.advance(1);
  await isGone(server);
});

async function endpoint(t: TestContext, status: () => number) {
  let requests = 0;
  const http = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    requests += 1;
    request.resume();
    response.writeHead(status()).end();
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  t.after(() => http.close());
  const { port } = http.address() as AddressInfo;
  return { pushConfig: { pushEndpoint: `http://127.0.0.1:${port}/` }, requests: () => requests };
}

test('a push that succeeds is use, one that fails is none, and expiry ends the pushes', async (t) => {
  let status = 200;
  const { pushConfig, requests } = await endpoint(t, () => status);
  const retryPolicy = { minimumBackoff: { seconds: 600 }, maximumBackoff: { seconds: 600 } };
  const server = await started(t, { pushConfig, retryPolicy });
  const { clock, server: running } = server;
  const pushed = (count: number) => until(() => requests() === count && running.inFlight() === 0);
  clock.advance(2 * DAY_MS - 1);
  await server.publish('orders', { data: Buffer.from('a') });
  await pushed(1);
  clock.advance(2 * DAY_MS - 15 * MINUTE_MS);
  status = 500;
  await server.publish('orders', { data: Buffer.from('b') });
  await pushed(2);
  clock.advance(10 * MINUTE_MS);
  await pushed(3);
  // The next attempt would be due after the expiry: no client asks for the subscription meanwhile.
  status = 200;
  clock.advance(10 * MINUTE_MS);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(requests(), 3);
  assert.equal(clock.timers(), 0);
  await isGone(server);
});

test('its name can be used again, and the new one has nothing of the old', async (t) => {
  const server = await started(t);
  await server.publish('orders', { data: Buffer.from('a') });
  const [held] = await server.pull('work');
  server.clock.advance(2 * DAY_MS - 1);
  await server.create('orders', 'work', twoDays()).then(
    () => assert.fail('it was there still'),
    ({ code }: { code: number }) => assert.equal(code, 6),
  );
  server.clock.advance(1);
  await server.create('orders', 'work', twoDays());
  assert.ok(held);
  assert.deepEqual(await server.pull('work'), []);
  server.clock.advance(2 * DAY_MS - 1);
  await config(server);
});

test('no timer stands for an expiry, so that a clock runs until idle without running ahead', async (t) => {
  const clock = movableClock(async () => {});
  t.after(() => clock.close());
  clock.freeze();
  const server = await testServer(t, clock);
  await server.create('orders', 'work', twoDays());
  await server.publish('orders', { data: Buffer.from('a') });
  assert.equal(clock.nextDueMs(), undefined);
  const start = clock.now();
  await clock.runUntilIdle(400 * DAY_MS);
  assert.equal(clock.now(), start);
  await config(server);
  await clock.advance(2 * DAY_MS);
  assert.equal(server.server.stats().subscriptions, 0);
});

test('a ttl below one day or below the retention of messages is refused', async (t) => {
  const { call, create } = await started(t);
  const days = (count: number) => ({ seconds: count * 86_400 });
  const invalid = (message: RegExp) => ({ code: 3, message });
  const shorter = { expirationPolicy: { ttl: days(1) }, messageRetentionDuration: { seconds: 86_401 } };
  const text = /expiration_policy\.ttl \(seconds\): 86400\. .* message_retention_duration, 86401\./;
  await assert.rejects(create('orders', 'more', shorter), invalid(text));
  // 7 days of retention are the default.
  await assert.rejects(create('orders', 'more', { expirationPolicy: { ttl: days(6) } }), invalid(/604800/));
  await create('orders', 'more', { expirationPolicy: { ttl: days(7) } });
  const changed = (fields: object, path: string) =>
    call('UpdateSubscription', { subscription: { name, ...fields }, updateMask: { paths: [path] } });
  const longer = { messageRetentionDuration: days(3) };
  await assert.rejects(changed(longer, 'message_retention_duration'), invalid(/172800.*259200/));
  await changed({ expirationPolicy: {} }, 'expiration_policy');
  await changed(longer, 'message_retention_duration');
  await assert.rejects(
    changed({ expirationPolicy: { ttl: days(2) } }, 'expiration_policy'),
    invalid(/259200/),
  );
});

test('what is saved knows for how long it was not used; the time in a file does not count', async (t) => {
  const first = await started(t);
  first.clock.advance(DAY_MS + 500);
  const saved = first.server.save() as { subscriptions: { idle?: string }[] };
  assert.equal(saved.subscriptions[0]?.idle, '86400.500s');
  const later = manualClock(first.clock.now() + 100 * DAY_MS);
  const second = await testServer(t, later);
  second.server.load(saved);
  const again = second.server.save() as typeof saved;
  assert.deepEqual(again.subscriptions, saved.subscriptions);
  later.advance(DAY_MS - 501);
  await config(second);
  later.advance(1);
  await isGone(second);
  for (const idle of ['172800s', '-1s', 'long']) {
    const subscriptions = [{ ...saved.subscriptions[0], idle }];
    assert.throws(
      () => second.server.load({ ...saved, subscriptions }),
      /^SavedError: pubsub\.subscriptions\[0\]\.idle is "[^"]+"; accepted: a duration/,
      idle,
    );
  }
});
