/** The methods of SchemaService about schemas, and what fits a schema. */
import { accepted, of, refused, type PubsubCase, same } from '../expect.ts';
import {
  AVRO,
  AVRO_WITH_DEFAULT,
  AVRO_WITH_OPTION,
  createSchema,
  PROTO3,
  schemaName,
  validate,
} from '../schema-world.ts';
import { CODES, ERROR_CODES, NAMES, RECORDED_REFUSAL, SCHEMA_PROTO, SCHEMAS } from '../sources.ts';
import type { PubsubWorld } from '../world.ts';

const make = of('Schemas');
const judged = of('Messages and schemas');

const listed = async (world: PubsubWorld, view: string, pageSize = 0, pageToken = '') => {
  const parent = `projects/${world.project}`;
  const { schemas, nextPageToken } = await world.call('ListSchemas', { parent, view, pageSize, pageToken });
  return { schemas: schemas as readonly Record<string, unknown>[], nextPageToken: String(nextPageToken) };
};

export const schemas: readonly PubsubCase[] = [
  make('A project without schemas lists none', SCHEMA_PROTO, async (world) => {
    same((await listed(world, 'BASIC')).schemas, []);
  }),
  ...(
    [
      ['AVRO', AVRO],
      ['PROTOCOL_BUFFER', PROTO3],
    ] as const
  ).map(([type, definition]) =>
    make(
      `CreateSchema of type ${type} answers the schema with its first revision`,
      SCHEMA_PROTO,
      async (world) => {
        const made = await accepted(createSchema(world, type, definition), 'CreateSchema');
        same([made['name'], made['type'], made['definition']], [schemaName(world), type, definition]);
        same(/^[0-9a-f]{8}$/.test(String(made['revisionId'])), true, 'eight digits of a revision ID');
        same(made['revisionCreateTime'] !== null, true, 'a time of the revision');
      },
    ),
  ),
  make('CreateSchema of a schema that exists is ALREADY_EXISTS', CODES, async (world) => {
    await createSchema(world, 'AVRO', AVRO);
    await refused(createSchema(world, 'AVRO', AVRO), 'ALREADY_EXISTS', 'the second creation');
  }),
  ...['', 'ab', '1abc', 'goog-mine', 'a/b'].map((id) =>
    make(`CreateSchema with the ID "${id}" is INVALID_ARGUMENT`, NAMES, (world) =>
      refused(createSchema(world, 'AVRO', AVRO, id), 'INVALID_ARGUMENT', 'CreateSchema'),
    ),
  ),
  ...(
    [
      ['is not JSON', 'AVRO', '{'],
      ['names a type that there is not', 'AVRO', '{"type":"nope"}'],
      ['is empty', 'AVRO', ''],
      ['does not parse', 'PROTOCOL_BUFFER', 'message {'],
      ['has two messages at the top', 'PROTOCOL_BUFFER', 'syntax = "proto3"; message A {} message B {}'],
      ['has no message', 'PROTOCOL_BUFFER', 'syntax = "proto3";'],
      [
        'imports another file',
        'PROTOCOL_BUFFER',
        'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message A { google.protobuf.Timestamp t = 1; }',
      ],
    ] as const
  ).map(([what, type, definition]) =>
    make(`A definition of type ${type} that ${what} is INVALID_ARGUMENT`, SCHEMAS, async (world) => {
      await refused(createSchema(world, type, definition), 'INVALID_ARGUMENT', 'CreateSchema');
      const request = { parent: `projects/${world.project}`, schema: { type, definition } };
      await refused(world.call('ValidateSchema', request), 'INVALID_ARGUMENT', 'ValidateSchema');
      await refused(world.call('GetSchema', { name: schemaName(world) }), 'NOT_FOUND', 'GetSchema');
    }),
  ),
  make('A definition above 300 KB is INVALID_ARGUMENT', SCHEMAS, async (world) => {
    const long = JSON.stringify({ ...(JSON.parse(AVRO) as object), doc: 'x'.repeat(400_000) });
    await refused(createSchema(world, 'AVRO', long), 'INVALID_ARGUMENT', 'CreateSchema');
  }),
  make('ValidateSchema of a schema that is one is OK, and makes none', SCHEMA_PROTO, async (world) => {
    const schema = { type: 'AVRO', definition: AVRO };
    await accepted(world.call('ValidateSchema', { parent: `projects/${world.project}`, schema }), 'it');
    same((await listed(world, 'BASIC')).schemas, []);
  }),
  make('GetSchema has the definition, and not in the view BASIC', SCHEMA_PROTO, async (world) => {
    await createSchema(world, 'AVRO', AVRO);
    const name = schemaName(world);
    same((await world.call('GetSchema', { name }))['definition'], AVRO);
    same((await world.call('GetSchema', { name, view: 'BASIC' }))['definition'], '');
  }),
  make('ListSchemas has definitions in the view FULL alone', SCHEMA_PROTO, async (world) => {
    await createSchema(world, 'AVRO', AVRO);
    const definitionIn = async (view: string) => (await listed(world, view)).schemas[0]?.['definition'];
    same(await definitionIn('FULL'), AVRO);
    same(await definitionIn('SCHEMA_VIEW_UNSPECIFIED'), '', 'without a view');
  }),
  make('ListSchemas comes in pages', SCHEMA_PROTO, async (world) => {
    const ids = ['aaa', 'bbb', 'ccc'];
    for (const id of ids) await createSchema(world, 'AVRO', AVRO, id);
    const first = await listed(world, 'BASIC', 2);
    const second = await listed(world, 'BASIC', 2, first.nextPageToken);
    same(
      [...first.schemas, ...second.schemas].map(({ name }) => name),
      ids.map((id) => schemaName(world, id)),
    );
    same(second.nextPageToken, '');
  }),
  make('DeleteSchema deletes the schema', SCHEMA_PROTO, async (world) => {
    await createSchema(world, 'AVRO', AVRO);
    await world.call('DeleteSchema', { name: schemaName(world) });
    await refused(world.call('GetSchema', { name: schemaName(world) }), 'NOT_FOUND', 'GetSchema');
  }),
  ...['GetSchema', 'DeleteSchema', 'ListSchemaRevisions'].map((method) =>
    make(`${method} of a missing schema is NOT_FOUND`, ERROR_CODES, (world) =>
      refused(world.call(method, { name: schemaName(world) }), 'NOT_FOUND', method),
    ),
  ),

  ...(
    [
      ['JSON', ['AVRO', AVRO], '{"a":"x"}'],
      ['JSON', ['AVRO', AVRO_WITH_OPTION], '{"a":{"string":"x"}}'],
      ['JSON', ['AVRO', AVRO_WITH_OPTION], '{"a":null}'],
      ['JSON', ['AVRO', AVRO], '{"a":"x","more":1}'],
      ['BINARY', ['AVRO', AVRO], '\x02x'],
      ['JSON', ['PROTOCOL_BUFFER', PROTO3], '{"a":"x"}'],
      ['JSON', ['PROTOCOL_BUFFER', PROTO3], '{}'],
      ['BINARY', ['PROTOCOL_BUFFER', PROTO3], '\x0a\x01x'],
    ] as const
  ).map(([encoding, schema, message]) =>
    judged(`${JSON.stringify(message)} fits ${titleOf(schema)} in ${encoding}`, SCHEMAS, async (world) => {
      await accepted(validate(world, schema, encoding, message), 'ValidateMessage');
    }),
  ),
  ...(
    [
      ['JSON', ['AVRO', AVRO], '{"a":1}', RECORDED_REFUSAL],
      ['JSON', ['AVRO', AVRO], '{}', SCHEMAS],
      ['JSON', ['AVRO', AVRO_WITH_DEFAULT], '{"a":"x"}', SCHEMAS],
      ['JSON', ['AVRO', AVRO_WITH_OPTION], '{"a":"x"}', SCHEMAS],
      ['JSON', ['AVRO', AVRO], 'x', SCHEMAS],
      ['BINARY', ['AVRO', AVRO], '\x04x', SCHEMAS],
      ['BINARY', ['AVRO', AVRO], '\x02xy', 'https://github.com/googleapis/google-cloud-php/issues/6463'],
      ['JSON', ['PROTOCOL_BUFFER', PROTO3], '{"b":"x"}', SCHEMAS],
      ['JSON', ['PROTOCOL_BUFFER', PROTO3], '{"a":1}', SCHEMAS],
      ['BINARY', ['PROTOCOL_BUFFER', PROTO3], '\x0a\x02x', SCHEMAS],
      ['BINARY', ['PROTOCOL_BUFFER', PROTO3], '\x12\x01x', SCHEMAS],
    ] as const
  ).map(([encoding, schema, message, source]) =>
    judged(`${JSON.stringify(message)} does not fit ${titleOf(schema)} in ${encoding}`, source, (world) =>
      refused(validate(world, schema, encoding, message), 'INVALID_ARGUMENT', 'ValidateMessage'),
    ),
  ),
  judged('ValidateMessage without an encoding is INVALID_ARGUMENT', SCHEMA_PROTO, (world) =>
    refused(
      world.call('ValidateMessage', {
        parent: `projects/${world.project}`,
        schema: { type: 'AVRO', definition: AVRO },
        message: Buffer.from('{"a":"x"}'),
      }),
      'INVALID_ARGUMENT',
      'ValidateMessage',
    ),
  ),
  judged('ValidateMessage by the name of a missing schema is NOT_FOUND', SCHEMA_PROTO, (world) =>
    refused(
      world.call('ValidateMessage', {
        parent: `projects/${world.project}`,
        name: schemaName(world),
        encoding: 'JSON',
        message: Buffer.from('{}'),
      }),
      'NOT_FOUND',
      'ValidateMessage',
    ),
  ),
];

function titleOf([type, definition]: readonly [string, string]): string {
  if (type === 'PROTOCOL_BUFFER') return 'a message with a string a';
  if (definition === AVRO) return 'an Avro record with a string a';
  return definition === AVRO_WITH_OPTION
    ? 'an Avro record with a, null or a string'
    : 'an Avro record with a string a and an int b that has a default';
}
