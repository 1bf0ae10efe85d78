/** Seek by time and by snapshot. */
import { of, refused, type PubsubCase, same } from '../expect.ts';
import { ERROR_CODES, PROTO, REPLAY } from '../sources.ts';
import { text, type Fields, type PubsubWorld } from '../world.ts';

const seek = of('Seek');
const SUB = 'orders-sub';
const SNAP = 'orders-snap';
const RETAIN = { retainAckedMessages: true };
const HOUR_MS = 3_600_000;

const toTime = (world: PubsubWorld, milliseconds: number) => {
  const time = {
    seconds: String(Math.floor(milliseconds / 1_000)),
    nanos: (milliseconds % 1_000) * 1_000_000,
  };
  return world.call('Seek', { subscription: world.subscription(SUB), time });
};
const toSnapshot = (world: PubsubWorld, id = SNAP) =>
  world.call('Seek', { subscription: world.subscription(SUB), snapshot: world.snapshot(id) });
const capture = (world: PubsubWorld, fields: Fields = {}) =>
  world.call('CreateSnapshot', {
    name: world.snapshot(SNAP),
    subscription: world.subscription(SUB),
    ...fields,
  });

/** Acknowledges `count` messages; their texts in order of the alphabet. */
async function drain(world: PubsubWorld, count: number): Promise<string> {
  const got = await world.receive(SUB, count);
  if (got.length > 0) await world.ack(SUB, ...got);
  return got.map(text).toSorted().join();
}
const empty = async (world: PubsubWorld, when: string): Promise<void> => {
  same((await world.pull(SUB)).map(text), [], `messages came ${when}`);
};

export const seeking: readonly PubsubCase[] = [
  seek('To the past it replays what was acknowledged and is retained', REPLAY, async (world) => {
    await world.create('orders', SUB, RETAIN);
    const start = world.now();
    await world.publish('orders', 'a', 'b');
    same(await drain(world, 2), 'a,b');
    await toTime(world, start - 1_000);
    same(await drain(world, 2), 'a,b');
  }),
  seek('Messages published before the time count as acknowledged', REPLAY, async (world) => {
    await world.create('orders', SUB, RETAIN);
    await world.publish('orders', 'a');
    await world.pass(1_500);
    const between = world.now();
    await world.pass(1_500);
    await world.publish('orders', 'b');
    await drain(world, 2);
    await toTime(world, between);
    same(await drain(world, 1), 'b');
    await empty(world, 'from before the time');
  }),
  seek('To the future it purges', REPLAY, async (world) => {
    await world.create('orders', SUB);
    await world.publish('orders', 'a', 'b');
    await toTime(world, world.now() + HOUR_MS);
    await empty(world, 'after the purge');
  }),
  seek('After a purge later messages are delivered', REPLAY, async (world) => {
    await world.create('orders', SUB);
    await world.publish('orders', 'a');
    await toTime(world, world.now() + 500);
    await world.pass(1_000);
    await world.publish('orders', 'b');
    same(await drain(world, 1), 'b');
  }),
  seek('Without retain_acked_messages nothing that was acknowledged comes again', REPLAY, async (world) => {
    await world.create('orders', SUB);
    const start = world.now();
    await world.publish('orders', 'a');
    await drain(world, 1);
    await toTime(world, start - 1_000);
    await empty(world, 'though they were not retained');
  }),
  seek('A retention of the topic serves for replay as well', REPLAY, async (world) => {
    await world.call('CreateTopic', {
      name: world.topic('orders'),
      messageRetentionDuration: { seconds: '3600' },
    });
    await world.create('orders', SUB);
    const start = world.now();
    await world.publish('orders', 'a');
    await drain(world, 1);
    await toTime(world, start - 1_000);
    same(await drain(world, 1), 'a');
  }),
  seek('A new subscription replays what its topic retained before it was there', REPLAY, async (world) => {
    await world.call('CreateTopic', {
      name: world.topic('orders'),
      messageRetentionDuration: { seconds: '3600' },
    });
    const start = world.now();
    await world.publish('orders', 'a');
    await world.create('orders', SUB);
    await toTime(world, start - 1_000);
    same(await drain(world, 1), 'a');
  }),
  seek('The real client seeks to a time', REPLAY, async (world) => {
    await world.create('orders', SUB, RETAIN);
    await world.publish('orders', 'a');
    await drain(world, 1);
    await world.pubsub.subscription(SUB).seek(new Date(world.now() - 60_000));
    same(await drain(world, 1), 'a');
  }),
  seek('Without time and snapshot it is INVALID_ARGUMENT', PROTO, async (world) => {
    await world.create('orders', SUB);
    await refused(world.call('Seek', { subscription: world.subscription(SUB) }), 'INVALID_ARGUMENT', 'it');
  }),
  seek('Of a subscription that does not exist it is NOT_FOUND', ERROR_CODES, (world) =>
    refused(toTime(world, world.now()), 'NOT_FOUND', 'Seek'),
  ),
  seek('To a snapshot that does not exist it is NOT_FOUND', ERROR_CODES, async (world) => {
    await world.create('orders', SUB);
    await refused(toSnapshot(world), 'NOT_FOUND', 'Seek');
  }),
  seek('To a snapshot of another topic it is FAILED_PRECONDITION', PROTO, async (world) => {
    await world.create('other', 'other-sub');
    await capture(world, { subscription: world.subscription('other-sub') });
    await world.create('orders', SUB);
    await refused(toSnapshot(world), 'FAILED_PRECONDITION', 'Seek');
  }),
  seek('To a snapshot it brings back what was unacknowledged when it was made', REPLAY, async (world) => {
    await world.create('orders', SUB);
    await world.publish('orders', 'a', 'b');
    await capture(world);
    same(await drain(world, 2), 'a,b');
    await toSnapshot(world);
    same(await drain(world, 2), 'a,b');
  }),
  seek('To a snapshot it brings back what was published since', REPLAY, async (world) => {
    await world.create('orders', SUB);
    await capture(world);
    await world.publish('orders', 'c');
    await drain(world, 1);
    await toSnapshot(world);
    same(await drain(world, 1), 'c');
  }),
  seek('To a snapshot it leaves out what was acknowledged when it was made', REPLAY, async (world) => {
    await world.create('orders', SUB, RETAIN);
    await world.publish('orders', 'a');
    await drain(world, 1);
    await world.publish('orders', 'b');
    await capture(world);
    await toSnapshot(world);
    same(await drain(world, 1), 'b');
    await empty(world, 'that were acknowledged before');
  }),
  seek('Another subscription of the topic may seek to the snapshot', REPLAY, async (world) => {
    await world.create('orders', SUB);
    await world.create('orders', 'second-sub');
    await world.publish('orders', 'a');
    await capture(world, { subscription: world.subscription('second-sub') });
    await drain(world, 1);
    await toSnapshot(world);
    same(await drain(world, 1), 'a');
  }),
];
