/**
 * What a local server may leave out. Each case is content with the feature as documented, and with UNIMPLEMENTED, which
 * tells the user; what no case accepts is an option that is taken and then ignored.
 */
import assert from 'node:assert/strict';
import { status } from '@grpc/grpc-js';
import { of, refused, type PubsubCase, same } from '../expect.ts';
import { CODES } from '../sources.ts';
import { text, type Fields, type PubsubWorld } from '../world.ts';

const make = of('Carried out or refused');
const AVRO = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}';
const PROTO2 = 'syntax = "proto3"; message R { string a = 1; }';
const SHOUT =
  'function shout(message, metadata) { message.data = message.data.toUpperCase(); return message; }';
const transform = { messageTransforms: [{ javascriptUdf: { functionName: 'shout', code: SHOUT } }] };

/** False when the call is answered UNIMPLEMENTED; any other error is one. */
async function served(answer: Promise<unknown>): Promise<boolean> {
  try {
    await answer;
    return true;
  } catch (error) {
    if ((error as { code?: number }).code === status.UNIMPLEMENTED) return false;
    throw error;
  }
}

const rejected = (answer: Promise<unknown>, what: string): Promise<void> =>
  answer.then(
    () => assert.fail(`${what} is answered OK`),
    () => {},
  );

const schema = (world: PubsubWorld, type: string, definition: string) => {
  const parent = `projects/${world.project}`;
  return world.call('CreateSchema', { parent, schemaId: 'orders-schema', schema: { type, definition } });
};

const cloud = (world: PubsubWorld): Readonly<Record<string, Fields>> => ({
  bigquery_config: { bigqueryConfig: { table: 'p.d.t' } },
  cloud_storage_config: { cloudStorageConfig: { bucket: 'bucket-of-mine' } },
  bigtable_config: { bigtableConfig: { table: `projects/${world.project}/instances/i/tables/t` } },
});

export const unserved: readonly PubsubCase[] = [
  make('An Avro schema is enforced, or not accepted', CODES, async (world) => {
    if (!(await served(schema(world, 'AVRO', AVRO)))) return;
    const schemaSettings = { schema: `projects/${world.project}/schemas/orders-schema`, encoding: 'JSON' };
    await world.call('CreateTopic', { name: world.topic('orders'), schemaSettings });
    await refused(world.publish('orders', '{"b":1}'), 'INVALID_ARGUMENT', 'what the schema does not allow');
  }),
  make('A Protocol Buffers schema is enforced, or not accepted', CODES, async (world) => {
    if (!(await served(schema(world, 'PROTOCOL_BUFFER', PROTO2)))) return;
    const schemaSettings = { schema: `projects/${world.project}/schemas/orders-schema`, encoding: 'JSON' };
    await world.call('CreateTopic', { name: world.topic('orders'), schemaSettings });
    await refused(world.publish('orders', '{"b":1}'), 'INVALID_ARGUMENT', 'what the schema does not allow');
  }),
  ...(
    [
      ['GetSchema', 'name'],
      ['DeleteSchema', 'name'],
      ['ListSchemaRevisions', 'name'],
    ] as const
  ).map(([method, field]) =>
    make(`${method} of a schema that does not exist is refused`, CODES, async (world) => {
      const answer = world.call(method, { [field]: `projects/${world.project}/schemas/missing` });
      const seen = await answer.then(
        () => 'OK',
        ({ code }: { code: number }) => status[code] ?? String(code),
      );
      assert.ok(['NOT_FOUND', 'UNIMPLEMENTED'].includes(seen), `it is answered ${seen}`);
    }),
  ),
  make('A topic with a schema that does not exist is refused', CODES, async (world) => {
    const schemaSettings = { schema: `projects/${world.project}/schemas/missing`, encoding: 'JSON' };
    const answer = world.call('CreateTopic', { name: world.topic('orders'), schemaSettings });
    await rejected(answer, 'CreateTopic');
  }),
  make('A transform of a topic is carried out, or not accepted', CODES, async (world) => {
    if (!(await served(world.call('CreateTopic', { name: world.topic('orders'), ...transform })))) return;
    await world.create('orders', 'orders-sub');
    await world.publish('orders', 'a');
    same((await world.receive('orders-sub', 1)).map(text), ['A'], 'the transform was not carried out');
  }),
  make('A transform of a subscription is carried out, or not accepted', CODES, async (world) => {
    if (!(await served(world.create('orders', 'orders-sub', transform)))) return;
    await world.publish('orders', 'a');
    same((await world.receive('orders-sub', 1)).map(text), ['A'], 'the transform was not carried out');
  }),
  ...['bigquery_config', 'cloud_storage_config', 'bigtable_config'].map((field) =>
    make(`A subscription with ${field} is refused: there is nothing to write to`, CODES, async (world) => {
      const answer = world.create('orders', 'orders-sub', cloud(world)[field]);
      await rejected(answer, 'CreateSubscription');
    }),
  ),
  make('Ingestion into a topic is refused: there is nothing to read from', CODES, async (world) => {
    const ingestionDataSourceSettings = { cloudStorage: { bucket: 'bucket-of-mine', textFormat: {} } };
    const answer = world.call('CreateTopic', { name: world.topic('orders'), ingestionDataSourceSettings });
    await rejected(answer, 'CreateTopic');
  }),
  make('The policy of a topic can be set and read, or is UNIMPLEMENTED', CODES, async (world) => {
    await world.pubsub.createTopic('orders');
    const bindings = [{ role: 'roles/pubsub.publisher', members: ['user:a@example.com'] }];
    const resource = world.topic('orders');
    if (!(await served(world.call('SetIamPolicy', { resource, policy: { bindings } })))) return;
    const policy = await world.call('GetIamPolicy', { resource });
    assert.partialDeepStrictEqual(policy['bindings'], bindings);
  }),
];
