/**
 * Writes the toolkit's own attributes on a message, as many as find room. A publisher may have left little: then what
 * is needed least is left out. What the publisher wrote is never left out.
 */
import { type Attributes, hasRoom, LIMITS, type Message, type OutgoingMessage } from '../message.ts';

export type Annotated = Readonly<{
  message: OutgoingMessage;
  /** Names of attributes that found no room. */
  dropped: readonly string[];
}>;

/**
 * `annotations` begin with the most needed one. Each is an attribute, or several that mean nothing alone, and replaces
 * what the message carries under these names; an empty one is nothing. From the first one that finds no room on, none
 * is written. The message may still be too large, or against another limit: the check before a publish says so.
 */
export function annotate(
  message: OutgoingMessage,
  annotations: readonly Attributes[],
  maxBytes: number = LIMITS.messageBytes,
): Annotated {
  const ours = annotations.filter((one) => Object.keys(one).length > 0);
  for (let count = ours.length; ; count -= 1) {
    const attributes = Object.assign({ ...message.attributes }, ...ours.slice(0, count)) as Attributes;
    const annotated = { ...message, attributes };
    if (count === 0 || hasRoom(annotated, maxBytes)) {
      return { message: annotated, dropped: ours.slice(count).flatMap((one) => Object.keys(one)) };
    }
  }
}

/** A received message on its way to `topic`, with these attributes instead of its own. */
export const outgoing = (
  topic: string,
  { data, orderingKey }: Pick<Message, 'data' | 'orderingKey'>,
  attributes: Attributes,
): OutgoingMessage => ({ topic, data, attributes, ...(orderingKey !== undefined && { orderingKey }) });
