/**
 * The handler of the functions: sends a message on to another topic, its data untouched. What it adds lets the next
 * one recognise the message: a redelivery is forwarded again, with the same `dedupId`.
 *
 * A publisher may have left no room. Then what the toolkit added is left out, in a fixed order and with a warning;
 * what the publisher wrote never is.
 */
import { ATTRIBUTE, parseDeliveryOptions, refuseSchedule, without } from '../attributes.ts';
import type { Handler } from '../handler.ts';
import { type Attributes, checkOutgoing, LIMITS, messageBytes, type OutgoingMessage } from '../message.ts';
import { ack } from '../outcome.ts';
import { annotate, outgoing } from './annotate.ts';
import { identityOf, publishable } from './identity.ts';
import { checkOptions, text, whole } from '../options.ts';
import { originOf } from './origin.ts';
import { schemaAttributes } from './schema.ts';

export type ForwardOptions = Readonly<{
  /**
   * The limit on data and attributes of a message together, in bytes (default 10,000,000, Pub/Sub's own; at least 1).
   */
  maxBytes?: number;
}>;

/**
 * `topic` is a short name in the publisher's project or `projects/…/topics/…`. Throws a PermanentError (a dead
 * letter) for a message that asks for something invalid, or that no topic would take.
 *
 * @example
 * const handler = guarded(forward('orders-once'), {
 *   publisher,
 *   deadLetterTopic: 'dead-letters',
 *   once: dedup(claims),
 * });
 */
export function forward(topic: string, options: ForwardOptions = {}): Handler {
  text('topic', topic);
  checkOptions<ForwardOptions>(options, { maxBytes: whole(1) });
  const { maxBytes = LIMITS.messageBytes } = options;
  return async (message, context) => {
    const deliveryOptions = parseDeliveryOptions(message);
    refuseSchedule(deliveryOptions);
    const { sequence } = deliveryOptions;
    const { attributes } = message;
    // How often the message was rescheduled says nothing to the next subscriber, and would be counted on there.
    const theirs = without(publishable(attributes), [ATTRIBUTE.retryAttempt, ...CARRIED]);
    // The most needed first.
    const ours = [
      identityOf(message, context),
      schemaAttributes(attributes),
      sequence !== undefined && context.fencingToken !== undefined
        ? { [ATTRIBUTE.fencingToken]: context.fencingToken }
        : only(attributes, ATTRIBUTE.fencingToken),
      only(attributes, ATTRIBUTE.deliveredAfter),
      originOf(attributes, message),
    ];
    const { message: roomy, dropped } = annotate(outgoing(topic, message, theirs), ours, maxBytes);
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

/** What an earlier stage of the toolkit may have written. */
const CARRIED = [ATTRIBUTE.fencingToken, ATTRIBUTE.deliveredAfter, ATTRIBUTE.originPublishTime];

const only = (attributes: Attributes, name: string): Attributes => {
  const value = attributes[name];
  return value === undefined ? {} : { [name]: value };
};

/**
 * So that an ordered subscription behind keeps the order that was just made. Without room for the key the message
 * goes without: it carries its sequence anyway.
 */
function ordered(message: OutgoingMessage, key: string, maxBytes: number): OutgoingMessage {
  if (message.orderingKey !== undefined) return message;
  const keyed = { ...message, orderingKey: key };
  return messageBytes(keyed) <= maxBytes ? keyed : message;
}
