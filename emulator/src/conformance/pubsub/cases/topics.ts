/** The methods of Publisher that manage topics. */
import { accepted, of, refused, type PubsubCase, same } from '../expect.ts';
import { ERROR_CODES, PROTO } from '../sources.ts';
import type { Fields, PubsubWorld } from '../world.ts';

const make = of('Topics');
const HOUR = { seconds: '3600', nanos: 0 };

const update = (world: PubsubWorld, fields: Fields, ...paths: readonly string[]) =>
  world.call('UpdateTopic', { topic: { name: world.topic('orders'), ...fields }, updateMask: { paths } });

export const topics: readonly PubsubCase[] = [
  make('CreateTopic answers the topic, in the state ACTIVE', PROTO, async (world) => {
    const [topic] = await world.pubsub.createTopic('orders');
    same(topic.name, world.topic('orders'));
    const { name, state } = await world.call('GetTopic', { topic: world.topic('orders') });
    same([name, state], [world.topic('orders'), 'ACTIVE']);
  }),
  make('CreateTopic keeps labels and retention, and GetTopic shows them', PROTO, async (world) => {
    const wanted = { labels: { team: 'blue' }, messageRetentionDuration: HOUR };
    await world.call('CreateTopic', { name: world.topic('orders'), ...wanted });
    const { labels, messageRetentionDuration } = await world.call('GetTopic', {
      topic: world.topic('orders'),
    });
    same({ labels, messageRetentionDuration }, wanted);
  }),
  make('CreateTopic of a topic that exists is ALREADY_EXISTS', ERROR_CODES, async (world) => {
    await world.pubsub.createTopic('orders');
    await refused(world.pubsub.createTopic('orders'), 'ALREADY_EXISTS', 'the second creation');
  }),
  make('GetTopic of a topic that does not exist is NOT_FOUND', ERROR_CODES, (world) =>
    refused(world.pubsub.topic('missing').getMetadata(), 'NOT_FOUND', 'GetTopic'),
  ),
  make('UpdateTopic changes the labels when they are in the mask', PROTO, async (world) => {
    await world.call('CreateTopic', { name: world.topic('orders'), labels: { team: 'blue' } });
    await accepted(update(world, { labels: { team: 'red' } }, 'labels'), 'the mask labels');
    const { labels } = await world.call('GetTopic', { topic: world.topic('orders') });
    same(labels, { team: 'red' });
  }),
  make('UpdateTopic changes the retention when it is in the mask', PROTO, async (world) => {
    await world.pubsub.createTopic('orders');
    await update(world, { messageRetentionDuration: HOUR }, 'message_retention_duration');
    const { messageRetentionDuration } = await world.call('GetTopic', { topic: world.topic('orders') });
    same(messageRetentionDuration, HOUR);
  }),
  make('UpdateTopic leaves alone what is not in the mask', PROTO, async (world) => {
    await world.call('CreateTopic', { name: world.topic('orders'), labels: { team: 'blue' } });
    const changed = { labels: { team: 'red' }, messageRetentionDuration: HOUR };
    await update(world, changed, 'message_retention_duration');
    const { labels } = await world.call('GetTopic', { topic: world.topic('orders') });
    same(labels, { team: 'blue' });
  }),
  make('UpdateTopic without a mask is INVALID_ARGUMENT', PROTO, async (world) => {
    await world.pubsub.createTopic('orders');
    await refused(update(world, { messageRetentionDuration: HOUR }), 'INVALID_ARGUMENT', 'an empty mask');
  }),
  make('UpdateTopic of a field that no topic has is INVALID_ARGUMENT', PROTO, async (world) => {
    await world.pubsub.createTopic('orders');
    await refused(update(world, {}, 'colour'), 'INVALID_ARGUMENT', 'the mask colour');
  }),
  make('UpdateTopic of the name is INVALID_ARGUMENT', PROTO, async (world) => {
    await world.pubsub.createTopic('orders');
    await refused(update(world, {}, 'name'), 'INVALID_ARGUMENT', 'the mask name');
  }),
  make('UpdateTopic of a topic that does not exist is NOT_FOUND', ERROR_CODES, (world) =>
    refused(
      update(world, { messageRetentionDuration: HOUR }, 'message_retention_duration'),
      'NOT_FOUND',
      'it',
    ),
  ),
  make('DeleteTopic deletes the topic', PROTO, async (world) => {
    const [topic] = await world.pubsub.createTopic('orders');
    await topic.delete();
    same(await topic.exists(), [false]);
  }),
  make('DeleteTopic of a topic that does not exist is NOT_FOUND', PROTO, (world) =>
    refused(world.pubsub.topic('missing').delete(), 'NOT_FOUND', 'DeleteTopic'),
  ),
  make('After DeleteTopic a subscription names its topic _deleted-topic_', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    await world.pubsub.topic('orders').delete();
    const { topic } = await world.call('GetSubscription', { subscription: world.subscription('orders-sub') });
    same(topic, '_deleted-topic_');
  }),
  make('A subscription keeps its backlog when its topic is deleted', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    await world.publish('orders', 'a');
    await world.pubsub.topic('orders').delete();
    const got = await world.receive('orders-sub', 1);
    same(got.length, 1, 'the message is gone');
  }),
  make('A topic created anew has none of the old subscriptions', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    await world.pubsub.topic('orders').delete();
    await world.pubsub.createTopic('orders');
    const { subscriptions } = await world.call('ListTopicSubscriptions', { topic: world.topic('orders') });
    same(subscriptions, []);
    await world.publish('orders', 'a');
    same(await world.pull('orders-sub'), [], 'the old subscription got the message');
  }),
  make('Publish to a topic that does not exist is NOT_FOUND', PROTO, (world) =>
    refused(world.publish('missing', 'a'), 'NOT_FOUND', 'Publish'),
  ),
  make('Publish to a topic that was deleted is NOT_FOUND', PROTO, async (world) => {
    const [topic] = await world.pubsub.createTopic('orders');
    await topic.delete();
    await refused(world.publish('orders', 'a'), 'NOT_FOUND', 'Publish');
  }),
  make('Topics of one name in two projects are two topics', PROTO, async (world) => {
    await world.create('orders', 'orders-sub');
    const other = `projects/${world.project}-other/topics/orders`;
    await accepted(world.call('CreateTopic', { name: other }), 'the topic of the other project');
    await world.call('Publish', { topic: other, messages: [{ data: Buffer.from('x') }] });
    same(await world.pull('orders-sub'), []);
  }),
];
