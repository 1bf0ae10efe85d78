/**
 * The handler of the functions: sends a message on to another topic, its data untouched. What it adds lets the next
 * one recognise the message: a redelivery is forwarded again, with the same `dedupId`.
 *
 * A publisher may have left no room. Then what the toolkit added is left out, in a fixed order and with a warning;
 * what the publisher wrote never is.
 */
import { ATTRIBUTE, parseWishes, refuseSchedule, without } from '../attributes.ts';
import type { Context, Handler } from '../handler.ts';
import {
  type Attributes,
  checkOutgoing,
  LIMITS,
  type Message,
  messageBytes,
  type OutgoingMessage,
} from '../message.ts';
import { ack } from '../outcome.ts';
import { fit } from './fit.ts';
import { dedupIdOf, publishable } from './identity.ts';
import { checkOptions, text, whole } from '../options.ts';
import { withOrigin } from './origin.ts';
import { addedSchema } from './schema.ts';

export type ForwardOptions = Readonly<{
  /** Replaces the limit on data and attributes together, in bytes. */
  maxBytes?: number;
}>;

/**
 * `topic` is a short name in the publisher's project or `projects/…/topics/…`. Throws a PermanentError (a dead
 * letter) for a message that asks for something invalid, or that no topic would take.
 */
export function forward(topic: string, options: ForwardOptions = {}): Handler {
  text('topic', topic);
  checkOptions<ForwardOptions>(options, { maxBytes: whole(1) });
  const { maxBytes = LIMITS.messageBytes } = options;
  return async (message, context) => {
    const wishes = parseWishes(message);
    refuseSchedule(wishes);
    const { sequence } = wishes;
    // How often the message was put off is of no meaning to whoever comes next, and would be counted on there.
    const theirs = without(publishable(message.attributes), [ATTRIBUTE.retryAttempt]);
    // A message that has been forwarded before keeps the time of its first publish.
    const { attributes: dated } = withOrigin(theirs, message);
    const outgoing: OutgoingMessage = {
      topic,
      data: message.data,
      attributes: { ...dated, ...additions(message, context, sequence !== undefined) },
      ...(message.orderingKey !== undefined && { orderingKey: message.orderingKey }),
    };
    const isOurs = theirs[ATTRIBUTE.dedupId] === undefined;
    const schema = addedSchema(message.attributes);
    const droppable = [...DROPPABLE, ...schema, ...(isOurs ? [ATTRIBUTE.dedupId] : [])];
    const { message: roomy, dropped } = fit(outgoing, droppable, maxBytes);
    if (dropped.length > 0) {
      context.log.warn('no room for attributes of the toolkit', {
        messageId: message.id,
        dropped: dropped.join(' '),
      });
    }
    const fitted = sequence === undefined ? roomy : ordered(roomy, sequence.key, maxBytes);
    checkOutgoing(fitted, maxBytes);
    return ack('handled', [fitted]);
  };
}

/** Least needed first; a `dedupId` that the toolkit made comes last. */
const DROPPABLE: readonly string[] = [
  ATTRIBUTE.originPublishTime,
  ATTRIBUTE.deliveredAfter,
  ATTRIBUTE.fencingToken,
];

/**
 * So that an ordered subscription behind keeps the order that was just made. Without room for the key the message
 * goes without: it carries its sequence anyway.
 */
function ordered(message: OutgoingMessage, key: string, maxBytes: number): OutgoingMessage {
  if (message.orderingKey !== undefined) return message;
  const keyed = { ...message, orderingKey: key };
  return messageBytes(keyed) <= maxBytes ? keyed : message;
}

function additions(message: Message, context: Context, isOrdered: boolean): Attributes {
  return {
    [ATTRIBUTE.dedupId]: dedupIdOf(message, context),
    ...(isOrdered &&
      context.fencingToken !== undefined && { [ATTRIBUTE.fencingToken]: context.fencingToken }),
  };
}
