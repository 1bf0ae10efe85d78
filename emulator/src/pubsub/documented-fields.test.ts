/** What the service fills in by itself, and what a request may hold only once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { subscriptionName, testServer, topicName } from './test-server.ts';

test('makes up a name for a subscription that has none, in the project of its topic', async (t) => {
  const { call } = await testServer(t);
  await call('CreateTopic', { name: topicName('orders') });
  const names = new Set<unknown>();
  for (let round = 0; round < 2; round += 1) {
    const { name } = await call('CreateSubscription', { topic: topicName('orders') });
    assert.match(String(name), /^projects\/test-project\/subscriptions\/[a-z][a-z0-9-]+$/);
    names.add(name);
  }
  assert.equal(names.size, 2);
});

test('a subscription shows the retention of its topic as long as there is the topic', async (t) => {
  const { call, create } = await testServer(t);
  await create('orders', 'orders-sub');
  const shown = async (): Promise<unknown> =>
    (await call('GetSubscription', { subscription: subscriptionName('orders-sub') }))[
      'topicMessageRetentionDuration'
    ];
  assert.equal(await shown(), null);
  const topic = { name: topicName('orders'), messageRetentionDuration: { seconds: 3600 } };
  await call('UpdateTopic', { topic, updateMask: { paths: ['message_retention_duration'] } });
  assert.deepEqual(await shown(), { seconds: '3600', nanos: 0 });
  await call('DeleteTopic', { topic: topicName('orders') });
  assert.equal(await shown(), null);
});

test('a push subscription always names the version of its envelope', async (t) => {
  const { call, create } = await testServer(t);
  const pushEndpoint = 'http://127.0.0.1:9/push';
  const attributes = { 'x-goog-version': 'v1beta2' };
  const subscription = subscriptionName('orders-sub');
  const version = async (): Promise<unknown> =>
    ((await call('GetSubscription', { subscription }))['pushConfig'] as { attributes: unknown }).attributes;
  await create('orders', 'orders-sub', { pushConfig: { pushEndpoint } });
  assert.deepEqual(await version(), { 'x-goog-version': 'v1' });
  await call('ModifyPushConfig', { subscription, pushConfig: { pushEndpoint, attributes } });
  await call('ModifyPushConfig', { subscription, pushConfig: { pushEndpoint } });
  assert.deepEqual(await version(), attributes, 'what a call leaves out is not changed');
});

test('refuses different ordering keys in one request', async (t) => {
  const { publish, create, pull } = await testServer(t);
  await create('orders', 'orders-sub');
  const message = (orderingKey: string) => ({ data: Buffer.from('x'), orderingKey });
  for (const keys of [
    ['a', 'b'],
    ['', 'a'],
    ['a', ''],
  ]) {
    await assert.rejects(publish('orders', ...keys.map(message)), { code: 3 }, keys.join());
  }
  assert.deepEqual(await pull('orders-sub'), []);
});

test('refuses on an open stream what only its first request may say', async (t) => {
  const { stream, create } = await testServer(t);
  await create('orders', 'orders-sub');
  for (const field of [
    { maxOutstandingMessages: '5' },
    { maxOutstandingBytes: '5' },
    { protocolVersion: '1' },
  ]) {
    const call = stream();
    const ended = new Promise((resolve) => {
      call.on('error', ({ code }: Error & { code?: number }) => resolve(code));
      call.on('end', () => resolve('the end'));
    });
    call.on('data', () => {});
    call.write({ subscription: subscriptionName('orders-sub'), streamAckDeadlineSeconds: 10 });
    call.write(field);
    assert.equal(await ended, 3, JSON.stringify(field));
  }
});
