/** What may be published: limits of messages and requests, all in bytes. */
import assert from 'node:assert/strict';
import { accepted, of, refused, type PubsubCase, same } from '../expect.ts';
import { PROTO, PUBLISHER, QUOTAS } from '../sources.ts';
import { text, type Fields, type PubsubWorld } from '../world.ts';

const make = of('Publishing');
const data = Buffer.from('x');
/** "10 MB" in the documents, which the service reads strictly: its error names 10000000, not 10 MiB. */
const MAX_BYTES = 10_000_000;

const many = (count: number): Readonly<Record<string, string>> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));

const LIMITS: readonly (readonly [string, Fields, string, Fields])[] = [
  ['100 attributes', { data, attributes: many(100) }, '101 attributes', { data, attributes: many(101) }],
  [
    'An attribute key of 256 bytes',
    { data, attributes: { ['k'.repeat(256)]: 'v' } },
    'An attribute key of 257 bytes',
    { data, attributes: { ['k'.repeat(257)]: 'v' } },
  ],
  [
    'An attribute key of 128 two-byte letters',
    { data, attributes: { ['é'.repeat(128)]: 'v' } },
    'An attribute key of 129 two-byte letters',
    { data, attributes: { ['é'.repeat(129)]: 'v' } },
  ],
  [
    'An attribute value of 1,024 bytes',
    { data, attributes: { k: 'v'.repeat(1024) } },
    'An attribute value of 1,025 bytes',
    { data, attributes: { k: 'v'.repeat(1025) } },
  ],
  [
    'An attribute value of 512 two-byte letters',
    { data, attributes: { k: 'é'.repeat(512) } },
    'An attribute value of 513 two-byte letters',
    { data, attributes: { k: 'é'.repeat(513) } },
  ],
  [
    'An ordering key of 1,024 bytes',
    { data, orderingKey: 'k'.repeat(1024) },
    'An ordering key of 1,025 bytes',
    { data, orderingKey: 'k'.repeat(1025) },
  ],
  [
    'A message of 10,000,000 bytes',
    { data: Buffer.alloc(MAX_BYTES, 1) },
    'A message of 10,000,001 bytes',
    { data: Buffer.alloc(MAX_BYTES + 1, 1) },
  ],
  [
    'A message of 10,000,000 bytes, its attributes included',
    { data: Buffer.alloc(MAX_BYTES - 6, 1), attributes: { key: 'abc' } },
    'A message of 10,000,001 bytes, its attributes included',
    { data: Buffer.alloc(MAX_BYTES - 5, 1), attributes: { key: 'abc' } },
  ],
];

const published = async (
  world: PubsubWorld,
  what: string,
  ...messages: readonly Fields[]
): Promise<string[]> => {
  await world.create('orders', 'orders-sub');
  return accepted(world.publish('orders', ...messages), what);
};
const refusing = async (world: PubsubWorld, what: string, ...messages: readonly Fields[]): Promise<void> => {
  await world.create('orders', 'orders-sub');
  await refused(world.publish('orders', ...messages), 'INVALID_ARGUMENT', what);
};

export const publishing: readonly PubsubCase[] = [
  make('Carries data, attributes, ordering key and publish time unchanged', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    const bytes = Buffer.from('00fffe80c328', 'hex');
    const before = world.now();
    const topic = world.pubsub.topic('orders', { messageOrdering: true });
    const id = await topic.publishMessage({
      data: bytes,
      attributes: { käse: 'ü 日本 🚀' },
      orderingKey: 'k',
    });
    const [{ message } = assert.fail('nothing came')] = await world.receive('orders-sub', 1);
    same(message.data, bytes);
    same({ ...message.attributes }, { käse: 'ü 日本 🚀' });
    same([message.orderingKey, message.messageId], ['k', id]);
    const publishTime = Number(message.publishTime?.seconds) * 1000;
    assert.ok(Math.abs(publishTime - before) < 5_000, `publish time ${publishTime}, at ${before}`);
  }),
  make('Answers a message ID for each message, in their order', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    const ids = await world.publish('orders', 'a', 'b', 'c');
    const got = await world.receive('orders-sub', 3);
    const byId = new Map(got.map((each) => [each.message.messageId, text(each)]));
    same(
      ids.map((id) => byId.get(id)),
      ['a', 'b', 'c'],
    );
  }),
  make('Assigns message ID and publish time whatever the publisher says', PROTO, async (world) => {
    const publishTime = { seconds: 1, nanos: 0 };
    const [id] = await published(world, 'it', { data, messageId: 'mine', publishTime });
    const [{ message } = assert.fail('nothing came')] = await world.receive('orders-sub', 1);
    same(message.messageId, id);
    assert.notEqual(message.messageId, 'mine');
    assert.notEqual(message.publishTime?.seconds, '1');
  }),
  make('Every subscription of the topic gets every message', PROTO, async (world) => {
    await world.create('orders', 'first-sub');
    await world.create('orders', 'second-sub');
    await world.publish('orders', 'a');
    for (const id of ['first-sub', 'second-sub']) {
      same((await world.receive(id, 1)).length, 1, `${id} got nothing`);
    }
  }),
  make('A subscription gets nothing that was published before it was created', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    await world.publish('orders', 'a');
    await world.create('orders', 'late-sub');
    same((await world.receive('orders-sub', 1)).length, 1);
    same(await world.pull('late-sub'), []);
  }),
  ...LIMITS.flatMap(([at, allowed, beyond, excessive]) => [
    make(`${at} is accepted`.replace('attributes is', 'attributes are'), QUOTAS, async (world) => {
      await published(world, at, allowed);
    }),
    make(`${beyond} is INVALID_ARGUMENT`.replace('attributes is', 'attributes are'), QUOTAS, (world) =>
      refusing(world, beyond, excessive),
    ),
  ]),
  make('A message of 10,000,000 bytes is delivered', QUOTAS, async (world) => {
    await published(world, 'it', { data: Buffer.alloc(MAX_BYTES, 7) });
    const [got] = await world.receive('orders-sub', 1);
    same(got?.message.data.length, MAX_BYTES);
  }),
  make('A message of 10 MiB is INVALID_ARGUMENT', QUOTAS, (world) =>
    refusing(world, 'a message of 10 MiB', { data: Buffer.alloc(10_485_760, 1) }),
  ),
  make('A message of 11 MiB is INVALID_ARGUMENT', QUOTAS, (world) =>
    refusing(world, 'a message of 11 MiB', { data: Buffer.alloc(11 * 1_048_576, 1) }),
  ),
  make('A request of more than 10,000,000 bytes is INVALID_ARGUMENT', QUOTAS, (world) => {
    const half = { data: Buffer.alloc(MAX_BYTES / 2 + 1, 1) };
    return refusing(world, 'two halves of one byte too many', half, half);
  }),
  make('A request of 1,000 messages is accepted', QUOTAS, async (world) => {
    const ids = await published(world, 'it', ...Array.from({ length: 1000 }, () => ({ data })));
    same(new Set(ids).size, 1000);
  }),
  make('A request of 1,001 messages is INVALID_ARGUMENT', QUOTAS, (world) =>
    refusing(world, '1,001 messages', ...Array.from({ length: 1001 }, () => ({ data }))),
  ),
  make('A request of no messages is INVALID_ARGUMENT', PROTO, (world) => refusing(world, 'no messages')),
  make('A message without data and attributes is INVALID_ARGUMENT', PROTO, (world) =>
    refusing(world, 'an empty message', {}),
  ),
  make('A message that has only an ordering key is INVALID_ARGUMENT', PROTO, (world) =>
    refusing(world, 'a message without data and attributes', { orderingKey: 'k' }),
  ),
  make('A message that has only attributes is accepted', PROTO, async (world) => {
    await published(world, 'it', { attributes: { k: '' } });
  }),
  ...['googid', 'goog', 'GOOGid', 'Goog-id'].map((key) =>
    make(`The attribute key ${key}, which begins with goog, is INVALID_ARGUMENT`, PUBLISHER, (world) =>
      refusing(world, `the key ${key}`, { data, attributes: { [key]: 'v' } }),
    ),
  ),
  make('One request with two ordering keys is INVALID_ARGUMENT', PROTO, (world) =>
    refusing(world, 'two keys', { data, orderingKey: 'a' }, { data, orderingKey: 'b' }),
  ),
  make('When one message of a request is refused, none is stored', PROTO, async (world) => {
    await refusing(world, 'an empty message after a good one', { data }, {});
    same(await world.pull('orders-sub'), []);
  }),
];
