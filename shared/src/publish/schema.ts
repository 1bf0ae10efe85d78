/**
 * The schema of the topic that a message came through. Pub/Sub writes it on each message of a topic with a schema, under
 * names that begin with `googclient_` (https://cloud.google.com/pubsub/docs/schemas). The service keeps these names for
 * itself, so a message that is published again carries them under names of the wire contract, and a subscriber behind
 * the toolkit can still decode its data.
 */
import { ATTRIBUTE, without } from '../attributes.ts';
import type { Attributes } from '../message.ts';
import { isObject } from '../options.ts';

/** The service's name, and ours. */
const NAMES: Readonly<Record<string, string>> = {
  googclient_schemaname: ATTRIBUTE.sourceSchemaName,
  googclient_schemarevisionid: ATTRIBUTE.sourceSchemaRevisionId,
  googclient_schemaencoding: ATTRIBUTE.sourceSchemaEncoding,
};

export type MessageSchema = Readonly<{
  /** `projects/…/schemas/…` */
  name: string;
  /** Absent where the service did not name it. */
  revisionId?: string;
  /** `JSON` or `BINARY`. */
  encoding: string;
}>;

/**
 * The schema that a received message was checked against when it was first published, whichever topic it comes from now;
 * `undefined` where that topic had none. Throws ConfigError for what is no message.
 *
 * @example
 * const schema = schemaOf(message);
 * if (schema?.encoding === 'BINARY') decodeAvro(await definitionOf(schema.name, schema.revisionId), message.data);
 */
export function schemaOf(message: Readonly<{ attributes: Attributes }>): MessageSchema | undefined {
  isObject('message', message);
  const { attributes } = message;
  isObject('message.attributes', attributes);
  const known = { ...attributes, ...schemaAttributes(attributes) };
  const name = known[ATTRIBUTE.sourceSchemaName];
  const encoding = known[ATTRIBUTE.sourceSchemaEncoding];
  const revisionId = known[ATTRIBUTE.sourceSchemaRevisionId];
  if (name === undefined || encoding === undefined) return undefined;
  return { name, encoding, ...(revisionId !== undefined && { revisionId }) };
}

/**
 * What the service wrote on a received message, under our names; nothing where it wrote nothing. It is newer than what
 * the message carries under our names: the data was checked against it last. To be written all or not at all: a revision
 * without its encoding decodes nothing.
 */
export function schemaAttributes(attributes: Attributes): Attributes {
  const found = Object.entries(NAMES).flatMap(([theirs, ours]) => {
    const value = attributes[theirs];
    return value === undefined ? [] : [[ours, value] as const];
  });
  return Object.fromEntries(found);
}

/** `attributes` without an older schema under our names, where the service wrote a newer one on what was received. */
export const withoutOlderSchema = (attributes: Attributes, received: Attributes): Attributes =>
  Object.keys(schemaAttributes(received)).length === 0
    ? attributes
    : without(attributes, Object.values(NAMES));
