/**
 * A message's attributes on the two ways out of the delay stage. What was asked is removed once it is granted; what
 * the service keeps for itself goes into no task; the identity is written on both ways, so that a redelivery that
 * takes the other way is the same message to whoever removes duplicates.
 */
import { ATTRIBUTE, without } from '../attributes.ts';
import type { Attributes, Message } from '../message.ts';
import { fit } from '../publish/fit.ts';
import { publishable } from '../publish/identity.ts';
import { withOrigin } from '../publish/origin.ts';
import { addedSchema } from '../publish/schema.ts';

const GRANTED = [ATTRIBUTE.delay, ATTRIBUTE.deliverAt];

export type WithOurs = Readonly<{
  attributes: Attributes;
  /** Ours that found no room. */
  dropped: readonly string[];
}>;

/**
 * For a message that is due now. The identity is left out where the message is at a limit, because whoever publishes
 * it must not take it for the publisher's; such a message cannot have gone the other way.
 */
export function dueAttributes(message: Message, dedupId: string): WithOurs {
  const attributes = without(message.attributes, GRANTED);
  if (attributes[ATTRIBUTE.dedupId] !== undefined) return { attributes, dropped: [] };
  const named = { ...attributes, [ATTRIBUTE.dedupId]: dedupId };
  const { dropped } = fitted(message, named, [...addedSchema(attributes), ATTRIBUTE.dedupId]);
  // The publish leaves out the schema by itself; here only the identity has to be.
  const isDropped = dropped.includes(ATTRIBUTE.dedupId);
  return isDropped ? { attributes, dropped: [ATTRIBUTE.dedupId] } : { attributes: named, dropped: [] };
}

/**
 * For a message that comes later, through a task. Removing the wish leaves room for one attribute more, but at the size
 * limit not for its bytes: then the identity is what is left out last, and a repeat of this message is not recognised.
 */
export function delayedAttributes(message: Message, dedupId: string, instantMs: number): WithOurs {
  const theirs = without(message.attributes, GRANTED);
  const origin = withOrigin(theirs, message);
  const attributes = {
    ...origin.attributes,
    [ATTRIBUTE.dedupId]: dedupId,
    [ATTRIBUTE.deliveredAfter]: new Date(instantMs).toISOString(),
  };
  const isNamed = theirs[ATTRIBUTE.dedupId] !== undefined;
  return fitted(message, attributes, [
    ...origin.added,
    ATTRIBUTE.deliveredAfter,
    ...addedSchema(theirs),
    ...(isNamed ? [] : [ATTRIBUTE.dedupId]),
  ]);
}

/** The service's own keys take no room: they are not published again. */
function fitted(message: Message, attributes: Attributes, droppable: Parameters<typeof fit>[1]): WithOurs {
  const { data, orderingKey } = message;
  const outgoing = {
    topic: '',
    data,
    attributes: publishable(attributes),
    ...(orderingKey !== undefined && { orderingKey }),
  };
  const { message: result, dropped } = fit(outgoing, droppable);
  return { attributes: result.attributes, dropped };
}
