/** StreamingPull: what it sends, and how it ends. */
import assert from 'node:assert/strict';
import { never, of, refused, until, type PubsubCase, same } from '../expect.ts';
import { ERROR_CODES, PROTO } from '../sources.ts';
import { endsWith, open, opened, SUB } from '../streams.ts';
import { texts, type PubsubWorld } from '../world.ts';

const make = of('StreamingPull');
/** What was sent on a stream has been read when a later call of the same connection is answered. */
const taken = (world: PubsubWorld) =>
  world.call('GetSubscription', { subscription: world.subscription(SUB) });

export const streaming: readonly PubsubCase[] = [
  make('Sends the properties of the subscription in its first response', PROTO, async (world) => {
    await world.create('orders', SUB, { enableMessageOrdering: true });
    const { responses } = open(world);
    await world.publish('orders', 'a');
    await until(() => responses.length > 0, 'a response', 8_000);
    same(responses[0]?.subscriptionProperties, {
      exactlyOnceDeliveryEnabled: false,
      messageOrderingEnabled: true,
    });
  }),
  make('Delivers what is there and what is published later', PROTO, async (world) => {
    const stream = await opened(world);
    await world.publish('orders', 'b');
    await until(() => stream.received().length > 1, 'a second message');
    same(texts(stream.received()), 'a,b');
  }),
  make('The real client receives 500 messages, each once', PROTO, async (world) => {
    await world.create('orders', SUB);
    const subscription = world.pubsub.subscription(SUB);
    const seen: string[] = [];
    subscription.on('message', (message) => {
      seen.push(message.data.toString());
      message.ack();
    });
    await world.publish('orders', ...Array.from({ length: 500 }, (_, index) => `${index}`));
    await until(() => seen.length >= 500, '500 messages', 10_000);
    await subscription.close();
    same(new Set(seen).size, 500);
    same(seen.length, 500);
  }),
  make('What the real client holds when it closes comes again at once', PROTO, async (world) => {
    await world.create('orders', SUB, { ackDeadlineSeconds: 600 });
    const subscription = world.pubsub.subscription(SUB);
    const held: unknown[] = [];
    subscription.on('message', (message) => held.push(message));
    await world.publish('orders', 'a');
    await until(() => held.length > 0, 'a message', 8_000);
    await subscription.close();
    same(texts(await world.receive(SUB, 1)), 'a');
  }),
  make('Takes acknowledgements on the stream', PROTO, async (world) => {
    const stream = await opened(world);
    stream.send({ ackIds: stream.received().map(({ ackId }) => ackId) });
    await taken(world);
    await world.pass(11_000);
    await never(() => stream.received().length > 1, 'the message came again');
  }),
  make('Takes unary acknowledgements of what it delivered', PROTO, async (world) => {
    const stream = await opened(world);
    await world.ack(SUB, ...stream.received());
    await world.pass(11_000);
    await never(() => stream.received().length > 1, 'the message came again');
  }),
  make('A deadline of 0 on the stream is a nack', PROTO, async (world) => {
    const stream = await opened(world);
    const [{ ackId } = assert.fail()] = stream.received();
    stream.send({ modifyDeadlineAckIds: [ackId], modifyDeadlineSeconds: [0] });
    await until(() => stream.received().length > 1, 'delivered again');
  }),
  make('Takes longer deadlines on the stream', PROTO, async (world) => {
    const stream = await opened(world);
    const [{ ackId } = assert.fail()] = stream.received();
    stream.send({ modifyDeadlineAckIds: [ackId], modifyDeadlineSeconds: [25] });
    await taken(world);
    await world.pass(15_000);
    await never(() => stream.received().length > 1, 'it came again after 15 s of 25 s');
  }),
  make('The deadline of the stream goes before that of the subscription', PROTO, async (world) => {
    const stream = await opened(world, { streamAckDeadlineSeconds: 25 });
    await world.pass(15_000);
    await never(() => stream.received().length > 1, 'it came again after 15 s of 25 s');
  }),
  make('Sends no more than max_outstanding_messages', PROTO, async (world) => {
    await world.create('orders', SUB);
    await world.publish('orders', 'a', 'b', 'c', 'd', 'e');
    const stream = open(world, { maxOutstandingMessages: '2' });
    await until(() => stream.received().length >= 2, 'two messages');
    await never(() => stream.received().length > 2, 'more than two came');
    stream.send({ ackIds: stream.received().map(({ ackId }) => ackId) });
    await until(() => stream.received().length >= 4, 'two more after the acknowledgement');
  }),
  make('Sends no more than max_outstanding_bytes, but for the last message', PROTO, async (world) => {
    await world.create('orders', SUB);
    const data = Buffer.alloc(1_000, 1);
    await world.publish('orders', { data }, { data }, { data }, { data }, { data });
    const stream = open(world, { maxOutstandingBytes: '1500' });
    await until(() => stream.received().length >= 1, 'a message');
    await never(() => stream.received().length > 2, 'more than two of 1,000 bytes came with 1,500 allowed');
  }),
  make('A subscription that does not exist is NOT_FOUND', ERROR_CODES, (world) =>
    endsWith(open(world), 'NOT_FOUND', 'it'),
  ),
  make('A push subscription is FAILED_PRECONDITION', ERROR_CODES, async (world) => {
    const { url } = await world.endpoint();
    await world.create('orders', SUB, { pushConfig: { pushEndpoint: url } });
    await endsWith(open(world), 'FAILED_PRECONDITION', 'it');
  }),
  make('Deleting the subscription ends the stream with NOT_FOUND', ERROR_CODES, async (world) => {
    const stream = await opened(world);
    await world.pubsub.subscription(SUB).delete();
    await endsWith(stream, 'NOT_FOUND', 'the deletion');
  }),
  make('Ends with OK when the client ends its side', PROTO, async (world) => {
    const stream = await opened(world);
    stream.end();
    await endsWith(stream, 'OK', 'the end of our side');
  }),
  make('What was delivered can be acknowledged after the stream has ended', PROTO, async (world) => {
    const stream = await opened(world);
    stream.end();
    await world.ack(SUB, ...stream.received());
    await world.pass(11_000);
    same(await world.pull(SUB), []);
  }),
  make('Two streams share the messages', PROTO, async (world) => {
    await world.create('orders', SUB);
    const streams = [open(world), open(world)];
    await until(() => streams.every(({ responses }) => responses.length > 0), 'both streams open').catch(
      () => {},
    );
    // More than one response takes, so that neither gets all.
    const contents = Array.from({ length: 1_000 }, (_, index) => `${index}`);
    await world.publish('orders', ...contents);
    const all = () => streams.flatMap((stream) => stream.received());
    await until(() => all().length >= 1_000, 'all messages', 8_000);
    same(new Set(all().map(({ message }) => message.messageId)).size, 1_000);
    same(all().length, 1_000);
    for (const stream of streams) assert.ok(stream.received().length > 0, 'one stream got nothing');
  }),
  make('A message of 10 MB comes through', PROTO, async (world) => {
    await world.create('orders', SUB);
    const stream = open(world);
    await world.publish('orders', { data: Buffer.alloc(9_900_000, 1) });
    await until(() => stream.received().length > 0, 'the message', 8_000);
    same(stream.received()[0]?.message.data.length, 9_900_000);
  }),
  make('Nothing is delivered to a stream that is over', PROTO, async (world) => {
    const stream = await opened(world);
    stream.end();
    await stream.ended;
    await world.publish('orders', 'b');
    same(texts(await world.receive(SUB, 1)), 'b');
    await refused(world.pull('missing'), 'NOT_FOUND', 'another subscription');
  }),
];
