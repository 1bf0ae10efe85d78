/** What a name that is used again has of its former owner, and other details of resources. */
import assert from 'node:assert/strict';
import { never, of, refused, until, type PubsubCase, same } from '../expect.ts';
import { pushedText } from '../endpoint.ts';
import { DEAD_LETTERS, ERROR_CODES, EXACTLY_ONCE, ORDERING, PROTO } from '../sources.ts';
import { texts } from '../world.ts';

const anew = of('Names that are used again');
const details = of('Details');
const SUB = 'orders-sub';
const HOUR = { seconds: '3600', nanos: 0 };

export const namesAnew: readonly PubsubCase[] = [
  anew('A topic created anew has nothing of the old one’s configuration', PROTO, async (world) => {
    const name = world.topic('orders');
    await world.call('CreateTopic', { name, labels: { team: 'red' }, messageRetentionDuration: HOUR });
    await world.pubsub.topic('orders').delete();
    await world.call('CreateTopic', { name });
    const { labels, messageRetentionDuration } = await world.call('GetTopic', { topic: name });
    same([labels, messageRetentionDuration], [{}, null]);
  }),
  anew(
    'A subscription created anew may have another topic, and gets nothing of the old',
    PROTO,
    async (world) => {
      await world.create('orders', SUB);
      await world.pubsub.subscription(SUB).delete();
      await world.create('others', SUB);
      await world.publish('orders', 'old');
      await world.publish('others', 'new');
      same(texts(await world.receive(SUB, 1)), 'new');
      same(texts(await world.pull(SUB)), '');
    },
  ),
  anew('A detached subscription can be deleted, and its name used again', PROTO, async (world) => {
    await world.create('orders', SUB);
    await world.call('DetachSubscription', { subscription: world.subscription(SUB) });
    await world.pubsub.subscription(SUB).delete();
    await world.create('orders', SUB);
    await world.publish('orders', 'a');
    same(texts(await world.receive(SUB, 1)), 'a');
  }),
  details('Its topic no longer lists a deleted subscription', PROTO, async (world) => {
    await world.create('orders', SUB);
    await world.create('orders', 'other-sub');
    await world.pubsub.subscription(SUB).delete();
    const { subscriptions } = await world.call('ListTopicSubscriptions', { topic: world.topic('orders') });
    same(subscriptions, [world.subscription('other-sub')]);
  }),
  details(
    'What a request says of the topic’s retention is ignored in a subscription',
    PROTO,
    async (world) => {
      await world.create('orders', SUB, { topicMessageRetentionDuration: HOUR });
      const found = await world.call('GetSubscription', { subscription: world.subscription(SUB) });
      same(found['topicMessageRetentionDuration'], null);
    },
  ),
  details(
    'A request with a message that has an ordering key and one that has none is INVALID_ARGUMENT',
    PROTO,
    async (world) => {
      await world.create('orders', SUB);
      const data = Buffer.from('a');
      await refused(world.publish('orders', { data, orderingKey: 'k' }, { data }), 'INVALID_ARGUMENT', 'it');
    },
  ),
  details('A dead letter for a topic without subscriptions is lost', DEAD_LETTERS, async (world) => {
    await world.pubsub.createTopic('dead');
    const deadLetterPolicy = { deadLetterTopic: world.topic('dead'), maxDeliveryAttempts: 5 };
    await world.create('orders', SUB, { deadLetterPolicy });
    await world.publish('orders', 'a');
    for (let round = 0; round < 5; round += 1) await world.nack(SUB, ...(await world.receive(SUB, 1)));
    await world.create('dead', 'dead-sub');
    same([texts(await world.pull('dead-sub')), texts(await world.pull(SUB))], ['', '']);
  }),
  details('Exactly-once delivery keeps to the order of a key', ORDERING, async (world) => {
    await world.create('orders', SUB, { enableMessageOrdering: true, enableExactlyOnceDelivery: true });
    for (const each of ['a1', 'a2'])
      await world.publish('orders', { data: Buffer.from(each), orderingKey: 'a' });
    const first = await world.receive(SUB, 1);
    same(texts(first), 'a1');
    same(texts(await world.pull(SUB)), '', 'the second came before the first was acknowledged');
    await world.ack(SUB, ...first);
    same(texts(await world.receive(SUB, 1)), 'a2');
  }),
  details(
    'What is published twice is two messages with IDs of their own, exactly once or not',
    EXACTLY_ONCE,
    async (world) => {
      await world.create('orders', SUB, { enableExactlyOnceDelivery: true });
      const ids = [...(await world.publish('orders', 'a')), ...(await world.publish('orders', 'a'))];
      const got = await world.receive(SUB, 2);
      same(got.map(({ message }) => message.messageId).toSorted(), ids.toSorted());
      assert.notEqual(ids[0], ids[1]);
    },
  ),
  details(
    'A changed endpoint gets what is published after the change, the old one nothing more',
    PROTO,
    async (world) => {
      const [before, after] = [await world.endpoint(), await world.endpoint()];
      await world.create('orders', SUB, { pushConfig: { pushEndpoint: before.url } });
      await world.publish('orders', 'a');
      await until(() => before.got.length === 1, 'pushed', 8_000);
      const pushConfig = { pushEndpoint: after.url };
      await world.call('ModifyPushConfig', { subscription: world.subscription(SUB), pushConfig });
      await world.publish('orders', 'b');
      await until(() => after.got.length > 0, 'pushed to the new endpoint', 8_000);
      await never(() => before.got.length > 1, 'the old endpoint got more');
      same(after.got.map(pushedText).includes('b'), true);
    },
  ),
  ...(
    [
      ['ListTopics', 'project'],
      ['ListSubscriptions', 'project'],
      ['ListSnapshots', 'project'],
      ['ListTopicSubscriptions', 'topic'],
      ['ListTopicSnapshots', 'topic'],
    ] as const
  ).flatMap(([method, field]) =>
    (
      [
        ['a negative page size', { pageSize: -1 }],
        ['a page token that no answer gave', { pageToken: 'nonsense' }],
      ] as const
    ).map(([what, wrong]) =>
      details(`${method} with ${what} is INVALID_ARGUMENT`, ERROR_CODES, async (world) => {
        await world.pubsub.createTopic('orders');
        const parent = field === 'topic' ? world.topic('orders') : `projects/${world.project}`;
        await refused(world.call(method, { [field]: parent, ...wrong }), 'INVALID_ARGUMENT', what);
      }),
    ),
  ),
];
