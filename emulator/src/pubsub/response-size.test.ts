import assert from 'node:assert/strict';
import { test } from 'node:test';
import { subscriptionName, testServer, until } from './test-server.ts';
import { pubsubServiceDefinitions } from './protos.ts';
import type { StreamingPullResponse } from './wire.ts';

/** What a gRPC client takes by default, as Google's Python client with PUBSUB_EMULATOR_HOST. */
const CLIENT_LIMIT_BYTES = 4 * 1024 * 1024;

const SUB = 'orders-sub';
const { Pull, StreamingPull } = pubsubServiceDefinitions().subscriber;
const attributes = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`k${index}`, '']));
/** Shapes whose framing or whose bytes are large. */
const SHAPES = {
  'many attributes': { count: 700, message: { attributes, data: Buffer.alloc(7_000) } },
  'large data': { count: 6, message: { data: Buffer.alloc(1_000_000) } },
} as const;

for (const [shape, { message, count }] of Object.entries(SHAPES)) {
  for (const orderingKey of ['', 'key']) {
    const what = `${shape}${orderingKey === '' ? '' : ' of one ordering key'}`;
    const messages = Array.from({ length: count }, () => ({ ...message, orderingKey }));

    test(`a pull of ${what} fits into a client with default limits`, async (t) => {
      const { create, publish, call, server } = await testServer(t);
      await create('orders', SUB, { enableMessageOrdering: true });
      await publish('orders', ...messages);
      const request = { subscription: subscriptionName(SUB), maxMessages: 100_000 };
      const answer = await call('Pull', request);
      assert.ok(answer.receivedMessages.length > 1);
      assert.ok((Pull?.responseSerialize(answer).length ?? Infinity) <= CLIENT_LIMIT_BYTES);
      assert.equal(server.stats().outstanding, answer.receivedMessages.length);
    });

    test(`the responses of a stream of ${what} fit too`, async (t) => {
      const { create, publish, stream: start, server } = await testServer(t);
      await create('orders', SUB, { enableMessageOrdering: true });
      await publish('orders', ...messages);
      const stream = start();
      t.after(() => stream.cancel());
      const sizes: number[] = [];
      let acked = 0;
      stream.on('error', () => {});
      stream.on('data', (response: StreamingPullResponse) => {
        sizes.push(StreamingPull?.responseSerialize(response).length ?? Infinity);
        const ackIds = (response.receivedMessages ?? []).map(({ ackId }) => ackId);
        acked += ackIds.length;
        if (ackIds.length > 0) stream.write({ ackIds });
      });
      stream.write({ subscription: subscriptionName(SUB), streamAckDeadlineSeconds: 60 });
      await until(() => acked === count && server.stats().outstanding === 0);
      assert.ok(Math.max(...sizes) <= CLIENT_LIMIT_BYTES, `the largest has ${Math.max(...sizes)} bytes`);
    });
  }
}

test('a run of one ordering key is cut at a thousand messages for a client without limits', async (t) => {
  const { create, publish, stream: start } = await testServer(t);
  await create('orders', SUB, { enableMessageOrdering: true });
  const messages = Array.from({ length: 600 }, () => ({ data: Buffer.from('x'), orderingKey: 'key' }));
  for (let time = 0; time < 2; time++) await publish('orders', ...messages);
  const stream = start();
  t.after(() => stream.cancel());
  const counts: number[] = [];
  stream.on('error', () => {});
  stream.on('data', ({ receivedMessages = [] }: StreamingPullResponse) => {
    if (receivedMessages.length === 0) return;
    counts.push(receivedMessages.length);
    stream.write({ ackIds: receivedMessages.map(({ ackId }) => ackId) });
  });
  stream.write({ subscription: subscriptionName(SUB), streamAckDeadlineSeconds: 60 });
  await until(() => counts.length === 2);
  assert.deepEqual(counts, [1000, 200]);
});
