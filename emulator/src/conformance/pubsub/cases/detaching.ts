/** DetachSubscription. */
import { status } from '@grpc/grpc-js';
import { accepted, never, of, refused, type PubsubCase, same } from '../expect.ts';
import { ERROR_CODES, PROTO } from '../sources.ts';
import type { PubsubWorld } from '../world.ts';

const make = of('Detaching');
const SUB = 'orders-sub';

const detach = (world: PubsubWorld) =>
  accepted(world.call('DetachSubscription', { subscription: world.subscription(SUB) }), 'DetachSubscription');

export const detaching: readonly PubsubCase[] = [
  make('GetSubscription shows that it is detached', PROTO, async (world) => {
    await world.create('orders', SUB);
    await detach(world);
    const { detached } = await world.call('GetSubscription', { subscription: world.subscription(SUB) });
    same(detached, true);
  }),
  make('Pull of a detached subscription is FAILED_PRECONDITION', PROTO, async (world) => {
    await world.create('orders', SUB);
    await world.publish('orders', 'a');
    await detach(world);
    await refused(world.pull(SUB), 'FAILED_PRECONDITION', 'Pull');
  }),
  make('StreamingPull of a detached subscription is FAILED_PRECONDITION', PROTO, async (world) => {
    await world.create('orders', SUB);
    await detach(world);
    const { ended } = world.stream({ subscription: world.subscription(SUB), streamAckDeadlineSeconds: 10 });
    same(status[await ended], 'FAILED_PRECONDITION');
  }),
  make('An open stream ends when the subscription is detached', PROTO, async (world) => {
    await world.create('orders', SUB);
    const { ended } = world.stream({ subscription: world.subscription(SUB), streamAckDeadlineSeconds: 10 });
    await new Promise((resolve) => setTimeout(resolve, 50));
    await detach(world);
    same(status[await ended], 'FAILED_PRECONDITION');
  }),
  make('Its topic no longer lists a detached subscription', PROTO, async (world) => {
    await world.create('orders', SUB);
    await detach(world);
    const { subscriptions } = await world.call('ListTopicSubscriptions', { topic: world.topic('orders') });
    same(subscriptions, []);
  }),
  make('Pushes stop when the subscription is detached', PROTO, async (world) => {
    const { url, got } = await world.endpoint();
    await world.create('orders', SUB, { pushConfig: { pushEndpoint: url } });
    await detach(world);
    await world.publish('orders', 'a');
    await never(() => got.length > 0, 'a message was pushed');
  }),
  make('The real client detaches', PROTO, async (world) => {
    await world.create('orders', SUB);
    await accepted(world.pubsub.detachSubscription(SUB), 'DetachSubscription');
    same(await world.pubsub.subscription(SUB).detached(), [true]);
  }),
  make('DetachSubscription of one that does not exist is NOT_FOUND', ERROR_CODES, (world) =>
    refused(
      world.call('DetachSubscription', { subscription: world.subscription('missing') }),
      'NOT_FOUND',
      'DetachSubscription',
    ),
  ),
  make('Seek of a detached subscription is FAILED_PRECONDITION', ERROR_CODES, async (world) => {
    await world.create('orders', SUB);
    await detach(world);
    const request = { subscription: world.subscription(SUB), time: { seconds: '1' } };
    await refused(world.call('Seek', request), 'FAILED_PRECONDITION', 'Seek');
  }),
];
