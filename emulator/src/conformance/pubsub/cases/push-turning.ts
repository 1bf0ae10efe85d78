/** From pull to push and back. */
import { pushedText } from '../endpoint.ts';
import { of, refused, same, until, type PubsubCase } from '../expect.ts';
import { ERROR_CODES, PROTO, PUSH } from '../sources.ts';
import { texts } from '../world.ts';

const turning = of('Push and pull');
const SUB = 'orders-sub';

export const pushTurning: readonly PubsubCase[] = [
  turning(
    'ModifyPushConfig turns a pull subscription into a push one, backlog included',
    PROTO,
    async (world) => {
      await world.create('orders', SUB);
      await world.publish('orders', 'a');
      const { url, got } = await world.endpoint();
      const subscription = world.subscription(SUB);
      await world.call('ModifyPushConfig', { subscription, pushConfig: { pushEndpoint: url } });
      await until(() => got.length > 0, 'pushed', 8_000);
      same(got.map(pushedText).join(), 'a');
    },
  ),
  turning('An empty push config turns it into a pull one', PROTO, async (world) => {
    const { url, got } = await world.endpoint();
    await world.create('orders', SUB, { pushConfig: { pushEndpoint: url } });
    await world.call('ModifyPushConfig', { subscription: world.subscription(SUB), pushConfig: {} });
    await world.publish('orders', 'a');
    same(texts(await world.receive(SUB, 1)), 'a');
    same(got.length, 0);
  }),
  turning('The real client modifies the push config', PROTO, async (world) => {
    await world.create('orders', SUB);
    const { url, got } = await world.endpoint();
    await world.pubsub.subscription(SUB).modifyPushConfig({ pushEndpoint: url });
    await world.publish('orders', 'a');
    await until(() => got.length > 0, 'pushed', 8_000);
  }),
  turning('ModifyPushConfig of one that does not exist is NOT_FOUND', ERROR_CODES, (world) => {
    const request = { subscription: world.subscription('missing'), pushConfig: {} };
    return refused(world.call('ModifyPushConfig', request), 'NOT_FOUND', 'ModifyPushConfig');
  }),
  turning('ModifyPushConfig to no http URL is INVALID_ARGUMENT', PUSH, async (world) => {
    await world.create('orders', SUB);
    const request = {
      subscription: world.subscription(SUB),
      pushConfig: { pushEndpoint: 'ftp://example.com' },
    };
    await refused(world.call('ModifyPushConfig', request), 'INVALID_ARGUMENT', 'ftp');
  }),
];
