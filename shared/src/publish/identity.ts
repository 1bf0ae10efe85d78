/**
 * What a message is called from here on. Its ID is unique within its topic only, and a forwarded message gets a new
 * one; so a message that brings no `dedupId` is named after the source that it came through and the ID it had there.
 */
import { ATTRIBUTE } from '../attributes.ts';
import type { Context } from '../handler.ts';
import { type Attributes, isReserved, type Message } from '../message.ts';
import { schemaAttributes } from './schema.ts';

export const dedupIdOf = (
  message: Pick<Message, 'id' | 'attributes'>,
  context: Pick<Context, 'source'>,
): string => message.attributes[ATTRIBUTE.dedupId] ?? `${context.source}/${message.id}`;

/**
 * What may be published again of a received message: a key that is empty or the service's own would be refused. What the
 * service says about the data's schema goes on under our names.
 */
export const publishable = (attributes: Attributes): Attributes => ({
  ...Object.fromEntries(Object.entries(attributes).filter(([key]) => key !== '' && !isReserved(key))),
  ...schemaAttributes(attributes),
});
