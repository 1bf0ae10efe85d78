/**
 * The schema of a topic: which revisions count, and what becomes of a message. A message that fits one of them is published
 * with three attributes that name it; one that fits none is refused, and with it the whole request.
 */
import { status } from '@grpc/grpc-js';
import { ErrorInfo } from '../../error-details.ts';
import { invalidArgument, notFound } from '../../grpc-server.ts';
import { assertName } from '../names.ts';
import type { PubsubMessage, SchemaSettings } from '../wire.ts';
import type { Encoding, SchemaType } from './language.ts';
import type { Revision, Schemas } from './schemas.ts';

/** What stands in the settings after the schema, or the revision, was deleted. */
export const DELETED_SCHEMA = '_deleted-schema_';
export const DELETED_REVISION = '_deleted-schema-revision_';

const DOMAIN = 'pubsub.googleapis.com';

/** Throws INVALID_ARGUMENT for what no topic can have. `assertThere` says whether the schema is there. */
export function schemaSettings(given: SchemaSettings | null): SchemaSettings | null {
  if (given === null) return null;
  const { schema, encoding, firstRevisionId, lastRevisionId } = given;
  if (schema === '') throw invalidArgument('No schema name provided');
  if (schema !== DELETED_SCHEMA) assertName('schemas', schema);
  if (!isEncoding(encoding)) throw invalidArgument('Invalid schema encoding provided');
  return { schema, encoding, firstRevisionId, lastRevisionId };
}

/** Throws NOT_FOUND for a schema or revision that is not there, INVALID_ARGUMENT for a last one before the first. */
export function assertThere(
  schemas: Pick<Schemas, 'find'>,
  settings: SchemaSettings | null | undefined,
): void {
  if (!settings) return;
  const { schema, firstRevisionId, lastRevisionId } = settings;
  const revisions = schemas.find(schema);
  if (revisions === undefined) throw notFound('Schema could not be found');
  const first = firstRevisionId === '' ? 0 : indexOf(revisions, firstRevisionId);
  const last = lastRevisionId === '' ? revisions.length : indexOf(revisions, lastRevisionId);
  if (first < 0) throw notFound('First revision could not be found');
  if (last < 0) throw notFound('Last revision could not be found');
  if (first > last) {
    throw invalidArgument('First revision creation time is after last revision creation time');
  }
}

/**
 * The messages with the attributes that name the revision that they fit, the latest one first
 * (https://cloud.google.com/pubsub/docs/associate-schema-topic). Throws INVALID_ARGUMENT for one that fits none, and
 * NOT_FOUND when the schema was deleted.
 */
export function stamped(
  schemas: Pick<Schemas, 'find'>,
  settings: SchemaSettings | null | undefined,
  messages: readonly PubsubMessage[],
): readonly PubsubMessage[] {
  if (!settings) return messages;
  const revisions = schemas.find(settings.schema);
  if (revisions === undefined) throw notFound('Schema associated with topic deleted.');
  const encoding = settings.encoding as Encoding;
  const allowed = within(revisions, settings).toReversed();
  return messages.map((message) => {
    const { revisionId } = fitting(settings.schema, allowed, encoding, message.data).schema;
    const attributes = {
      ...message.attributes,
      googclient_schemaencoding: encoding,
      googclient_schemaname: settings.schema,
      googclient_schemarevisionid: revisionId,
    };
    return { ...message, attributes };
  });
}

/** Throws INVALID_ARGUMENT when the data do not fit this one revision. */
export function assertFits({ schema, judge }: Revision, encoding: string, data: Buffer): void {
  if (!isEncoding(encoding)) throw invalidArgument('No encoding provided.');
  const why = judge.violation(encoding, data);
  if (why !== undefined) throw refusal(encoding, schema.type, why);
}

/**
 * The settings with one field of them changed, by its name in camel case: the service takes paths such as
 * `schema_settings.first_revision_id`. Undefined where there is no such field.
 */
export function changedSettings(
  current: SchemaSettings | null | undefined,
  given: SchemaSettings | null | undefined,
  field: string,
): SchemaSettings | null | undefined {
  const fields = { ...NONE, ...current };
  if (!Object.hasOwn(NONE, field)) return undefined;
  return schemaSettings({ ...fields, [field]: { ...NONE, ...given }[field as keyof SchemaSettings] });
}

const NONE: SchemaSettings = { schema: '', encoding: '', firstRevisionId: '', lastRevisionId: '' };

function fitting(name: string, allowed: readonly Revision[], encoding: Encoding, data: Buffer): Revision {
  let checked = 'No revision of the schema is within the range of the topic';
  let type: SchemaType = 'AVRO';
  for (const revision of allowed) {
    const why = revision.judge.violation(encoding, data);
    if (why === undefined) return revision;
    ({ type } = revision.schema);
    checked = `last checked revision: revision_id=${revision.schema.revisionId} failed with status: ${why}`;
  }
  throw refusal(
    encoding,
    type,
    `Could not validate message with any schema revision for schema: ${name}, ${checked}`,
  );
}

/** In the words of the service: https://github.com/googleapis/google-cloud-go/issues/8179 */
function refusal(encoding: Encoding, type: SchemaType, revisionInfo: string): Error {
  return new ErrorInfo(
    status.INVALID_ARGUMENT,
    'Invalid data in message: Message failed schema validation.',
    `INVALID_${encoding}_${type === 'AVRO' ? 'AVRO' : 'PROTO'}_MESSAGE`,
    DOMAIN,
    { message: 'Message failed schema validation', revisionInfo },
  );
}

/** Those that the settings allow, oldest first: none where one of the two ends was deleted. */
function within(
  revisions: readonly Revision[],
  { firstRevisionId, lastRevisionId }: SchemaSettings,
): readonly Revision[] {
  const first = firstRevisionId === '' ? 0 : indexOf(revisions, firstRevisionId);
  const last = lastRevisionId === '' ? revisions.length - 1 : indexOf(revisions, lastRevisionId);
  return first < 0 || last < 0 ? [] : revisions.slice(first, last + 1);
}

const indexOf = (revisions: readonly Revision[], id: string): number =>
  revisions.findIndex(({ schema }) => schema.revisionId === id);

const isEncoding = (encoding: string): encoding is Encoding => encoding === 'JSON' || encoding === 'BINARY';
