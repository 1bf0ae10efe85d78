/**
 * When the publisher's own message was published. The first stage of the toolkit writes it on what it hands on, and
 * later stages keep it: a message that is forwarded, delayed or sent again has a new publish time each time.
 */
import { ATTRIBUTE } from '../attributes.ts';
import type { Attributes, Message } from '../message.ts';
import { parseTimestamp } from '../timestamp.ts';

/** What an earlier stage wrote, milliseconds since the epoch. The epoch itself is a default and no time. */
export function originMsOf(attributes: Attributes): number | undefined {
  const text = attributes[NAME];
  const time = text === undefined ? undefined : parseTimestamp(text);
  return time !== undefined && time > 0 ? time : undefined;
}

/**
 * To be written on a message that goes out with `attributes`: the time of its first publish, which an earlier stage may
 * have written. A publish time that was only assumed is not passed on: a reader would take it for the server's.
 */
export function originOf(
  attributes: Attributes,
  message: Pick<Message, 'publishTime' | 'assumedPublishTime'>,
): Attributes {
  const earlier = originMsOf(attributes) === undefined ? undefined : attributes[NAME];
  if (earlier !== undefined) return { [NAME]: earlier };
  return message.assumedPublishTime === undefined ? { [NAME]: message.publishTime.toISOString() } : {};
}

const NAME = ATTRIBUTE.originPublishTime;
