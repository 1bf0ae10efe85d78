/**
 * A message on its way back to its own topic: its name, and how often it was rescheduled, travel in attributes of the
 * toolkit, because it comes back with another ID and another publish time.
 */
import { ATTRIBUTE, without } from '../attributes.ts';
import type { Context } from '../handler.ts';
import { checkOutgoing, type Message } from '../message.ts';
import { annotate, outgoing } from '../publish/annotate.ts';
import { dedupIdOf, publishable } from '../publish/identity.ts';
import { originOf } from '../publish/origin.ts';
import { schemaAttributes } from '../publish/schema.ts';

const ATTEMPT = /^[1-9][0-9]{0,8}$/;

/** How often the message was rescheduled. What cannot be read is not ours, and counts as never. */
export function attemptOf({ attributes }: Message): number {
  const text = attributes[ATTRIBUTE.retryAttempt];
  return text !== undefined && ATTEMPT.test(text) ? Number(text) : 0;
}

/**
 * The message as it will be published. Throws PermanentError where there is no room for its identity and its count:
 * without them it would come back as another message, or for ever.
 */
export function rescheduledMessage(message: Message, context: Context, attempt: number): Message {
  const theirs = without(publishable(message.attributes), [
    ATTRIBUTE.delay,
    ATTRIBUTE.deliverAt,
    ATTRIBUTE.originPublishTime,
  ]);
  const needed = {
    [ATTRIBUTE.dedupId]: dedupIdOf(message, context),
    ...(attempt > 0 && { [ATTRIBUTE.retryAttempt]: String(attempt) }),
  };
  const { message: annotated } = annotate(outgoing('-', message, { ...theirs, ...needed }), [
    schemaAttributes(message.attributes),
    originOf(message.attributes, message),
  ]);
  checkOutgoing(annotated);
  return { ...message, attributes: annotated.attributes };
}
