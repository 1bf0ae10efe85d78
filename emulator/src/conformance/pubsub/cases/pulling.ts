/** Pull, Acknowledge and ModifyAckDeadline on an ordinary subscription. */
import assert from 'node:assert/strict';
import { accepted, of, refused, type PubsubCase, same } from '../expect.ts';
import { ERROR_CODES, PROTO, QUOTAS } from '../sources.ts';
import { texts, type PubsubWorld } from '../world.ts';

const make = of('Pulling and acknowledging');
const SUB = 'orders-sub';

async function one(world: PubsubWorld) {
  await world.create('orders', SUB);
  await world.publish('orders', 'a');
  const [got = assert.fail('nothing came')] = await world.receive(SUB, 1);
  return got;
}

const byIds = (world: PubsubWorld, method: string, ackIds: readonly string[], ackDeadlineSeconds = 10) =>
  world.call(method, { subscription: world.subscription(SUB), ackIds, ackDeadlineSeconds });

export const pulling: readonly PubsubCase[] = [
  make('Pull answers at most as many messages as asked for', PROTO, async (world) => {
    await world.create('orders', SUB);
    await world.publish('orders', 'a', 'b', 'c');
    let all = 0;
    for (let round = 0; round < 200 && all < 3; round += 1) {
      const got = await world.pull(SUB, 2);
      assert.ok(got.length <= 2, `${got.length} messages`);
      all += got.length;
      if (got.length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
    }
    same(all, 3, 'messages in all');
  }),
  make('Pull of an empty subscription answers no message', PROTO, async (world) => {
    await world.create('orders', SUB);
    same(await world.pull(SUB), []);
  }),
  make('Pull without return_immediately waits for a message', PROTO, async (world) => {
    await world.create('orders', SUB);
    const answer = world.call('Pull', { subscription: world.subscription(SUB), maxMessages: 1 });
    await new Promise((resolve) => setTimeout(resolve, 100));
    await world.publish('orders', 'a');
    same(((await answer)['receivedMessages'] as unknown[]).length, 1, 'it answered without the message');
  }),
  make(
    'Pull without return_immediately answers after a bounded time when nothing comes',
    PROTO,
    async (world) => {
      await world.create('orders', SUB);
      const answer = world.call('Pull', { subscription: world.subscription(SUB), maxMessages: 1 });
      await new Promise((resolve) => setTimeout(resolve, 100));
      await world.pass(9_000);
      same((await accepted(answer, 'it'))['receivedMessages'], []);
    },
  ),
  ...[0, -1].map((maxMessages) =>
    make(`Pull of ${maxMessages} messages is INVALID_ARGUMENT`, PROTO, async (world) => {
      await world.create('orders', SUB);
      await refused(world.pull(SUB, maxMessages), 'INVALID_ARGUMENT', `max_messages ${maxMessages}`);
    }),
  ),
  make('Pull of a push subscription is FAILED_PRECONDITION', ERROR_CODES, async (world) => {
    const { url } = await world.endpoint();
    await world.create('orders', SUB, { pushConfig: { pushEndpoint: url } });
    await refused(world.pull(SUB), 'FAILED_PRECONDITION', 'Pull');
  }),
  make('Without a dead-letter policy the delivery attempt is 0', PROTO, async (world) => {
    same((await one(world)).deliveryAttempt, 0);
  }),
  make('An outstanding message is not delivered again', PROTO, async (world) => {
    await one(world);
    same(await world.pull(SUB), []);
  }),
  make('An acknowledged message does not come again after its deadline', PROTO, async (world) => {
    await world.ack(SUB, await one(world));
    await world.pass(11_000);
    same(await world.pull(SUB), []);
  }),
  make('A nack without a retry policy makes the message available at once', PROTO, async (world) => {
    await world.nack(SUB, await one(world));
    same(texts(await world.receive(SUB, 1)), 'a');
  }),
  make('Every delivery has an ack ID of its own', PROTO, async (world) => {
    const first = await one(world);
    await world.nack(SUB, first);
    const [second] = await world.receive(SUB, 1);
    assert.notEqual(second?.ackId, first.ackId);
  }),
  make('Acknowledging twice is no error', PROTO, async (world) => {
    const got = await one(world);
    await world.ack(SUB, got);
    await accepted(world.ack(SUB, got), 'the second acknowledgement');
  }),
  make('Acknowledging after the deadline is no error', PROTO, async (world) => {
    const got = await one(world);
    await world.pass(11_000);
    await accepted(world.ack(SUB, got), 'the late acknowledgement');
  }),
  make('Acknowledge of a subscription that does not exist is NOT_FOUND', ERROR_CODES, (world) =>
    refused(byIds(world, 'Acknowledge', ['x']), 'NOT_FOUND', 'Acknowledge'),
  ),
  make('ModifyAckDeadline of a subscription that does not exist is NOT_FOUND', ERROR_CODES, (world) =>
    refused(byIds(world, 'ModifyAckDeadline', ['x']), 'NOT_FOUND', 'ModifyAckDeadline'),
  ),
  make('Pull of a subscription that does not exist is NOT_FOUND', ERROR_CODES, (world) =>
    refused(world.pull('missing'), 'NOT_FOUND', 'Pull'),
  ),
  ...['Acknowledge', 'ModifyAckDeadline'].flatMap((method) => [
    make(`${method} without ack IDs is INVALID_ARGUMENT`, PROTO, async (world) => {
      await world.create('orders', SUB);
      await refused(byIds(world, method, []), 'INVALID_ARGUMENT', 'no ack IDs');
    }),
    make(`${method} of a malformed ack ID is INVALID_ARGUMENT`, PROTO, async (world) => {
      await world.create('orders', SUB);
      await refused(byIds(world, method, ['what?']), 'INVALID_ARGUMENT', 'the ack ID "what?"');
    }),
    make(`${method} of more than 512 KiB of ack IDs is INVALID_ARGUMENT`, QUOTAS, async (world) => {
      const { ackId } = await one(world);
      const ids = Array.from({ length: Math.floor(524_288 / ackId.length) + 1 }, () => ackId);
      await refused(byIds(world, method, ids), 'INVALID_ARGUMENT', `${ids.length} ack IDs`);
    }),
    make(`${method} of nearly 512 KiB of ack IDs is accepted`, QUOTAS, async (world) => {
      const { ackId } = await one(world);
      // Less a tenth, because the limit may count more than the letters of the IDs.
      const ids = Array.from({ length: Math.floor(470_000 / (ackId.length + 3)) }, () => ackId);
      await accepted(byIds(world, method, ids), `${ids.length} ack IDs`);
    }),
  ]),
  make('ModifyAckDeadline to 601 s is INVALID_ARGUMENT', PROTO, async (world) => {
    const got = await one(world);
    await refused(world.modify(SUB, 601, got), 'INVALID_ARGUMENT', '601 s');
  }),
  make('ModifyAckDeadline to -1 s is INVALID_ARGUMENT', PROTO, async (world) => {
    const got = await one(world);
    await refused(world.modify(SUB, -1, got), 'INVALID_ARGUMENT', '-1 s');
  }),
  make('ModifyAckDeadline to 600 s is accepted', PROTO, async (world) => {
    const got = await one(world);
    await accepted(world.modify(SUB, 600, got), '600 s');
  }),
];
