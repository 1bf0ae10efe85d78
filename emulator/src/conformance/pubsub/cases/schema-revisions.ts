/** Revisions of schemas: commit, rollback, delete, and what goes with what. */
import { accepted, of, refused, type PubsubCase, same } from '../expect.ts';
import {
  AVRO,
  AVRO_WITH_DEFAULT,
  commit,
  createSchema,
  PROTO3,
  revisions,
  schemaName,
  type Kind,
} from '../schema-world.ts';
import { COMMIT_SCHEMA, DELETE_REVISION, SCHEMA_PROTO, SCHEMAS } from '../sources.ts';
import type { PubsubWorld } from '../world.ts';

const make = of('Revisions of schemas');

const definitionOf = async (world: PubsubWorld, revision?: string): Promise<unknown> => {
  const name = schemaName(world) + (revision === undefined ? '' : `@${revision}`);
  return (await world.call('GetSchema', { name }))['definition'];
};

const avro = (...fields: readonly string[]): string =>
  `{"type":"record","name":"R","fields":[${fields.join()}]}`;
const A = '{"name":"a","type":"string"}';
const proto = (fields: string): string => `syntax = "proto2"; message R { ${fields} }`;

export const schemaRevisions: readonly PubsubCase[] = [
  make('CommitSchema makes a revision, which GetSchema then has', SCHEMA_PROTO, async (world) => {
    const { revisionId } = await createSchema(world, 'AVRO', AVRO);
    const second = await accepted(commit(world, 'AVRO', AVRO_WITH_DEFAULT), 'CommitSchema');
    same(await definitionOf(world), AVRO_WITH_DEFAULT);
    same(await definitionOf(world, String(revisionId)), AVRO);
    same((await revisions(world)).toSorted(), [revisionId, second['revisionId']].map(String).toSorted());
  }),
  make('ListSchemaRevisions comes in pages', SCHEMA_PROTO, async (world) => {
    await createSchema(world, 'AVRO', AVRO);
    for (let count = 0; count < 2; count += 1) await commit(world, 'AVRO', AVRO);
    const all = await revisions(world);
    const paged: unknown[] = [];
    for (let pageToken = '', pages = 0; pages < 2; pages += 1) {
      const request = { name: schemaName(world), pageSize: 2, pageToken };
      const { schemas, nextPageToken } = await world.call('ListSchemaRevisions', request);
      paged.push(...(schemas as { revisionId: string }[]).map(({ revisionId }) => revisionId));
      pageToken = String(nextPageToken);
    }
    same(paged, all);
  }),
  make('CommitSchema of a missing schema is NOT_FOUND', SCHEMA_PROTO, (world) =>
    refused(commit(world, 'AVRO', AVRO), 'NOT_FOUND', 'CommitSchema'),
  ),
  make('RollbackSchema makes a new revision that is a copy of the named one', SCHEMA_PROTO, async (world) => {
    const { revisionId } = await createSchema(world, 'AVRO', AVRO);
    await commit(world, 'AVRO', AVRO_WITH_DEFAULT);
    const back = await world.call('RollbackSchema', { name: schemaName(world), revisionId });
    same(back['definition'], AVRO);
    same(back['revisionId'] === revisionId, false, 'the same ID again');
    same((await revisions(world)).length, 3);
  }),
  make('RollbackSchema to a missing revision is NOT_FOUND', SCHEMA_PROTO, async (world) => {
    await createSchema(world, 'AVRO', AVRO);
    const request = { name: schemaName(world), revisionId: 'deadbeef' };
    await refused(world.call('RollbackSchema', request), 'NOT_FOUND', 'RollbackSchema');
  }),
  make('DeleteSchemaRevision deletes the revision behind the @', SCHEMA_PROTO, async (world) => {
    const { revisionId } = await createSchema(world, 'AVRO', AVRO);
    await commit(world, 'AVRO', AVRO_WITH_DEFAULT);
    const name = `${schemaName(world)}@${String(revisionId)}`;
    await accepted(world.call('DeleteSchemaRevision', { name }), 'DeleteSchemaRevision');
    await refused(world.call('GetSchema', { name }), 'NOT_FOUND', 'GetSchema');
    same((await revisions(world)).length, 1);
  }),
  make('The only revision of a schema cannot be deleted', DELETE_REVISION, async (world) => {
    const { revisionId } = await createSchema(world, 'AVRO', AVRO);
    const name = `${schemaName(world)}@${String(revisionId)}`;
    await refused(
      world.call('DeleteSchemaRevision', { name }),
      ['INVALID_ARGUMENT', 'FAILED_PRECONDITION'],
      'DeleteSchemaRevision',
    );
  }),
  make('A schema has 20 revisions at most', SCHEMAS, async (world) => {
    await createSchema(world, 'AVRO', AVRO);
    for (let count = 1; count < 20; count += 1) await commit(world, 'AVRO', AVRO);
    await refused(
      commit(world, 'AVRO', AVRO),
      ['RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'INVALID_ARGUMENT'],
      'the 21st revision',
    );
  }),
  ...(
    [
      ['may add a field with a default', 'AVRO', AVRO, avro(A, '{"name":"b","type":"int","default":0}')],
      ['may drop a field with a default', 'AVRO', avro(A, '{"name":"b","type":"int","default":0}'), AVRO],
      [
        'may add an optional field',
        'PROTOCOL_BUFFER',
        proto('optional string a = 1;'),
        proto('optional string a = 1; optional int32 b = 2;'),
      ],
      [
        'may drop an optional field',
        'PROTOCOL_BUFFER',
        proto('optional string a = 1; optional int32 b = 2;'),
        proto('optional string a = 1;'),
      ],
    ] as const
  ).map(([what, type, before, after]) =>
    make(`A revision of type ${type} ${what}`, COMMIT_SCHEMA, committed(type, before, after)),
  ),
  ...(
    [
      ['must not add a field without a default', 'AVRO', AVRO, avro(A, '{"name":"b","type":"int"}')],
      ['must not drop a field without a default', 'AVRO', avro(A, '{"name":"b","type":"int"}'), AVRO],
      ['must not change the type of a field', 'AVRO', AVRO, avro('{"name":"a","type":"int"}')],
      ['must not change the type of a field', 'PROTOCOL_BUFFER', PROTO3, PROTO3.replace('string', 'int64')],
      [
        'must not add a required field',
        'PROTOCOL_BUFFER',
        proto('optional string a = 1;'),
        proto('optional string a = 1; required int32 b = 2;'),
      ],
      [
        'must not drop a required field',
        'PROTOCOL_BUFFER',
        proto('optional string a = 1; required int32 b = 2;'),
        proto('optional string a = 1;'),
      ],
    ] as const
  ).map(([what, type, before, after]) =>
    make(`A revision of type ${type} ${what}`, COMMIT_SCHEMA, incompatible(type, before, after)),
  ),
  make(
    'A revision must go with every one before, not with the latest alone',
    COMMIT_SCHEMA,
    async (world) => {
      await createSchema(world, 'PROTOCOL_BUFFER', proto('optional string a = 1; optional string b = 2;'));
      await commit(world, 'PROTOCOL_BUFFER', proto('optional string a = 1;'));
      const reused = proto('optional string a = 1; optional int64 c = 2;');
      await refused(commit(world, 'PROTOCOL_BUFFER', reused), 'INVALID_ARGUMENT', 'CommitSchema');
    },
  ),
];

function committed(type: Kind, before: string, after: string): PubsubCase['run'] {
  return async (world) => {
    await createSchema(world, type, before);
    await accepted(commit(world, type, after), 'CommitSchema');
  };
}

function incompatible(type: Kind, before: string, after: string): PubsubCase['run'] {
  return async (world) => {
    await createSchema(world, type, before);
    await refused(commit(world, type, after), 'INVALID_ARGUMENT', 'CommitSchema');
    same((await revisions(world)).length, 1, 'revisions after it');
  };
}
