import assert from 'node:assert/strict';
import { test } from 'node:test';
import { subscriptionName, testServer, texts, topicName } from './test-server.ts';

test('creates, gets, lists and deletes subscriptions for the real client, with the defaults of the service', async (t) => {
  const { pubsub } = await testServer(t);
  const [topic] = await pubsub.createTopic('orders');
  const [subscription] = await topic.createSubscription('orders-sub', { labels: { a: 'b' } });
  const [metadata] = await subscription.getMetadata();
  assert.equal(metadata.ackDeadlineSeconds, 10);
  assert.deepEqual(metadata.labels, { a: 'b' });
  assert.equal(Number(metadata.messageRetentionDuration?.seconds), 604_800);
  assert.equal(Number(metadata.expirationPolicy?.ttl?.seconds), 2_678_400);
  assert.equal(metadata.state, 'ACTIVE');
  const names = (await pubsub.getSubscriptions())[0].map(({ name }) => name);
  assert.deepEqual(names, [subscriptionName('orders-sub')]);
  assert.equal((await topic.getSubscriptions())[0].length, 1);
  await assert.rejects(topic.createSubscription('orders-sub'), { code: 6 });
  await subscription.delete();
  await assert.rejects(subscription.getMetadata(), {
    code: 5,
    details: 'Resource not found (resource=orders-sub).',
  });
});

test('updates what may change, and nothing that is not in the mask', async (t) => {
  const { pubsub, call } = await testServer(t);
  const [topic] = await pubsub.createTopic('orders');
  await pubsub.createTopic('dead');
  const [subscription] = await topic.createSubscription('orders-sub');
  await subscription.setMetadata({
    ackDeadlineSeconds: 77,
    labels: { x: 'y' },
    retryPolicy: { minimumBackoff: { seconds: 3 }, maximumBackoff: { seconds: 9 } },
    deadLetterPolicy: { deadLetterTopic: topicName('dead'), maxDeliveryAttempts: 7 },
    messageRetentionDuration: { seconds: 600 },
    expirationPolicy: { ttl: { seconds: 86_400 } },
  });
  const [metadata] = await subscription.getMetadata();
  assert.equal(metadata.ackDeadlineSeconds, 77);
  assert.equal(Number(metadata.retryPolicy?.minimumBackoff?.seconds), 3);
  assert.equal(metadata.deadLetterPolicy?.maxDeliveryAttempts, 7);
  const name = subscriptionName('orders-sub');
  await call('UpdateSubscription', {
    subscription: { name, ackDeadlineSeconds: 20, labels: { ignored: 'yes' }, filter: 'ignored' },
    updateMask: { paths: ['ack_deadline_seconds'] },
  });
  const [after] = await subscription.getMetadata();
  assert.deepEqual([after.ackDeadlineSeconds, after.labels], [20, { x: 'y' }]);
  for (const paths of [
    ['topic'],
    ['enable_message_ordering'],
    ['filter'],
    ['nonsense'],
    ['retry_policy.minimum_backoff'],
    [],
  ]) {
    await assert.rejects(call('UpdateSubscription', { subscription: { name }, updateMask: { paths } }), {
      code: 3,
    });
  }
  await assert.rejects(
    call('UpdateSubscription', {
      subscription: { name, bigqueryConfig: { table: 'p.d.t' } },
      updateMask: { paths: ['bigquery_config'] },
    }),
    { code: 12 },
  );
});

test('refuses options that it does not carry out, by name', async (t) => {
  const { call, create } = await testServer(t);
  await create('orders', 'first');
  const options = {
    detached: true,
    bigqueryConfig: { table: 'p.d.t' },
    cloudStorageConfig: { bucket: 'b' },
    bigtableConfig: { table: 't' },
    messageTransforms: [{ javascriptUdf: { functionName: 'f', code: 'x' } }],
    tags: { '1/a': 'b' },
  };
  const subscription = { name: subscriptionName('second'), topic: topicName('orders') };
  for (const [field, value] of Object.entries(options)) {
    const snake = field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    await assert.rejects(call('CreateSubscription', { ...subscription, [field]: value }), {
      code: 12,
      details: `subscription.${snake} is not implemented by this server`,
    });
  }
  const pushEndpoint = 'http://127.0.0.1:1/';
  for (const extra of [{ oidcToken: { serviceAccountEmail: 'a@b' } }, { attributes: { a: 'b' } }]) {
    const pushConfig = { pushEndpoint, ...extra };
    await assert.rejects(call('CreateSubscription', { ...subscription, pushConfig }), { code: 12 });
  }
});

test('refuses values outside the limits', async (t) => {
  const { call, create } = await testServer(t);
  await create('orders', 'first');
  const policy = (maxDeliveryAttempts: number) => ({
    deadLetterPolicy: { deadLetterTopic: topicName('orders'), maxDeliveryAttempts },
  });
  const retry = (min: number, max: number) => ({
    retryPolicy: { minimumBackoff: { seconds: min }, maximumBackoff: { seconds: max } },
  });
  const options = [
    { ackDeadlineSeconds: 9 },
    { ackDeadlineSeconds: 601 },
    { ackDeadlineSeconds: -1 },
    { messageRetentionDuration: { seconds: 599 } },
    { messageRetentionDuration: { seconds: 2_678_401 } },
    { expirationPolicy: { ttl: { seconds: 60 } } },
    policy(4),
    policy(101),
    retry(1, 601),
    retry(20, 10),
    { pushConfig: { pushEndpoint: 'ftp://example.com' } },
    { pushConfig: { pushEndpoint: 'nonsense' } },
    { topic: 'orders' },
    { name: subscriptionName('goog') },
  ];
  for (const option of options) {
    const subscription = { name: subscriptionName('second'), topic: topicName('orders'), ...option };
    await assert.rejects(call('CreateSubscription', subscription), { code: 3 }, JSON.stringify(option));
  }
  const missing = { deadLetterPolicy: { deadLetterTopic: topicName('missing'), maxDeliveryAttempts: 5 } };
  await assert.rejects(
    call('CreateSubscription', { name: subscriptionName('second'), topic: topicName('orders'), ...missing }),
    { code: 5 },
  );
});

test('a subscription has its own copy of what is published after it was made', async (t) => {
  const { create, publish, pull, ack } = await testServer(t);
  await create('orders', 'early');
  await publish('orders', { data: Buffer.from('one') });
  await create('orders', 'late');
  await publish('orders', { data: Buffer.from('two') });
  const early = await pull('early');
  assert.equal(texts(early), 'one,two');
  await ack('early', ...early);
  assert.equal(texts(await pull('late')), 'two');
});

test('a subscription outlives its topic, keeps its backlog and gets nothing from a topic of the same name', async (t) => {
  const { call, create, publish, pull } = await testServer(t);
  await create('orders', 'orders-sub');
  await publish('orders', { data: Buffer.from('one') });
  await call('DeleteTopic', { topic: topicName('orders') });
  const found = await call('GetSubscription', { subscription: subscriptionName('orders-sub') });
  assert.equal(found['topic'], '_deleted-topic_');
  await create('orders', 'new-sub');
  await publish('orders', { data: Buffer.from('two') });
  assert.equal(texts(await pull('orders-sub')), 'one');
  await call('DeleteSubscription', { subscription: subscriptionName('orders-sub') });
  await assert.rejects(pull('orders-sub'), { code: 5 });
});

test('shows the push configuration of what is pulled as an empty message, in every answer', async (t) => {
  const { pubsub, call } = await testServer(t);
  const [topic] = await pubsub.createTopic('orders');
  const [subscription, created] = await topic.createSubscription('orders-sub');
  const name = subscriptionName('orders-sub');
  const [metadata] = await subscription.getMetadata();
  const update = { subscription: { name, labels: { a: 'b' } }, updateMask: { paths: ['labels'] } };
  const updated = await call('UpdateSubscription', update);
  const listed = await call('ListSubscriptions', { project: 'projects/test-project' });
  const [first] = listed['subscriptions'] as readonly Readonly<{ pushConfig: unknown }>[];
  for (const { pushConfig } of [created, metadata, updated, first!] as readonly { pushConfig?: unknown }[]) {
    assert.notEqual(pushConfig ?? null, null);
    assert.equal(Reflect.get(pushConfig as object, 'pushEndpoint'), '');
    assert.deepEqual(Reflect.get(pushConfig as object, 'attributes'), {});
    assert.equal(Reflect.get(pushConfig as object, 'oidcToken') ?? null, null);
  }
  // What was read can be written back.
  await call('UpdateSubscription', {
    subscription: { ...metadata, labels: { c: 'd' } },
    updateMask: { paths: ['push_config', 'labels'] },
  });
  assert.deepEqual(
    (await call('Pull', { subscription: name, maxMessages: 1, returnImmediately: true })).receivedMessages,
    [],
  );
});
