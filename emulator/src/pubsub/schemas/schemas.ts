/**
 * All schemas with their revisions, in memory, oldest revision first. A change takes effect as a whole or not at all. A
 * revision never changes; deleting it, or its schema, leaves topics that name a schema or a revision which is not there
 * any more, and nothing can be published to them.
 */
import { randomBytes } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import { invalidArgument, notFound, StatusError } from '../../grpc-server.ts';
import { alreadyExists, assertName, refuseMissing } from '../names.ts';
import { timestamp, type Timestamp } from '../wire.ts';
import { avro } from './avro.ts';
import type { Judge, Language, SchemaType } from './language.ts';
import { protocolBuffer } from './protocol-buffer.ts';

/** google.pubsub.v1.Schema: one revision. */
export type Schema = Readonly<{
  name: string;
  type: SchemaType;
  definition: string;
  revisionId: string;
  revisionCreateTime: Timestamp;
}>;

export type Revision = Readonly<{ schema: Schema; judge: Judge }>;

/** What a request gives of a schema. */
export type Definition = Readonly<{ type: string; definition: string }>;

export type Schemas = Readonly<{
  /** Throws INVALID_ARGUMENT for a definition that is none, and ALREADY_EXISTS. */
  create(name: string, definition: Definition | null): Schema;
  /** As above; INVALID_ARGUMENT for what does not go with every revision that there is, RESOURCE_EXHAUSTED for a 21st. */
  commit(name: string, definition: Definition | null): Schema;
  /** A new revision that is a copy of that one. */
  rollback(name: string, revisionId: string): Schema;
  /** The latest revision, or the one behind the `@`. This and all others throw NOT_FOUND, or INVALID_ARGUMENT for a name that cannot be. */
  get(reference: string): Revision;
  /** Oldest first. */
  revisions(name: string): readonly Revision[];
  /** Undefined where there is no such schema. */
  find(name: string): readonly Revision[] | undefined;
  /** What stands for the schema as long as there is one. */
  holder(name: string): object;
  remove(name: string): void;
  /** INVALID_ARGUMENT for the only revision. Returns what it was. */
  removeRevision(reference: string): Schema;
  names(): Iterable<string>;
  /** As it was saved. */
  restore(name: string, revisions: readonly Revision[]): void;
  clear(): void;
}>;

/** https://cloud.google.com/pubsub/docs/schemas#quotas_and_limits_for_schemas */
const MAX_DEFINITION_BYTES = 300_000;
export const MAX_REVISIONS = 20;

const LANGUAGES: Readonly<Record<SchemaType, Language>> = { AVRO: avro, PROTOCOL_BUFFER: protocolBuffer };

export function createSchemas(now: () => number): Schemas {
  const held = new Map<string, { revisions: readonly Revision[] }>();
  const holder = (name: string) => held.get(name) ?? refuseMissing('schemas', name);
  const find = (name: string): readonly Revision[] => holder(name).revisions;
  const put = (name: string, revisions: readonly Revision[]): void => {
    const known = held.get(name);
    if (known === undefined) held.set(name, { revisions });
    else known.revisions = revisions;
  };
  const add = (
    name: string,
    before: readonly Revision[],
    given: Readonly<{ type: SchemaType; definition: string }>,
  ): Schema => {
    if (before.length >= MAX_REVISIONS) {
      throw new StatusError(status.RESOURCE_EXHAUSTED, 'Already at maximum number of schema revisions');
    }
    const revisionId = freshId(before);
    const revisionCreateTime = after(before.at(-1), timestamp(now()));
    const schema = { name, ...given, revisionId, revisionCreateTime };
    put(name, [...before, revisionOf(schema)]);
    return schema;
  };
  return {
    create(name, definition) {
      assertName('schemas', name);
      const given = checked(definition);
      if (held.has(name)) throw alreadyExists(name);
      return add(name, [], given);
    },
    commit(name, definition) {
      const before = find(name);
      const given = checked(definition);
      assertCompatible(name, given, before);
      return add(name, before, given);
    },
    rollback(name, revisionId) {
      const before = find(name);
      const { type, definition } = withId(before, revisionId).schema;
      return add(name, before, { type, definition });
    },
    get(reference) {
      const [name, revisionId] = split(reference);
      const revisions = find(name);
      return revisionId === undefined ? latest(revisions) : withId(revisions, revisionId);
    },
    revisions: find,
    find: (name) => held.get(name)?.revisions,
    holder,
    remove(name) {
      find(name);
      held.delete(name);
    },
    removeRevision(reference) {
      const [name, revisionId] = split(reference);
      if (revisionId === undefined) {
        throw invalidArgument(
          `The name has no revision ID: ${reference}. It must end with @ and a revision ID.`,
        );
      }
      const revisions = find(name);
      const gone = withId(revisions, revisionId);
      if (revisions.length === 1)
        throw invalidArgument('Cannot delete last revision. Please use DeleteSchema.');
      put(
        name,
        revisions.filter((each) => each !== gone),
      );
      return gone.schema;
    },
    names: () => held.keys(),
    restore: put,
    clear: () => held.clear(),
  };
}

/** Throws as `checked` does. */
export const revisionOf = (schema: Schema): Revision => ({
  schema,
  judge: judgeOf(schema.type, schema.definition),
});

/** Throws INVALID_ARGUMENT for a definition that is none, or too large. */
export function checked(given: Definition | null): Readonly<{ type: SchemaType; definition: string }> {
  const { type = '', definition = '' } = given ?? {};
  if (type !== 'AVRO' && type !== 'PROTOCOL_BUFFER') throw invalidArgument('Invalid schema type');
  const bytes = Buffer.byteLength(definition);
  if (bytes > MAX_DEFINITION_BYTES) {
    throw invalidArgument(
      `Invalid schema definition: The schema is too large. The size is ${bytes} bytes, but the maximum allowed is ${MAX_DEFINITION_BYTES}.`,
    );
  }
  judgeOf(type, definition);
  return { type, definition };
}

function judgeOf(type: SchemaType, definition: string): Judge {
  try {
    return LANGUAGES[type].parse(definition);
  } catch (error) {
    const why = (error as Error).message.replace(/\s+/g, ' ');
    throw invalidArgument(`Invalid schema definition: Could not parse schema. (${why})`);
  }
}

/** "As though it is both the reader and writer schema": https://cloud.google.com/pubsub/docs/commit-schema-revision */
function assertCompatible(
  name: string,
  { type, definition }: Readonly<{ type: SchemaType; definition: string }>,
  before: readonly Revision[],
): void {
  // The latest first: it is the one that its author had in mind.
  for (const { schema } of before.toReversed()) {
    const why =
      type === schema.type
        ? LANGUAGES[type].conflict(definition, schema.definition)
        : `A revision of type ${type} cannot follow one of type ${schema.type}.`;
    if (why !== undefined) {
      throw invalidArgument(
        `Compatibility checking failed to commit a schema revision for ${name}. Revision is incompatible with previous revision: ${schema.revisionId}. ${why}`,
      );
    }
  }
}

function split(reference: string): readonly [name: string, revisionId: string | undefined] {
  const [name = '', ...rest] = reference.split('@');
  return [name, rest.length === 0 ? undefined : rest.join('@')];
}

function latest(revisions: readonly Revision[]): Revision {
  const last = revisions.at(-1);
  if (last === undefined) throw new Error('a schema has no revision');
  return last;
}

function withId(revisions: readonly Revision[], revisionId: string): Revision {
  const found = revisions.find(({ schema }) => schema.revisionId === revisionId);
  if (found === undefined) throw notFound(`Resource not found (resource=${revisionId}).`);
  return found;
}

/** Revisions are in the order of their times, also while the clock stands still. */
function after(last: Revision | undefined, time: Timestamp): Timestamp {
  const before = last?.schema.revisionCreateTime;
  if (before === undefined || timeKey(before) < timeKey(time)) return time;
  const nanos = before.nanos + 1_000;
  return nanos < 1e9
    ? { seconds: before.seconds, nanos }
    : { seconds: String(BigInt(before.seconds) + 1n), nanos: nanos - 1e9 };
}

/** Sorts as the times do. */
export const timeKey = ({ seconds, nanos }: Timestamp): string =>
  `${seconds.padStart(12, '0')}.${String(nanos).padStart(9, '0')}`;

/** Eight hexadecimal digits, as in the service. */
function freshId(before: readonly Revision[]): string {
  const id = randomBytes(4).toString('hex');
  return before.some(({ schema }) => schema.revisionId === id) ? freshId(before) : id;
}
