/** The methods of Subscriber that manage subscriptions, but for their limits. */
import { accepted, of, refused, type PubsubCase, same } from '../expect.ts';
import { ERROR_CODES, EXACTLY_ONCE, FILTERS, PROTO } from '../sources.ts';
import type { Fields, PubsubWorld } from '../world.ts';
import type { Answer } from '../calls.ts';

const make = of('Subscriptions');
const seconds = (count: number) => ({ seconds: String(count), nanos: 0 });
const NOWHERE = 'http://127.0.0.1:9/push';

const get = (world: PubsubWorld): Promise<Answer> =>
  world.call('GetSubscription', { subscription: world.subscription('orders-sub') });
const update = (world: PubsubWorld, fields: Fields, ...paths: readonly string[]): Promise<Answer> =>
  world.call('UpdateSubscription', {
    subscription: { name: world.subscription('orders-sub'), ...fields },
    updateMask: { paths },
  });

/** Each with what it is changed to. */
const CHANGEABLE: readonly (readonly [string, (world: PubsubWorld) => Fields])[] = [
  ['ack_deadline_seconds', () => ({ ackDeadlineSeconds: 30 })],
  ['message_retention_duration', () => ({ messageRetentionDuration: seconds(3600) })],
  ['retain_acked_messages', () => ({ retainAckedMessages: true })],
  ['labels', () => ({ labels: { team: 'red' } })],
  ['expiration_policy', () => ({ expirationPolicy: { ttl: seconds(864_000) } })],
  ['retry_policy', () => ({ retryPolicy: { minimumBackoff: seconds(5), maximumBackoff: seconds(50) } })],
  [
    'dead_letter_policy',
    (world) => ({ deadLetterPolicy: { deadLetterTopic: world.topic('orders'), maxDeliveryAttempts: 7 } }),
  ],
  ['enable_exactly_once_delivery', () => ({ enableExactlyOnceDelivery: true })],
];

export const subscriptions: readonly PubsubCase[] = [
  make(
    'CreateSubscription gives the defaults: 10 s and 7 days, and the state ACTIVE',
    PROTO,
    async (world) => {
      await world.create('orders', 'orders-sub');
      const { ackDeadlineSeconds, messageRetentionDuration, state } = await get(world);
      same([ackDeadlineSeconds, messageRetentionDuration], [10, seconds(604_800)]);
      same(state, 'ACTIVE');
    },
  ),
  make('The default expiration policy is 31 days', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    same((await get(world))['expirationPolicy'], { ttl: seconds(2_678_400) });
  }),
  make('The real client creates, gets and deletes a subscription', PROTO, async (world) => {
    const [topic] = await world.pubsub.createTopic('orders');
    const [subscription] = await topic.createSubscription('orders-sub', { ackDeadlineSeconds: 20 });
    const [metadata] = await subscription.getMetadata();
    same([metadata.topic, metadata.ackDeadlineSeconds], [world.topic('orders'), 20]);
    await subscription.delete();
    same(await subscription.exists(), [false]);
  }),
  make('CreateSubscription of one that exists is ALREADY_EXISTS', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    await refused(world.create('orders', 'orders-sub'), 'ALREADY_EXISTS', 'the second creation');
  }),
  make('CreateSubscription to a topic that does not exist is NOT_FOUND', PROTO, (world) => {
    const request = { name: world.subscription('orders-sub'), topic: world.topic('missing') };
    return refused(world.call('CreateSubscription', request), 'NOT_FOUND', 'it');
  }),
  make('A subscription may belong to another project than its topic', PROTO, async (world) => {
    await world.pubsub.createTopic('orders');
    const name = `projects/${world.project}-other/subscriptions/orders-sub`;
    await accepted(world.call('CreateSubscription', { name, topic: world.topic('orders') }), 'it');
    await world.publish('orders', 'a');
    const { receivedMessages } = await world.call('Pull', { subscription: name, maxMessages: 1 });
    await world.call('DeleteSubscription', { subscription: name });
    same((receivedMessages as unknown[]).length, 1);
  }),
  make('A subscription shows the retention of its topic', PROTO, async (world) => {
    const topic = { name: world.topic('orders'), messageRetentionDuration: seconds(3600) };
    await world.call('CreateTopic', topic);
    await world.create('orders', 'orders-sub');
    same((await get(world))['topicMessageRetentionDuration'], seconds(3600));
  }),
  ...['GetSubscription', 'DeleteSubscription'].map((method) =>
    make(`${method} of one that does not exist is NOT_FOUND`, ERROR_CODES, (world) =>
      refused(world.call(method, { subscription: world.subscription('missing') }), 'NOT_FOUND', method),
    ),
  ),
  make('DeleteSubscription drops the messages: a new one of the name is empty', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    await world.publish('orders', 'a');
    await world.pubsub.subscription('orders-sub').delete();
    await world.create('orders', 'orders-sub');
    same(await world.pull('orders-sub'), []);
  }),
  make('Pull after DeleteSubscription is NOT_FOUND', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    await world.pubsub.subscription('orders-sub').delete();
    await refused(world.pull('orders-sub'), 'NOT_FOUND', 'Pull');
  }),
  ...CHANGEABLE.map(([path, fields]) =>
    make(`UpdateSubscription changes ${path} when it is in the mask`, PROTO, async (world) => {
      await world.create('orders', 'orders-sub');
      const wanted = fields(world);
      await accepted(update(world, wanted, path), `the mask ${path}`);
      const found = await get(world);
      for (const [field, value] of Object.entries(wanted)) same(found[field], value, field);
    }),
  ),
  make('UpdateSubscription changes push_config when it is in the mask', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    await update(world, { pushConfig: { pushEndpoint: NOWHERE } }, 'push_config');
    same(((await get(world))['pushConfig'] as { pushEndpoint: string } | null)?.pushEndpoint, NOWHERE);
  }),
  make('UpdateSubscription leaves alone what is not in the mask', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    await update(world, { ackDeadlineSeconds: 30, retainAckedMessages: true }, 'retain_acked_messages');
    same((await get(world))['ackDeadlineSeconds'], 10);
  }),
  make('UpdateSubscription sets a masked field that is left out to its default', PROTO, async (world) => {
    await world.create('orders', 'orders-sub', { ackDeadlineSeconds: 30 });
    await update(world, {}, 'ack_deadline_seconds');
    same((await get(world))['ackDeadlineSeconds'], 10);
  }),
  make('UpdateSubscription of the filter is INVALID_ARGUMENT: it never changes', FILTERS, async (world) => {
    await world.create('orders', 'orders-sub', { filter: 'attributes:a' });
    await refused(update(world, { filter: 'attributes:b' }, 'filter'), 'INVALID_ARGUMENT', 'the mask filter');
    same((await get(world))['filter'], 'attributes:a');
  }),
  ...(
    [
      ['topic', { topic: 'projects/p/topics/other' }],
      ['enable_message_ordering', { enableMessageOrdering: true }],
      ['colour', {}],
    ] as const
  ).map(([path, fields]) =>
    make(`UpdateSubscription of ${path} is INVALID_ARGUMENT`, PROTO, async (world) => {
      await world.create('orders', 'orders-sub');
      await refused(update(world, fields, path), 'INVALID_ARGUMENT', `the mask ${path}`);
    }),
  ),
  make('UpdateSubscription without a mask is INVALID_ARGUMENT', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    await refused(update(world, { ackDeadlineSeconds: 30 }), 'INVALID_ARGUMENT', 'an empty mask');
  }),
  make('UpdateSubscription of one that does not exist is NOT_FOUND', ERROR_CODES, (world) =>
    refused(update(world, { ackDeadlineSeconds: 30 }, 'ack_deadline_seconds'), 'NOT_FOUND', 'it'),
  ),
  make(
    'UpdateSubscription keeps to the limits, and changes nothing when it refuses',
    PROTO,
    async (world) => {
      await world.create('orders', 'orders-sub');
      await refused(
        update(world, { ackDeadlineSeconds: 601 }, 'ack_deadline_seconds'),
        'INVALID_ARGUMENT',
        '601 s',
      );
      same((await get(world))['ackDeadlineSeconds'], 10);
    },
  ),
  make('Exactly-once delivery by push is INVALID_ARGUMENT', EXACTLY_ONCE, (world) => {
    const options = { enableExactlyOnceDelivery: true, pushConfig: { pushEndpoint: NOWHERE } };
    return refused(world.create('orders', 'orders-sub', options), 'INVALID_ARGUMENT', 'both together');
  }),
];
