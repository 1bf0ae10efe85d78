import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { manualClock } from '../manual-clock.ts';
import { subscriptionName, testServer, text, texts } from '../pubsub/test-server.ts';
import { createFaults } from './index.ts';

/** A server on a clock that stands, with rules about what the subscription `work` is handed. */
async function faulty(
  t: TestContext,
  rules: readonly object[],
  options: Readonly<Record<string, unknown>> = {},
) {
  const clock = manualClock();
  const faults = createFaults();
  const server = await testServer(t, clock, undefined, faults);
  await server.create('orders', 'work', { ackDeadlineSeconds: 600, ...options });
  const about = { service: 'pubsub', method: 'deliver', resource: subscriptionName('work') };
  faults.set({ rules: rules.map((rule) => ({ ...about, ...rule })) });
  const publish = async (...texts: readonly string[]): Promise<void> =>
    void (await server.publish('orders', ...texts.map((text) => ({ data: Buffer.from(text) }))));
  const keyed = async (...texts: readonly string[]): Promise<void> =>
    void (await server.publish(
      'orders',
      ...texts.map((text) => ({ data: Buffer.from(text), orderingKey: 'k' })),
    ));
  /** What is handed over until nothing more is, each message acknowledged before the next is asked for. */
  const drain = async (): Promise<string> => {
    const all: string[] = [];
    for (let round = 0; round < 50; round += 1) {
      const received = await server.pull('work', 1);
      if (received.length === 0) return all.join('');
      all.push(...received.map(text));
      await server.ack('work', ...received);
    }
    throw new Error('it does not end');
  };
  return { ...server, clock, faults, publish, keyed, drain };
}

test('hands a message over later on the clock, others meanwhile', async (t) => {
  const { publish, drain, clock, server } = await faulty(t, [
    { nth: 2, action: { type: 'delay', ms: 5_000 } },
  ]);
  await publish('a', 'b', 'c');
  assert.equal(await drain(), 'ac');
  clock.advance(4_999);
  assert.equal(await drain(), '');
  assert.equal(server.stats().backlog, 1);
  clock.advance(1);
  assert.equal(await drain(), 'b');
  assert.equal(server.stats().backlog, 0);
});

test('holds the whole line of an ordering key back with a delayed message', async (t) => {
  const { keyed, publish, drain, clock } = await faulty(
    t,
    [{ nth: 3, action: { type: 'delay', ms: 5_000 } }],
    {
      enableMessageOrdering: true,
    },
  );
  await keyed('a', 'b', 'c');
  await publish('x');
  assert.equal(await drain(), 'ax');
  clock.advance(5_000);
  assert.equal(await drain(), 'bc');
});

test('hands a message over twice, with an ack ID each, and never again once they are over', async (t) => {
  const { publish, pull, ack, drain, clock, server } = await faulty(t, [
    { nth: 1, action: { type: 'duplicate' } },
  ]);
  await publish('a', 'b');
  const received = await pull('work');
  assert.equal(texts(received), 'a,a,b');
  const [first, second, third] = received;
  assert.notEqual(first!.ackId, second!.ackId);
  assert.equal(first!.message.messageId, second!.message.messageId);
  await ack('work', first!, third!);
  assert.equal(server.stats().outstanding, 1);
  clock.advance(600_000);
  assert.equal(await drain(), '', 'the second copy is forgotten at its deadline');
  assert.deepEqual([server.stats().outstanding, server.stats().backlog], [0, 0]);
});

test('the second copy comes though the first is acknowledged already, and a nack of it brings nothing back', async (t) => {
  const { publish, pull, ack, nack, drain } = await faulty(t, [{ nth: 1, action: { type: 'duplicate' } }]);
  await publish('a');
  await ack('work', ...(await pull('work', 1)));
  const [copy] = await pull('work', 1);
  assert.equal(copy?.message.data.toString(), 'a');
  await nack('work', copy!);
  assert.equal(await drain(), '');
});

test('an acknowledged second copy leaves the first as it is: it comes again when it is not acknowledged', async (t) => {
  const { publish, pull, ack, nack, drain } = await faulty(t, [{ nth: 1, action: { type: 'duplicate' } }]);
  await publish('a');
  const [first, copy] = await pull('work');
  await ack('work', copy!);
  await nack('work', first!);
  assert.equal(await drain(), 'a');
});

test('a second copy that fails is no dead text', async (t) => {
  const { publish, pull, ack, nack, call, server, faults, create } = await faulty(t, []);
  await create('dead', 'graves');
  await call('UpdateSubscription', {
    subscription: {
      name: subscriptionName('work'),
      deadLetterPolicy: { deadLetterTopic: 'projects/test-project/topics/dead', maxDeliveryAttempts: 5 },
    },
    updateMask: { paths: ['dead_letter_policy'] },
  });
  await publish('a');
  for (let attempt = 1; attempt < 5; attempt += 1) await nack('work', ...(await pull('work')));
  faults.set({ rules: [{ service: 'pubsub', method: 'deliver', action: { type: 'duplicate' } }] });
  const [first, copy] = await pull('work');
  assert.deepEqual([first!.deliveryAttempt, copy!.deliveryAttempt], [5, 5]);
  await nack('work', copy!);
  assert.equal(server.stats().backlog, 0);
  await ack('work', first!);
  assert.deepEqual([server.stats().backlog, server.stats().outstanding], [0, 0]);
});

test('a second copy stands right behind the first, before what follows it in its line', async (t) => {
  const { keyed, drain } = await faulty(t, [{ nth: [1, 2], action: { type: 'duplicate' } }], {
    enableMessageOrdering: true,
  });
  await keyed('a', 'b', 'c');
  assert.equal(await drain(), 'aabbc');
});

test('hands no second copy to an exactly-once subscription, and records that', async (t) => {
  const { publish, drain, faults } = await faulty(t, [{ action: { type: 'duplicate' } }], {
    enableExactlyOnceDelivery: true,
  });
  await publish('a');
  assert.equal(await drain(), 'a');
  assert.match(faults.log()[0]?.skipped ?? '', /exactly-once/);
});

test('lets a message be overtaken by as many later ones as the window says', async (t) => {
  const { publish, pull, drain } = await faulty(t, [{ nth: 2, action: { type: 'reorder', window: 3 } }]);
  await publish('a', 'b', 'c', 'd', 'e', 'f', 'g');
  assert.equal(texts(await pull('work')), 'a,c,d,e,b,f,g');
  assert.equal(await drain(), '');
});

test('a message that nothing overtakes comes when its time is over', async (t) => {
  const { publish, drain, clock } = await faulty(t, [
    { nth: 1, action: { type: 'reorder', window: 3 } },
    { nth: 3, action: { type: 'reorder', window: 1, atMostMs: 50 } },
  ]);
  await publish('a', 'b', 'c');
  assert.equal(await drain(), 'b');
  clock.advance(50);
  assert.equal(await drain(), 'c');
  clock.advance(949);
  assert.equal(await drain(), '');
  clock.advance(1);
  assert.equal(await drain(), 'a');
});

test('keeps the order of an ordering key, and records that', async (t) => {
  const { keyed, drain, faults } = await faulty(t, [{ action: { type: 'reorder', window: 1 } }], {
    enableMessageOrdering: true,
  });
  await keyed('a', 'b', 'c');
  assert.equal(await drain(), 'abc');
  assert.equal(faults.log().length, 3);
  assert.match(faults.log()[0]?.skipped ?? '', /ordering key/);
});

test('what is held back is in a seek, in the limits of a client, and gone with its retention', async (t) => {
  const { publish, pull, drain, call, clock, server, faults } = await faulty(
    t,
    [{ nth: 1, action: { type: 'reorder', window: 2, atMostMs: 3_600_000 } }],
    { messageRetentionDuration: { seconds: 600 } },
  );
  await publish('a', 'b', 'c', 'd');
  assert.equal(texts(await pull('work', 2)), 'b,c');
  assert.equal(texts(await pull('work', 1)), 'a');
  await call('Seek', { subscription: subscriptionName('work'), time: { seconds: 0 } });
  assert.equal(await drain(), 'abcd', 'all of them anew, and the count goes on');
  faults.set({ ...faults.plan() });
  await publish('e');
  assert.equal(await drain(), '');
  clock.advance(601_000);
  await publish('f', 'g');
  assert.equal(await drain(), 'fg');
  assert.equal(server.stats().backlog, 0);
});
