/**
 * What the service does and a local server may leave out. The embedded one refuses each with UNIMPLEMENTED, which tells
 * the user; what must not be is an option that is taken and then ignored.
 */
import assert from 'node:assert/strict';
import { refused, refusedHere, type PubsubCase, same } from '../expect.ts';
import { PROTO } from '../sources.ts';
import { text, type Fields, type PubsubWorld } from '../world.ts';

const SHOUT =
  'function shout(message, metadata) { message.data = message.data.toUpperCase(); return message; }';
const transform = { messageTransforms: [{ javascriptUdf: { functionName: 'shout', code: SHOUT } }] };

type Attempt = (world: PubsubWorld) => Promise<unknown>;

const withTopic =
  (fields: Fields): Attempt =>
  async (world) => {
    try {
      return await world.call('CreateTopic', { name: world.topic('orders'), ...fields });
    } catch (error) {
      await refused(world.call('GetTopic', { topic: world.topic('orders') }), 'NOT_FOUND', 'a refused topic');
      throw error;
    }
  };

const withSubscription =
  (fields: (world: PubsubWorld) => Fields): Attempt =>
  async (world) => {
    try {
      return await world.create('orders', 'orders-sub', fields(world));
    } catch (error) {
      const subscription = world.subscription('orders-sub');
      await refused(world.call('GetSubscription', { subscription }), 'NOT_FOUND', 'a refused subscription');
      throw error;
    }
  };

async function shouts(world: PubsubWorld): Promise<void> {
  await world.publish('orders', 'a');
  same((await world.receive('orders-sub', 1)).map(text), ['A'], 'the transform was not carried out');
}

/** Where there is nothing to write to or read from, the service does not take it either. */
const failing = async (attempt: Promise<unknown>): Promise<void> =>
  attempt.then(
    () => assert.fail('it is answered OK, although what it names does not exist'),
    () => {},
  );

const exports: readonly (readonly [field: string, config: (world: PubsubWorld) => Fields])[] = [
  ['bigquery_config', () => ({ bigqueryConfig: { table: 'p.d.t' } })],
  ['cloud_storage_config', () => ({ cloudStorageConfig: { bucket: 'bucket-of-mine' } })],
  [
    'bigtable_config',
    ({ project }) => ({ bigtableConfig: { table: `projects/${project}/instances/i/tables/t` } }),
  ],
];

export const unserved: readonly PubsubCase[] = [
  refusedHere(
    'A transform of a topic is carried out: this server refuses it',
    PROTO,
    withTopic(transform),
    async (world) => {
      await withTopic(transform)(world);
      await world.create('orders', 'orders-sub');
      await shouts(world);
    },
  ),
  refusedHere(
    'A transform of a subscription is carried out: this server refuses it',
    PROTO,
    withSubscription(() => transform),
    async (world) => {
      await withSubscription(() => transform)(world);
      await shouts(world);
    },
  ),
  ...exports.map(([field, config]) =>
    refusedHere(
      `A subscription with ${field} writes to a cloud: this server refuses it`,
      PROTO,
      withSubscription(config),
      (world) => failing(withSubscription(config)(world)),
    ),
  ),
];
