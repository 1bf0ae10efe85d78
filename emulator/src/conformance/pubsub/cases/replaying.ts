/** What a seek keeps to: filters, retention, and the state of others. */
import { of, refused, type PubsubCase, same } from '../expect.ts';
import { FILTERS, PROTO, REPLAY } from '../sources.ts';
import { text, type Fields, type PubsubWorld } from '../world.ts';

const seek = of('Seek, what it keeps to');
const snap = of('Snapshots, what they hold');
const [SUB, SNAP] = ['orders-sub', 'orders-snap'];
const HOUR_MS = 3_600_000;
const seconds = (count: number) => ({ seconds: String(count), nanos: 0 });
const RETAIN = { retainAckedMessages: true };
const BLUE = { filter: 'attributes.colour = "blue"' };

const toTime = (world: PubsubWorld, milliseconds: number) =>
  world.call('Seek', {
    subscription: world.subscription(SUB),
    time: seconds(Math.floor(milliseconds / 1_000)),
  });
const toSnapshot = (world: PubsubWorld) =>
  world.call('Seek', { subscription: world.subscription(SUB), snapshot: world.snapshot(SNAP) });
const capture = (world: PubsubWorld, id: string) =>
  world.call('CreateSnapshot', { name: world.snapshot(SNAP), subscription: world.subscription(id) });
const retainingTopic = (world: PubsubWorld, count = 3_600) =>
  world.call('CreateTopic', { name: world.topic('orders'), messageRetentionDuration: seconds(count) });

async function drain(world: PubsubWorld, count: number, id = SUB): Promise<string> {
  const got = await world.receive(id, count);
  if (got.length > 0) await world.ack(id, ...got);
  return got.map(text).toSorted().join();
}
const coloured = (world: PubsubWorld, ...colours: readonly string[]) =>
  world.publish(
    'orders',
    ...colours.map((colour): Fields => ({ data: Buffer.from(colour), attributes: { colour } })),
  );
const empty = async (world: PubsubWorld, when: string): Promise<void> =>
  same((await world.pull(SUB)).map(text), [], `messages came ${when}`);

export const replaying: readonly PubsubCase[] = [
  seek('To a time it brings back nothing of the topic that the filter leaves out', FILTERS, async (world) => {
    await retainingTopic(world);
    const start = world.now();
    await coloured(world, 'blue', 'red');
    await world.create('orders', SUB, BLUE);
    await toTime(world, start - 1_000);
    same(await drain(world, 1), 'blue');
    await empty(world, 'that do not match');
  }),
  seek('To a snapshot it brings back nothing that the filter leaves out', FILTERS, async (world) => {
    await world.create('orders', 'all-sub');
    await world.create('orders', SUB, BLUE);
    await coloured(world, 'blue', 'red');
    await capture(world, 'all-sub');
    await drain(world, 1);
    await toSnapshot(world);
    same(await drain(world, 1), 'blue');
    await empty(world, 'that do not match');
  }),
  seek('What a seek to the future has purged can be replayed where it is retained', REPLAY, async (world) => {
    await world.create('orders', SUB, RETAIN);
    const start = world.now();
    await world.publish('orders', 'a', 'b');
    await toTime(world, world.now() + HOUR_MS);
    await empty(world, 'after the purge');
    await toTime(world, start - 1_000);
    same(await drain(world, 2), 'a,b');
  }),
  seek('What a seek to a snapshot leaves out can be replayed where it is retained', REPLAY, async (world) => {
    await world.create('orders', SUB, RETAIN);
    const start = world.now();
    await world.publish('orders', 'a');
    await drain(world, 1);
    await world.publish('orders', 'b');
    await capture(world, SUB);
    await toSnapshot(world);
    same(await drain(world, 1), 'b');
    await toTime(world, start - 1_000);
    same(await drain(world, 2), 'a,b');
  }),
  seek('Another subscription of the topic does not move', REPLAY, async (world) => {
    await world.create('orders', SUB, RETAIN);
    await world.create('orders', 'other-sub', RETAIN);
    const start = world.now();
    await world.publish('orders', 'a');
    await drain(world, 1);
    await drain(world, 1, 'other-sub');
    await toTime(world, start - 1_000);
    same(await drain(world, 1), 'a');
    same(await world.pull('other-sub'), [], 'the other subscription got it again');
  }),
  seek('Replayed messages of an ordering key come in order', REPLAY, async (world) => {
    await world.create('orders', SUB, { ...RETAIN, enableMessageOrdering: true });
    const start = world.now();
    for (const each of ['a1', 'a2', 'a3'])
      await world.publish('orders', { data: Buffer.from(each), orderingKey: 'a' });
    for (let round = 0; round < 3; round += 1) await drain(world, 1);
    await toTime(world, start - 1_000);
    const seen: string[] = [];
    for (let round = 0; round < 6 && seen.length < 3; round += 1) {
      const got = await world.receive(SUB, 1);
      if (got.length > 0) await world.ack(SUB, ...got);
      seen.push(...got.map(text));
    }
    same(seen, ['a1', 'a2', 'a3']);
  }),
  seek(
    'Acknowledged messages are replayed as far back as the retention reaches, no further',
    PROTO,
    async (world) => {
      await world.create('orders', SUB, { ...RETAIN, messageRetentionDuration: seconds(600) });
      const start = world.now();
      await world.publish('orders', 'a');
      await world.pass(400_000);
      await world.publish('orders', 'b');
      await drain(world, 2);
      await world.pass(300_000);
      await toTime(world, start - 1_000);
      same(await drain(world, 1), 'b');
      await empty(world, 'older than the retention');
    },
    'waits ten minutes',
  ),
  seek(
    'A topic’s messages are replayed as far back as its retention reaches, no further',
    PROTO,
    async (world) => {
      await retainingTopic(world, 600);
      const start = world.now();
      await world.publish('orders', 'a');
      await world.pass(400_000);
      await world.publish('orders', 'b');
      await world.pass(300_000);
      await world.create('orders', SUB);
      await toTime(world, start - 1_000);
      same(await drain(world, 1), 'b');
      await empty(world, 'older than the retention');
    },
    'waits ten minutes',
  ),

  snap('Creating one leaves the backlog as it is', REPLAY, async (world) => {
    await world.create('orders', SUB);
    await world.publish('orders', 'a');
    await capture(world, SUB);
    same(await drain(world, 1), 'a');
  }),
  snap('What is outstanding counts as unacknowledged', REPLAY, async (world) => {
    await world.create('orders', SUB);
    await world.publish('orders', 'a');
    const got = await world.receive(SUB, 1);
    await capture(world, SUB);
    await world.ack(SUB, ...got);
    await toSnapshot(world);
    same(await drain(world, 1), 'a');
  }),
  snap('After its deletion a new one of the name holds nothing of the old', PROTO, async (world) => {
    await world.create('orders', SUB);
    await world.publish('orders', 'a');
    await capture(world, SUB);
    await drain(world, 1);
    await world.call('DeleteSnapshot', { snapshot: world.snapshot(SNAP) });
    await capture(world, SUB);
    await toSnapshot(world);
    await empty(world, 'of the snapshot that was deleted');
  }),
  snap('It outlives the subscription that it was made from', PROTO, async (world) => {
    await world.create('orders', SUB);
    await world.create('orders', 'source-sub');
    await world.publish('orders', 'a');
    await capture(world, 'source-sub');
    await drain(world, 1);
    await world.pubsub.subscription('source-sub').delete();
    await toSnapshot(world);
    same(await drain(world, 1), 'a');
  }),
  snap('GetSnapshot shows what CreateSnapshot answered', PROTO, async (world) => {
    await world.create('orders', SUB);
    const made = await capture(world, SUB);
    same(await world.call('GetSnapshot', { snapshot: world.snapshot(SNAP) }), made);
    await refused(capture(world, SUB), 'ALREADY_EXISTS', 'a second one of the name');
  }),
];
