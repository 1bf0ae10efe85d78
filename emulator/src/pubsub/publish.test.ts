import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@google-cloud/pubsub';
import { manualClock } from '../manual-clock.ts';
import { messageIds } from './message-ids.ts';
import { testServer, topicName } from './test-server.ts';

const data = Buffer.from('x');

test('carries bytes, attributes, ordering key and publish time to the real client', async (t) => {
  const { pubsub } = await testServer(t);
  const [topic] = await pubsub.createTopic('orders');
  const [subscription] = await topic.createSubscription('orders-sub', { enableMessageOrdering: true });
  const bytes = Buffer.from([0, 255, 128, 10]);
  topic.setPublishOptions({ messageOrdering: true });
  const before = Date.now();
  const id = await topic.publishMessage({ data: bytes, attributes: { käse: 'ü' }, orderingKey: 'k' });
  assert.match(id, /^\d{16,}$/);
  const message = await new Promise<Message>((resolve) => subscription.once('message', resolve));
  message.ack();
  await subscription.close();
  assert.equal(message.id, id);
  assert.deepEqual(message.data, bytes);
  assert.deepEqual(message.attributes, { käse: 'ü' });
  assert.equal(message.orderingKey, 'k');
  assert.equal(message.deliveryAttempt, 0);
  assert.ok(Math.abs(message.publishTime.getTime() - before) < 5000);
});

test('refuses what is over the limits in bytes, and stores nothing of the request', async (t) => {
  const { create, publish, server } = await testServer(t);
  await create('orders', 'orders-sub');
  const attributes = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));
  const refused: Record<string, object> = {
    'no data and no attributes': {},
    '101 attributes': { attributes: attributes(101) },
    'a key of 257 bytes': { data, attributes: { ['ü'.repeat(128) + 'a']: 'v' } },
    'an empty key': { data, attributes: { '': 'v' } },
    'a value of 1025 bytes': { data, attributes: { k: 'ü'.repeat(512) + 'a' } },
    'a reserved key': { data, attributes: { googfoo: 'v' } },
    'a reserved key in capitals': { data, attributes: { GooG_foo: 'v' } },
    'an ordering key of 1025 bytes': { data, orderingKey: 'ü'.repeat(512) + 'a' },
    '10,000,001 bytes': { data: Buffer.alloc(9_999_999), attributes: { k: 'v' } },
    '40,000,000 bytes': { data: Buffer.alloc(40_000_000) },
  };
  for (const [what, message] of Object.entries(refused)) {
    await assert.rejects(publish('orders', { data }, { ...message }), { code: 3 }, what);
  }
  await assert.rejects(publish('orders'), { code: 3 });
  await assert.rejects(publish('orders', ...Array.from({ length: 1001 }, () => ({ data }))), {
    code: 3,
    details: /message_count is too large. You passed 1001 in the request, but the maximum value is 1000/,
  });
  await assert.rejects(
    publish('orders', { data: Buffer.alloc(6_000_000) }, { data: Buffer.alloc(6_000_000) }),
    {
      details: /request_size is too large. You passed 12000000 in the request/,
    },
  );
  assert.equal(server.stats().backlog, 0);
});

test('accepts what is at the limits', async (t) => {
  const { create, publish, pull } = await testServer(t);
  await create('orders', 'orders-sub');
  const attributes = Object.fromEntries(Array.from({ length: 98 }, (_, index) => [`k${index}`, '']));
  await publish('orders', {
    attributes: { ...attributes, ['ü'.repeat(128)]: 'ü'.repeat(512), googclient_traceparent: '00-0-0-01' },
    orderingKey: 'ü'.repeat(512),
  });
  assert.equal(Object.keys((await pull('orders-sub'))[0]!.message.attributes).length, 100);
  await publish('orders', { data: Buffer.alloc(10_000_000) });
  assert.equal((await pull('orders-sub'))[0]!.message.data.length, 10_000_000);
  const ids = await publish('orders', ...Array.from({ length: 1000 }, () => ({ data })));
  assert.equal(new Set(ids).size, 1000);
});

test('gives the real client the error of a refused message', async (t) => {
  const { pubsub } = await testServer(t);
  const [topic] = await pubsub.createTopic('orders');
  await assert.rejects(topic.publishMessage({ data, attributes: { 'goog-x': '1' } }), {
    code: 3,
    message: /"goog-x" in the request is reserved/,
  });
  assert.equal(topic.name, topicName('orders'));
});

test('message IDs rise, are long, and differ between two starts at the same time', () => {
  const clock = manualClock();
  const [first, second] = [messageIds(clock).next, messageIds(clock).next];
  const a = Array.from({ length: 1000 }, first);
  const b = Array.from({ length: 1000 }, second);
  assert.equal(new Set([...a, ...b]).size, 2000);
  assert.ok(a.every((id) => /^\d{19}$/.test(id)));
  assert.ok(a.every((id, index) => index === 0 || BigInt(id) > BigInt(a[index - 1]!)));
});

test('a publisher knows the ID of its message before a subscriber of the same program gets the message', async (t) => {
  const { pubsub } = await testServer(t);
  const [topic] = await pubsub.createTopic('orders');
  const [subscription] = await topic.createSubscription('billing');
  let arrive = (_id: string): void => undefined;
  subscription.on('message', (received: Message) => {
    received.ack();
    arrive(received.id);
  });
  for (let round = 0; round < 100; round += 1) {
    let known: string | undefined;
    const arrived = new Promise<readonly [string, string | undefined]>((resolve) => {
      arrive = (id) => resolve([id, known]);
    });
    known = await topic.publishMessage({ data: Buffer.from('a') });
    const [id, then] = await arrived;
    assert.equal(then, id, `round ${round}: the message arrived first`);
  }
  await subscription.close();
});

test('a message waits for the reply of its publish and no longer: a pull, a save and the counts see it at once', async (t) => {
  const { server, create, publish, pull } = await testServer(t, manualClock());
  await create('orders', 'billing');
  for (let round = 0; round < 50; round += 1) {
    await publish('orders', { data: Buffer.from('a') });
    assert.equal(server.stats().backlog + server.stats().outstanding, round + 1);
    assert.equal((await pull('billing')).length, 1);
  }
});
