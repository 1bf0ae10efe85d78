/**
 * A message on its way back to its own topic: its name, and how often it has been put off, travel in attributes of the
 * toolkit, because it comes back with another ID and another publish time.
 */
import { ATTRIBUTE, without } from '../attributes.ts';
import type { Context } from '../handler.ts';
import { type Attributes, checkOutgoing, type Message, type OutgoingMessage } from '../message.ts';
import { dedupIdOf, publishable } from '../publish/identity.ts';
import { fit } from '../publish/fit.ts';
import { withOrigin } from '../publish/origin.ts';
import { addedSchema } from '../publish/schema.ts';

const ATTEMPT = /^[1-9][0-9]{0,8}$/;

/** How often the message has been put off. What cannot be read is not ours, and counts as never. */
export function attemptOf({ attributes }: Message): number {
  const text = attributes[ATTRIBUTE.retryAttempt];
  return text !== undefined && ATTEMPT.test(text) ? Number(text) : 0;
}

/**
 * With its identity written, which it keeps when it comes back. As it is where there is no room for that: whoever
 * publishes it further on must not take the identity for the publisher's, which is never left out.
 */
export function named(message: Message, context: Context): Message {
  const { attributes } = message;
  if (attributes[ATTRIBUTE.dedupId] !== undefined) return message;
  const dedupId = dedupIdOf(message, context);
  const { dropped } = fit(outgoingOf(message, { ...publishable(attributes), [ATTRIBUTE.dedupId]: dedupId }), [
    ...addedSchema(attributes),
    ATTRIBUTE.dedupId,
  ]);
  if (dropped.includes(ATTRIBUTE.dedupId)) return message;
  return { ...message, attributes: { ...attributes, [ATTRIBUTE.dedupId]: dedupId } };
}

/**
 * The message as it will be published. Throws PermanentError where there is no room for its identity and its count:
 * without them it would come back as another message, or for ever.
 */
export function putOffMessage(message: Message, context: Context, attempt: number): Message {
  const theirs = without(publishable(message.attributes), [ATTRIBUTE.delay, ATTRIBUTE.deliverAt]);
  const origin = withOrigin(theirs, message);
  const attributes = {
    ...origin.attributes,
    [ATTRIBUTE.dedupId]: dedupIdOf(message, context),
    ...(attempt > 0 && { [ATTRIBUTE.retryAttempt]: String(attempt) }),
  };
  const { message: fitted } = fit(outgoingOf(message, attributes), [
    ...origin.added,
    ...addedSchema(message.attributes),
  ]);
  checkOutgoing(fitted);
  return { ...message, attributes: fitted.attributes };
}

/** For the limits alone: where it goes does not matter to them. */
const outgoingOf = ({ data, orderingKey }: Message, attributes: Attributes): OutgoingMessage => ({
  topic: '-',
  data,
  attributes,
  ...(orderingKey !== undefined && { orderingKey }),
});
