/**
 * When the publisher's own message was published. The first stage of the toolkit writes it on what it hands on, and
 * later stages keep it: a message that is forwarded, delayed or sent again has a new publish time each time.
 */
import { ATTRIBUTE, without } from '../attributes.ts';
import type { Attributes, Message } from '../message.ts';
import { parseTimestamp } from '../timestamp.ts';

/** What an earlier stage wrote, milliseconds since the epoch. The epoch itself is a default and no time. */
export function originMsOf(attributes: Attributes): number | undefined {
  const text = attributes[ATTRIBUTE.originPublishTime];
  const time = text === undefined ? undefined : parseTimestamp(text);
  return time !== undefined && time > 0 ? time : undefined;
}

/**
 * `attributes` of a message on its way out, with its origin, and the name of that attribute where it was added here. A
 * publish time that was only assumed is not passed on: a reader would take it for the server's.
 */
export function withOrigin(
  attributes: Attributes,
  message: Pick<Message, 'publishTime' | 'assumedPublishTime'>,
): Readonly<{ attributes: Attributes; added: readonly string[] }> {
  if (originMsOf(attributes) !== undefined) return { attributes, added: [] };
  const name = ATTRIBUTE.originPublishTime;
  if (message.assumedPublishTime !== undefined) return { attributes: without(attributes, [name]), added: [] };
  return { attributes: { ...attributes, [name]: message.publishTime.toISOString() }, added: [name] };
}
