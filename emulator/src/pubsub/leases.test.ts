import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '../manual-clock.ts';
import { cpuMillisecondsDuring } from '../spent.ts';
import { subscriptionName, testServer, text, texts, until } from './test-server.ts';

const message = (content: string) => ({ data: Buffer.from(content) });
const SUB = 'orders-sub';

test('redelivers with a new ack ID when the ack deadline passes, and not before', async (t) => {
  const clock = manualClock();
  const { create, publish, pull, server } = await testServer(t, clock);
  await create('orders', SUB);
  await publish('orders', message('a'));
  const [first] = await pull(SUB);
  clock.advance(9_999);
  assert.deepEqual(await pull(SUB), []);
  assert.deepEqual([server.stats().outstanding, server.stats().backlog], [1, 0]);
  clock.advance(1);
  const [second] = await pull(SUB);
  assert.equal(second?.message.messageId, first?.message.messageId);
  assert.notEqual(second?.ackId, first?.ackId);
});

test('a longer configured deadline and ModifyAckDeadline hold the message longer', async (t) => {
  const clock = manualClock();
  const { create, publish, pull, call } = await testServer(t, clock);
  await create('orders', SUB, { ackDeadlineSeconds: 60 });
  await publish('orders', message('a'));
  const [held] = await pull(SUB);
  clock.advance(59_000);
  await call('ModifyAckDeadline', {
    subscription: subscriptionName(SUB),
    ackIds: [held?.ackId],
    ackDeadlineSeconds: 30,
  });
  clock.advance(29_999);
  assert.deepEqual(await pull(SUB), []);
  clock.advance(1);
  assert.equal(texts(await pull(SUB)), 'a');
});

test('a nack redelivers, an ack never', async (t) => {
  const clock = manualClock();
  const { create, publish, pull, nack, ack, server } = await testServer(t, clock);
  await create('orders', SUB);
  await publish('orders', message('a'), message('b'));
  const [a, b] = await pull(SUB);
  await nack(SUB, a!);
  await ack(SUB, b!);
  const again = await pull(SUB);
  assert.equal(texts(again), 'a');
  await ack(SUB, ...again);
  clock.advance(3_600_000);
  assert.deepEqual(await pull(SUB), []);
  assert.deepEqual([server.stats().outstanding, server.stats().backlog], [0, 0]);
  assert.equal(clock.timers(), 0, 'nothing is left of acknowledged messages');
});

test('ignores stale ack IDs and refuses malformed ones', async (t) => {
  const { create, publish, pull, nack, ack, call, server } = await testServer(t, manualClock());
  await create('orders', SUB);
  await publish('orders', message('a'));
  const [stale] = await pull(SUB);
  await nack(SUB, stale!);
  const [fresh] = await pull(SUB);
  await ack(SUB, stale!);
  await nack(SUB, stale!);
  assert.equal(server.stats().outstanding, 1, 'the later delivery is untouched');
  await ack(SUB, fresh!);
  await ack(SUB, fresh!);
  const subscription = subscriptionName(SUB);
  for (const ackIds of [['nonsense'], [''], [fresh?.ackId, 'x y']]) {
    await assert.rejects(call('Acknowledge', { subscription, ackIds }), {
      code: 3,
      details: /^You have passed an invalid ack ID to the service \(ack_id=/,
    });
    await assert.rejects(call('ModifyAckDeadline', { subscription, ackIds }), { code: 3 });
  }
  await assert.rejects(call('Acknowledge', { subscription, ackIds: [] }), { code: 3 });
  for (const ackDeadlineSeconds of [-1, 601]) {
    const request = { subscription, ackIds: [fresh?.ackId], ackDeadlineSeconds };
    await assert.rejects(call('ModifyAckDeadline', request), { code: 3 });
  }
});

test('a pull waits a little for a first message', async (t) => {
  const clock = manualClock();
  const { create, publish, cancellable, call, server } = await testServer(t, clock);
  await create('orders', SUB);
  const request = { subscription: subscriptionName(SUB), maxMessages: 10 };
  const waiting = call('Pull', request);
  await until(() => clock.timers() === 1);
  await publish('orders', message('a'));
  assert.equal(texts((await waiting).receivedMessages), 'a');
  assert.equal(server.stats().outstanding, 1);
  const empty = cancellable('Pull', request);
  await until(() => clock.timers() === 2);
  clock.advance(1000);
  assert.deepEqual((await empty.answer).receivedMessages, []);
  await assert.rejects(call('Pull', { ...request, maxMessages: 0 }), { code: 3 });
  await assert.rejects(call('Pull', { ...request, subscription: subscriptionName('missing') }), { code: 5 });
});

test('a cancelled pull takes no message with it', async (t) => {
  const clock = manualClock();
  const { create, publish, pull, cancellable, server } = await testServer(t, clock);
  await create('orders', SUB);
  for (let round = 0; round < 5; round += 1) {
    const waiting = cancellable('Pull', { subscription: subscriptionName(SUB), maxMessages: 10 });
    await until(() => clock.timers() === 1);
    waiting.cancel();
    await assert.rejects(waiting.answer, { code: 1 });
    await until(() => clock.timers() === 0);
  }
  await publish('orders', message('a'));
  assert.equal(server.stats().outstanding, 0);
  assert.equal(texts(await pull(SUB)), 'a');
});

test('messages older than the retention of the subscription are gone', async (t) => {
  const clock = manualClock();
  const { create, publish, pull, server } = await testServer(t, clock);
  await create('orders', SUB, { messageRetentionDuration: { seconds: 600 } });
  await publish('orders', message('old'));
  clock.advance(300_000);
  await publish('orders', message('new'));
  clock.advance(300_001);
  assert.equal((await pull(SUB)).map(text).join(), 'new');
  assert.equal(server.stats().backlog, 0);
});

test('a backlog of 10,000 messages is worked off quickly, one pull after another', async (t) => {
  const { create, publish, pull, ack, call, server } = await testServer(t);
  await create('orders', SUB);
  for (let batch = 0; batch < 10; batch += 1) {
    await publish('orders', ...Array.from({ length: 1000 }, (_, index) => message(`${batch}-${index}`)));
  }
  let received = 0;
  const took = await cpuMillisecondsDuring(async () => {
    for (let round = 0; round < 50; round += 1) {
      const [one] = await pull(SUB, 1);
      // Without waiting for it to take effect.
      const nack = { ackIds: [one!.ackId], ackDeadlineSeconds: 0 };
      await call('ModifyAckDeadline', { subscription: subscriptionName(SUB), ...nack });
    }
    for (let round = 0; round < 2_000 && received < 10_000; round += 1) {
      const some = await pull(SUB, 1000);
      received += some.length;
      await ack(SUB, ...some);
    }
  });
  assert.equal(received, 10_000);
  assert.ok(took < 4000, `${took} ms of CPU time`);
  assert.deepEqual([server.stats().outstanding, server.stats().backlog], [0, 0]);
});
