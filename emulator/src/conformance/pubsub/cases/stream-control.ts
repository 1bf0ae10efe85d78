/** What a client steers on a stream: deadlines, flow control, and acknowledgements of what another stream delivered. */
import assert from 'node:assert/strict';
import { never, of, until, type PubsubCase, same } from '../expect.ts';
import { ERROR_CODES, PROTO } from '../sources.ts';
import { endsWith, open, opened, SUB } from '../streams.ts';
import { texts, type PubsubWorld, type ReceivedMessage } from '../world.ts';

const make = of('StreamingPull, control');

/** What was sent on a stream has been read when a later call of the same connection is answered. */
const taken = (world: PubsubWorld) =>
  world.call('GetSubscription', { subscription: world.subscription(SUB) });
const idsOf = (received: readonly ReceivedMessage[]): string[] => received.map(({ ackId }) => ackId);

/** How often "a" came, over several streams. */
const countOfA = (...streams: readonly ReturnType<typeof open>[]): number =>
  streams.flatMap((stream) => stream.received()).filter((each) => texts([each]) === 'a').length;

export const streamControl: readonly PubsubCase[] = [
  make('A later request changes the deadline of what is delivered after it', PROTO, async (world) => {
    const stream = await opened(world);
    await world.ack(SUB, ...stream.received());
    stream.send({ streamAckDeadlineSeconds: 60 });
    await taken(world);
    await world.publish('orders', 'b');
    await until(() => stream.received().length > 1, 'a second message');
    await world.pass(15_000);
    await never(() => stream.received().length > 2, 'it came again after 15 s of 60 s');
  }),
  make('Takes acknowledgements of what another stream delivered', PROTO, async (world) => {
    const first = await opened(world);
    const second = open(world);
    second.send({ ackIds: idsOf(first.received()) });
    await taken(world);
    await world.pass(11_000);
    await never(() => countOfA(first, second) > 1, 'the message came again', 300);
  }),
  make('Takes deadlines of what another stream delivered', PROTO, async (world) => {
    const first = await opened(world);
    const second = open(world);
    second.send({ modifyDeadlineAckIds: idsOf(first.received()), modifyDeadlineSeconds: [60] });
    await taken(world);
    await world.pass(15_000);
    await never(() => countOfA(first, second) > 1, 'it came again after 15 s of 60 s', 300);
  }),
  make('Each deadline of a request is that of the ID in its place', PROTO, async (world) => {
    await world.create('orders', SUB);
    await world.publish('orders', 'a', 'b');
    const stream = open(world);
    await until(() => stream.received().length === 2, 'two messages', 8_000);
    const ofText = (wanted: string) => stream.received().find((each) => texts([each]) === wanted)?.ackId;
    const ackIds = [ofText('a') ?? assert.fail(), ofText('b') ?? assert.fail()];
    stream.send({ modifyDeadlineAckIds: ackIds, modifyDeadlineSeconds: [60, 0] });
    await until(() => stream.received().length > 2, 'the second again');
    await never(() => stream.received().length > 3, 'both came again');
    same(texts(stream.received().slice(2)), 'b');
  }),
  make('Acknowledging twice on a stream does not end it', PROTO, async (world) => {
    const stream = await opened(world);
    const ackIds = idsOf(stream.received());
    stream.send({ ackIds });
    stream.send({ ackIds });
    await taken(world);
    await world.publish('orders', 'b');
    await until(() => stream.received().length > 1, 'a later message');
  }),
  make('A nack makes room within max_outstanding_messages', PROTO, async (world) => {
    await world.create('orders', SUB, {
      retryPolicy: { minimumBackoff: { seconds: '600' }, maximumBackoff: { seconds: '600' } },
    });
    await world.publish('orders', 'a', 'b');
    const stream = open(world, { maxOutstandingMessages: '1' });
    await until(() => stream.received().length === 1, 'the first message', 8_000);
    stream.send({ modifyDeadlineAckIds: idsOf(stream.received()), modifyDeadlineSeconds: [0] });
    await until(() => stream.received().length === 2, 'the other message', 8_000);
    same(new Set(texts(stream.received()).split(',')).size, 2, 'the one that backs off came again');
  }),
  ...['0', '-1'].flatMap((value) =>
    (['maxOutstandingMessages', 'maxOutstandingBytes'] as const).map((field) =>
      make(`${field} of ${value} means no limit`, PROTO, async (world) => {
        await world.create('orders', SUB);
        const data = Buffer.alloc(1_000, 1);
        await world.publish('orders', ...Array.from({ length: 30 }, () => ({ data })));
        const stream = open(world, { [field]: value });
        await until(() => stream.received().length === 30, 'all 30 messages', 8_000);
      }),
    ),
  ),
  make('Turning the subscription into a push one ends its streams', ERROR_CODES, async (world) => {
    const stream = await opened(world);
    const { url } = await world.endpoint();
    const pushConfig = { pushEndpoint: url };
    await world.call('ModifyPushConfig', { subscription: world.subscription(SUB), pushConfig });
    await endsWith(stream, 'FAILED_PRECONDITION', 'the push config');
  }),
];
