import assert from 'node:assert/strict';
import { test } from 'node:test';
import { METHODS } from '../faults/methods.ts';
import { pubsubServiceDefinitions } from './protos.ts';
import { testServer, topicName } from './test-server.ts';

test('creates, gets, lists, relabels and deletes topics for the real client', async (t) => {
  const { pubsub } = await testServer(t);
  const [topic] = await pubsub.createTopic({ name: topicName('orders'), labels: { team: 'blue' } });
  assert.equal(topic.name, topicName('orders'));
  assert.deepEqual((await topic.getMetadata())[0].labels, { team: 'blue' });
  await topic.setMetadata({ labels: { team: 'red' } });
  assert.deepEqual((await topic.getMetadata())[0].labels, { team: 'red' });
  await pubsub.createTopic('another');
  const [topics] = await pubsub.getTopics();
  assert.deepEqual(
    topics.map(({ name }) => name),
    [topicName('another'), topicName('orders')],
  );
  await topic.delete();
  assert.deepEqual(await topic.exists(), [false]);
});

test('says NOT_FOUND and ALREADY_EXISTS as the service does', async (t) => {
  const { pubsub } = await testServer(t);
  await assert.rejects(pubsub.topic('missing').getMetadata(), {
    code: 5,
    details: 'Resource not found (resource=missing).',
  });
  await assert.rejects(pubsub.topic('missing').publishMessage({ data: Buffer.from('x') }), { code: 5 });
  await assert.rejects(pubsub.topic('missing').delete(), { code: 5 });
  await assert.rejects(pubsub.topic('missing').createSubscription('sub'), { code: 5 });
  await pubsub.createTopic('orders');
  await assert.rejects(pubsub.createTopic('orders'), {
    code: 6,
    details: 'Resource already exists in the project (resource=orders).',
  });
});

test('pages through topics and through the subscriptions of a topic, of one project only', async (t) => {
  const { call } = await testServer(t);
  const all = ['aaa', 'bbb', 'ccc', 'ddd', 'eee'];
  for (const id of all) await call('CreateTopic', { name: topicName(id) });
  await call('CreateTopic', { name: 'projects/other/topics/fff' });
  const seen: unknown[] = [];
  let pageToken = '';
  for (let pages = 0; pages < 5; pages += 1) {
    const answer = await call('ListTopics', { project: 'projects/test-project', pageSize: 2, pageToken });
    seen.push((answer['topics'] as { name: string }[]).map(({ name }) => name));
    pageToken = String(answer['nextPageToken']);
    if (pageToken === '') break;
  }
  const [a, b, c, d, e] = all.map(topicName);
  assert.deepEqual(seen, [[a, b], [c, d], [e]]);

  for (const id of ['s-1', 's-2', 's-3']) {
    await call('CreateSubscription', {
      name: `projects/test-project/subscriptions/${id}`,
      topic: topicName('aaa'),
    });
  }
  const first = await call('ListTopicSubscriptions', { topic: topicName('aaa'), pageSize: 2 });
  assert.equal((first['subscriptions'] as string[]).length, 2);
  const second = await call('ListTopicSubscriptions', {
    topic: topicName('aaa'),
    pageSize: 2,
    pageToken: first['nextPageToken'],
  });
  assert.deepEqual(second['subscriptions'], ['projects/test-project/subscriptions/s-3']);
  await assert.rejects(call('ListTopics', { project: 'projects/p', pageToken: '!' }), { code: 3 });
  await assert.rejects(call('ListTopics', { project: 'projects/p', pageSize: -1 }), { code: 3 });
  await assert.rejects(call('ListTopics', { project: 'test-project' }), { code: 3 });
});

test('refuses illegal names', async (t) => {
  const { call } = await testServer(t);
  const illegal = ['ab', '1ab', 'goog-topic', 'with space', `a${'b'.repeat(255)}`, 'a/b', ''];
  for (const id of illegal) {
    await assert.rejects(call('CreateTopic', { name: topicName(id) }), { code: 3 }, id);
  }
  await assert.rejects(call('CreateTopic', { name: 'orders' }), { code: 3 });
  await call('CreateTopic', { name: topicName(`a${'b'.repeat(254)}`) });
  await call('CreateTopic', { name: topicName('a-_.~+%9') });
});

test('says INVALID_ARGUMENT for a name that no resource can have, whatever is asked of it', async (t) => {
  const { call } = await testServer(t);
  for (const name of [
    'nonsense',
    '',
    'projects/p/topics',
    'projects/p/subscriptions/ab',
    'projects/p/snapshots/abc',
  ]) {
    for (const topic of [name, 'projects/p/subscriptions/abc']) {
      await assert.rejects(call('GetTopic', { topic }), { code: 3 }, topic);
      await assert.rejects(call('DeleteTopic', { topic }), { code: 3 }, topic);
      await assert.rejects(call('ListTopicSubscriptions', { topic }), { code: 3 }, topic);
      await assert.rejects(call('Publish', { topic, messages: [{ data: Buffer.from('x') }] }), { code: 3 });
    }
    for (const subscription of [name, topicName('orders')]) {
      await assert.rejects(call('GetSubscription', { subscription }), { code: 3 }, subscription);
      await assert.rejects(call('DeleteSubscription', { subscription }), { code: 3 }, subscription);
      await assert.rejects(call('Pull', { subscription, maxMessages: 1 }), { code: 3 }, subscription);
      await assert.rejects(call('Acknowledge', { subscription, ackIds: ['x'] }), { code: 3 }, subscription);
    }
  }
});

test('refuses topic options that it does not carry out, by name', async (t) => {
  const { call } = await testServer(t);
  const options = {
    messageTransforms: [{ javascriptUdf: { functionName: 'f', code: 'x' } }],
    tags: { '1/a': 'b' },
  };
  for (const [field, value] of Object.entries(options)) {
    await assert.rejects(call('CreateTopic', { name: topicName('orders'), [field]: value }), {
      code: 12,
      details: `topic.${field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)} is not implemented by this server`,
    });
  }
  await call('CreateTopic', { name: topicName('orders') });
  const topic = { name: topicName('orders') };
  for (const paths of [['kms_key_name'], ['labels', 'name'], ['labels.a'], []]) {
    await assert.rejects(call('UpdateTopic', { topic, updateMask: { paths } }), { code: 3 });
  }
  await assert.rejects(call('UpdateTopic', { topic }), { code: 3 });
});

test('has every method of its three services, and counts what it does not serve', async (t) => {
  const { server, call } = await testServer(t);
  assert.deepEqual(server.unimplemented(), {});
  const topic = { name: topicName('orders'), tags: { '1/a': 'b' } };
  await assert.rejects(call('CreateTopic', topic), { code: 12 });
  assert.deepEqual(server.unimplemented(), { 'google.pubsub.v1.Publisher/CreateTopic': 1 });
  for (const definition of Object.values(pubsubServiceDefinitions())) {
    for (const method of Object.keys(definition)) {
      if (method === 'StreamingPull') continue;
      await call(method, {}).catch((error: Error & { code?: number }) =>
        assert.notEqual(error.code, 12, `${method} is not served`),
      );
      assert.ok(Object.hasOwn(METHODS.pubsub, method), `${method} has no faults`);
    }
  }
});

test('names the port that is taken, and frees it on close', async (t) => {
  const { server } = await testServer(t);
  const { startPubsub } = await import('./index.ts');
  const { systemClock } = await import('../clock.ts');
  await assert.rejects(
    startPubsub({ port: server.port, clock: systemClock() }),
    new RegExp(`port ${server.port} `),
  );
  await server.close();
  await server.close();
  const second = await startPubsub({ port: server.port, clock: systemClock() });
  await second.close();
});
