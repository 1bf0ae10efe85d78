/** For cases about schemas: definitions, and calls with the names filled in. */
import assert from 'node:assert/strict';
import type { Answer } from './calls.ts';
import type { Fields, PubsubWorld } from './world.ts';

export const AVRO = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}';
export const AVRO_WITH_DEFAULT =
  '{"type":"record","name":"R","fields":[{"name":"a","type":"string"},{"name":"b","type":"int","default":0}]}';
export const AVRO_WITH_OPTION =
  '{"type":"record","name":"R","fields":[{"name":"a","type":["null","string"],"default":null}]}';
export const PROTO3 = 'syntax = "proto3"; message R { string a = 1; }';

export type Kind = 'AVRO' | 'PROTOCOL_BUFFER';

export const schemaName = (world: PubsubWorld, id = 'orders-schema'): string =>
  `projects/${world.project}/schemas/${id}`;

export const createSchema = (
  world: PubsubWorld,
  type: Kind,
  definition: string,
  schemaId = 'orders-schema',
): Promise<Answer> =>
  world.call('CreateSchema', { parent: `projects/${world.project}`, schemaId, schema: { type, definition } });

export const commit = (world: PubsubWorld, type: Kind, definition: string): Promise<Answer> =>
  world.call('CommitSchema', { name: schemaName(world), schema: { type, definition } });

export async function revisions(world: PubsubWorld): Promise<readonly string[]> {
  const { schemas } = await world.call('ListSchemaRevisions', { name: schemaName(world) });
  return (schemas as readonly { revisionId: string }[]).map(({ revisionId }) => revisionId);
}

/** Of a definition, without a schema. */
export const validate = (
  world: PubsubWorld,
  [type, definition]: readonly [Kind, string],
  encoding: 'JSON' | 'BINARY',
  message: string | Buffer,
): Promise<Answer> =>
  world.call('ValidateMessage', {
    parent: `projects/${world.project}`,
    schema: { type, definition },
    encoding,
    message: Buffer.from(message as string),
  });

/** The topic `orders` with the schema, and its subscription `orders-sub`. */
export async function topicWith(world: PubsubWorld, settings: Fields): Promise<void> {
  const schemaSettings = { schema: schemaName(world), ...settings };
  await world.call('CreateTopic', { name: world.topic('orders'), schemaSettings });
  await world.create('orders', 'orders-sub');
}

export async function attributesOf(world: PubsubWorld): Promise<Readonly<Record<string, string>>> {
  const [received] = await world.receive('orders-sub', 1);
  return received?.message.attributes ?? assert.fail('the message does not come');
}
