/** Exactly-once delivery: what is said of ack IDs that are no longer valid. */
import assert from 'node:assert/strict';
import { of, refused, until, type PubsubCase, same } from '../expect.ts';
import { EXACTLY_ONCE, PROTO } from '../sources.ts';
import { text, texts, type PubsubWorld } from '../world.ts';

const make = of('Exactly-once delivery');
const SUB = 'orders-sub';
const INVALID = 'PERMANENT_FAILURE_INVALID_ACK_ID';

async function one(world: PubsubWorld) {
  await world.create('orders', SUB, { enableExactlyOnceDelivery: true });
  await world.publish('orders', 'a');
  const [got = assert.fail('nothing came')] = await world.receive(SUB, 1);
  return got;
}

/** The call must be refused with an ErrorInfo that names the ID; the trailer holds both as they are. */
async function named(answer: Promise<unknown>, ackId: string): Promise<void> {
  const details = await answer.then(
    () => assert.fail('it is answered OK'),
    (error: Error & { metadata?: { get(key: string): (string | Buffer)[] } }) =>
      Buffer.concat((error.metadata?.get('grpc-status-details-bin') ?? []).map((each) => Buffer.from(each))),
  );
  const wanted = ['google.rpc.ErrorInfo', ackId, INVALID];
  const missing = wanted.filter((part) => !details.includes(part));
  same(missing, [], `the details of the error do not name ${missing.join()}`);
}

export const exactlyOnce: readonly PubsubCase[] = [
  make(
    'The real client acknowledges with success, and hears when it was too late',
    EXACTLY_ONCE,
    async (world) => {
      await world.create('orders', SUB, { enableExactlyOnceDelivery: true });
      const subscription = world.pubsub.subscription(SUB);
      const outcomes: unknown[] = [];
      subscription.on('message', (message) => {
        const late = message.data.toString() === 'late';
        const before = late
          ? world.call('Acknowledge', { subscription: world.subscription(SUB), ackIds: [message.ackId] })
          : undefined;
        void Promise.resolve(before)
          .then(() => message.ackWithResponse())
          .catch(({ errorCode }: { errorCode?: string }) => errorCode)
          .then((outcome) => outcomes.push(outcome));
      });
      for (const [index, data] of ['in time', 'late'].entries()) {
        await world.publish('orders', data);
        await until(() => outcomes.length > index, 'acknowledged', 8_000);
      }
      await subscription.close();
      same(outcomes, ['SUCCESS', 'INVALID']);
    },
  ),
  make('An acknowledgement in time is answered OK', EXACTLY_ONCE, async (world) => {
    await world.ack(SUB, await one(world));
  }),
  make('A second acknowledgement is INVALID_ARGUMENT, and names the ID', EXACTLY_ONCE, async (world) => {
    const got = await one(world);
    await world.ack(SUB, got);
    await refused(world.ack(SUB, got), 'INVALID_ARGUMENT', 'the second acknowledgement');
    await named(world.ack(SUB, got), got.ackId);
  }),
  make(
    'An acknowledgement after the deadline is INVALID_ARGUMENT, and names the ID',
    EXACTLY_ONCE,
    async (world) => {
      const got = await one(world);
      await world.pass(10_500);
      await named(world.ack(SUB, got), got.ackId);
    },
  ),
  make(
    'A new deadline after the deadline is INVALID_ARGUMENT, and names the ID',
    EXACTLY_ONCE,
    async (world) => {
      const got = await one(world);
      await world.pass(10_500);
      await named(world.modify(SUB, 60, got), got.ackId);
    },
  ),
  make('An acknowledgement after a nack is INVALID_ARGUMENT', EXACTLY_ONCE, async (world) => {
    const got = await one(world);
    await world.nack(SUB, got);
    await refused(world.ack(SUB, got), 'INVALID_ARGUMENT', 'the acknowledgement of what was nacked');
  }),
  make('After a redelivery only the newest ack ID is valid', EXACTLY_ONCE, async (world) => {
    const first = await one(world);
    await world.nack(SUB, first);
    const [second = assert.fail('it did not come again')] = await world.receive(SUB, 1);
    assert.notEqual(first.ackId, second.ackId);
    await refused(world.ack(SUB, first), 'INVALID_ARGUMENT', 'the older ack ID');
    await world.ack(SUB, second);
  }),
  make('Valid IDs of a request with an invalid one are acknowledged', EXACTLY_ONCE, async (world) => {
    const first = await one(world);
    await world.ack(SUB, first);
    await world.publish('orders', 'b');
    const [second = assert.fail('nothing came')] = await world.receive(SUB, 1);
    await refused(world.ack(SUB, first, second), 'INVALID_ARGUMENT', 'one ID of two being invalid');
    await world.pass(10_500);
    same(texts(await world.pull(SUB)), '', 'the message whose ID was valid came again');
  }),
  make('An acknowledged message does not come again', EXACTLY_ONCE, async (world) => {
    await world.ack(SUB, await one(world));
    await world.pass(11_000);
    same(await world.pull(SUB), []);
  }),
  make('A message does not come again while its deadline is extended', EXACTLY_ONCE, async (world) => {
    const got = await one(world);
    await world.pass(6_000);
    await world.modify(SUB, 20, got);
    await world.pass(10_000);
    same(await world.pull(SUB), []);
    await world.ack(SUB, got);
  }),
  make('Acknowledgements on the stream count, and invalid ones do not end it', PROTO, async (world) => {
    const got = await one(world);
    const stream = world.stream({ subscription: world.subscription(SUB), streamAckDeadlineSeconds: 10 });
    stream.send({ ackIds: [got.ackId] });
    stream.send({ ackIds: [got.ackId] });
    await world.publish('orders', 'b');
    await until(() => stream.received().length > 0, 'a later message', 8_000);
    await world.pass(10_500);
    same(
      stream.received().some((each) => text(each) === 'a'),
      false,
      'the acknowledged message came again',
    );
    // Confirmations are "not guaranteed to be populated": none may say that it counted twice.
    const confirmed = stream.responses.flatMap(({ acknowledgeConfirmation: each }) => each?.ackIds ?? []);
    assert.ok(confirmed.length <= 1, `the ack ID is confirmed ${confirmed.length} times`);
  }),
  make('The first response of the stream says that delivery is exactly once', PROTO, async (world) => {
    await one(world);
    const { responses } = world.stream({
      subscription: world.subscription(SUB),
      streamAckDeadlineSeconds: 10,
    });
    await world.publish('orders', 'b');
    await until(() => responses.length > 0, 'a response', 8_000);
    same(responses[0]?.subscriptionProperties?.exactlyOnceDeliveryEnabled, true);
  }),
];
