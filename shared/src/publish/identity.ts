/**
 * What a message is called from here on. Its ID is unique within its topic only, and a forwarded message gets a new
 * one; so a message that brings no `dedupId` is named after the source that it came through and the ID it had there.
 */
import { ATTRIBUTE } from '../attributes.ts';
import type { Context } from '../handler.ts';
import { type Attributes, isReserved, type Message } from '../message.ts';
import { annotate, outgoing } from './annotate.ts';
import { withoutOlderSchema } from './schema.ts';

export const dedupIdOf = (
  message: Pick<Message, 'id' | 'attributes'>,
  context: Pick<Context, 'source'>,
): string => message.attributes[ATTRIBUTE.dedupId] ?? `${context.source}/${message.id}`;

/** To be written on a message that goes out; nothing where its publisher named it. */
export const identityOf = (
  message: Pick<Message, 'id' | 'attributes'>,
  context: Pick<Context, 'source'>,
): Attributes =>
  message.attributes[ATTRIBUTE.dedupId] === undefined
    ? { [ATTRIBUTE.dedupId]: dedupIdOf(message, context) }
    : {};

/**
 * `message`, still as it was received, under a name that it keeps wherever it goes from here. Unchanged where there is
 * no room for one: a later publish must not take the name for the publisher's, which is never left out.
 */
export function withDedupId(message: Message, dedupId: string): Message {
  const { attributes } = message;
  if (attributes[ATTRIBUTE.dedupId] !== undefined) return message;
  const identity = { [ATTRIBUTE.dedupId]: dedupId };
  const { dropped } = annotate(outgoing('-', message, publishable(attributes)), [identity]);
  return dropped.length > 0 ? message : { ...message, attributes: { ...attributes, ...identity } };
}

/**
 * What may be published again of a received message: a key that is empty or the service's own would be refused. The
 * schema that the service names goes on under our names, see `schemaAttributes`.
 */
export const publishable = (attributes: Attributes): Attributes =>
  withoutOlderSchema(
    Object.fromEntries(Object.entries(attributes).filter(([key]) => key !== '' && !isReserved(key))),
    attributes,
  );
