/** The methods of google.pubsub.v1.SchemaService. */
import type { UntypedServiceImplementation } from '@grpc/grpc-js';
import { invalidArgument } from '../../grpc-server.ts';
import { unary, type Log } from '../methods.ts';
import { projectPrefix } from '../names.ts';
import { page } from '../paging.ts';
import type { Registry } from '../registry.ts';
import type { Paging } from '../wire.ts';
import { checked, revisionOf, timeKey, type Definition, type Schema } from './schemas.ts';
import { assertFits } from './topic-schema.ts';

type ByName = Readonly<{ name: string }>;
type ByParent = Readonly<{ parent: string }>;
type View = Readonly<{ view: string }>;
type Given = Readonly<{ schema: Definition | null }>;
type ValidateMessage = ByParent &
  Given &
  Readonly<{ name?: string; schemaSpec?: string; message: Buffer; encoding: string }>;

export function schemaMethods(registry: Registry, log: Log): UntypedServiceImplementation {
  const { schemas } = registry;
  return {
    CreateSchema: unary(log, ({ parent, schemaId, schema }: ByParent & Given & { schemaId: string }) =>
      schemas.create(`${parent}/schemas/${schemaId}`, schema),
    ),
    GetSchema: unary(log, ({ name, view }: ByName & View) =>
      shown(schemas.get(name).schema, view === 'BASIC' ? 'BASIC' : 'FULL'),
    ),
    ListSchemas: unary(log, ({ parent, view, ...paging }: ByParent & View & Paging) => {
      const prefix = projectPrefix(parent, 'schemas');
      const own = [...schemas.names()].filter((name) => name.startsWith(prefix));
      const { names, nextPageToken } = page(own, paging);
      return { schemas: names.map((name) => shown(schemas.get(name).schema, view)), nextPageToken };
    }),
    ListSchemaRevisions: unary(log, ({ name, view, ...paging }: ByName & View & Paging) => {
      const revisions = new Map(
        schemas
          .revisions(name)
          .map(({ schema }) => [`${name}@${timeKey(schema.revisionCreateTime)}`, schema]),
      );
      const { names, nextPageToken } = page(revisions.keys(), paging);
      return { schemas: names.map((key) => shown(revisions.get(key), view)), nextPageToken };
    }),
    CommitSchema: unary(log, ({ name, schema }: ByName & Given) => schemas.commit(name, schema)),
    RollbackSchema: unary(log, ({ name, revisionId }: ByName & { revisionId: string }) =>
      schemas.rollback(name, revisionId),
    ),
    DeleteSchemaRevision: unary(log, ({ name }: ByName) => registry.deleteSchemaRevision(name)),
    DeleteSchema: unary(log, ({ name }: ByName) => {
      registry.deleteSchema(name);
      return {};
    }),
    ValidateSchema: unary(log, ({ parent, schema }: ByParent & Given) => {
      projectPrefix(parent, 'schemas');
      checked(schema);
      return {};
    }),
    ValidateMessage: unary(log, ({ parent, name, schema, message, encoding }: ValidateMessage) => {
      projectPrefix(parent, 'schemas');
      assertFits(name ? schemas.get(name) : adHoc(schema), encoding, message);
      return {};
    }),
  };
}

function adHoc(schema: Definition | null) {
  if (!schema) throw invalidArgument('The ValidateMessageRequest names no schema.');
  const none = { name: '', revisionId: '', revisionCreateTime: { seconds: '0', nanos: 0 } };
  return revisionOf({ ...none, ...checked(schema) });
}

/** Lists have the definition only in the view FULL. */
const shown = (schema: Schema | undefined, view: string): object | undefined =>
  schema && (view === 'FULL' ? schema : { ...schema, definition: '' });
