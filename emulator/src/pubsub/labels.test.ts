import assert from 'node:assert/strict';
import { test } from 'node:test';
import { subscriptionName, testServer, topicName } from './test-server.ts';

const REFUSED: Readonly<Record<string, Record<string, string>>> = {
  'an uppercase letter in a key': { Team: 'blue' },
  'a digit at the start of a key': { '1st': 'blue' },
  'an empty key': { '': 'blue' },
  'a key of 64 characters': { ['k'.repeat(64)]: 'blue' },
  'an uppercase letter in a value': { team: 'Blue' },
  'a space in a value': { team: 'dark blue' },
  'a value of 64 characters': { team: 'v'.repeat(64) },
  '65 labels': Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`k${index}`, ''])),
};

test('refuses labels that cannot be, on topics, subscriptions and snapshots, new and changed', async (t) => {
  const { call, create } = await testServer(t);
  await create('orders', 'orders-sub');
  const snapshot = 'projects/test-project/snapshots/orders-snap';
  const [topic, subscription] = [topicName('orders'), subscriptionName('orders-sub')];
  await call('CreateSnapshot', { name: snapshot, subscription });
  const updateMask = { paths: ['labels'] };
  for (const [what, labels] of Object.entries(REFUSED)) {
    for (const [method, request] of [
      ['CreateTopic', { name: topicName('other'), labels }],
      ['UpdateTopic', { topic: { name: topic, labels }, updateMask }],
      ['CreateSubscription', { name: subscriptionName('other'), topic, labels }],
      ['UpdateSubscription', { subscription: { name: subscription, labels }, updateMask }],
      ['CreateSnapshot', { name: `${snapshot}-2`, subscription, labels }],
      ['UpdateSnapshot', { snapshot: { name: snapshot, labels }, updateMask }],
    ] as const) {
      await assert.rejects(call(method, request), { code: 3 }, `${method} with ${what}`);
    }
  }
});

test('takes labels at the limits, in any script', async (t) => {
  const { call } = await testServer(t);
  const labels = { ['k'.repeat(63)]: 'v'.repeat(63), größe_1: '日本-2', empty: '' };
  const made = await call('CreateTopic', { name: topicName('orders'), labels });
  assert.deepEqual(made['labels'], labels);
});
