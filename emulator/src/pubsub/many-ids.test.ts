/** Requests that name several deliveries of one ordering key: what they do does not depend on the order of the IDs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '../manual-clock.ts';
import { subscriptionName, testServer, texts, topicName, until } from './test-server.ts';
import type { StreamingPullResponse } from './wire.ts';

const SUB = 'billing';
const keyed = (data: string) => ({ data: Buffer.from(data), orderingKey: 'key' });
const ORDERS = ['012', '021', '102', '120', '201', '210'].map((order) => order.split('').map(Number));

test('nacks of one key are all valid under exactly-once delivery, and count one attempt each', async (t) => {
  for (const order of ORDERS) {
    const clock = manualClock();
    const { call, create, publish, pull } = await testServer(t, clock);
    await create('dead', 'dead-sub');
    await create('orders', SUB, {
      enableMessageOrdering: true,
      enableExactlyOnceDelivery: true,
      deadLetterPolicy: { deadLetterTopic: topicName('dead'), maxDeliveryAttempts: 5 },
    });
    await publish('orders', keyed('a'), keyed('b'), keyed('c'));
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      const received = await pull(SUB);
      assert.equal(texts(received), 'a,b,c', `order ${order.join('')}`);
      assert.deepEqual(
        received.map(({ deliveryAttempt }) => deliveryAttempt),
        [attempt, attempt, attempt],
      );
      const ackIds = order.map((index) => received[index]!.ackId);
      await call('ModifyAckDeadline', { subscription: subscriptionName(SUB), ackIds, ackDeadlineSeconds: 0 });
      clock.advance(50);
    }
    assert.deepEqual(await pull(SUB), []);
    assert.equal(texts(await pull('dead-sub')), 'a,b,c');
  }
});

test('a nack takes the later messages of its key back, and their IDs in the same request are valid all the same', async (t) => {
  for (const first of ['nack', 'extension'] as const) {
    const clock = manualClock();
    const running = await testServer(t, clock);
    await running.create('orders', SUB, { enableMessageOrdering: true, enableExactlyOnceDelivery: true });
    const stream = running.stream();
    const responses: StreamingPullResponse[] = [];
    stream.on('data', (response: StreamingPullResponse) => responses.push(response));
    stream.on('error', () => undefined);
    t.after(() => stream.cancel());
    stream.write({ subscription: subscriptionName(SUB), streamAckDeadlineSeconds: 10 });
    await running.publish('orders', keyed('a'), keyed('b'));
    const received = () => responses.flatMap(({ receivedMessages = [] }) => receivedMessages);
    await until(() => received().length === 2);
    const [a, b] = received().map(({ ackId }) => ackId);
    const wanted = [
      [a!, 0],
      [b!, 60],
    ] as const;
    const sent = first === 'nack' ? wanted : wanted.toReversed();
    stream.write({
      modifyDeadlineAckIds: sent.map(([id]) => id),
      modifyDeadlineSeconds: sent.map(([, seconds]) => seconds),
    });
    const confirmed = () => responses.flatMap((each) => each.modifyAckDeadlineConfirmation ?? []);
    await until(() => confirmed().length > 0);
    assert.deepEqual(
      confirmed().map(({ ackIds, invalidAckIds }) => [ackIds.toSorted(), invalidAckIds]),
      [[[a!, b!].toSorted(), []]],
    );
    clock.advance(50);
    await until(() => received().length === 4);
    assert.equal(texts(received().slice(2)), 'a,b');
  }
});
