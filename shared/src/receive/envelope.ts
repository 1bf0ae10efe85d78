/**
 * The JSON body of a wrapped push, `{ message, subscription, deliveryAttempt }`, which Eventarc's events carry too.
 *
 * Fields come in camel case, in snake case, or in both; the camel case counts. What is absent stays absent: nothing
 * is invented but the publish time, which some senders leave out and which is then the event's own time or, failing
 * that, the time of arrival (publish-time.ts).
 */
import type { Attributes, Message } from '../message.ts';
import { parseTimestamp } from '../timestamp.ts';
import { publishTimeOf } from './publish-time.ts';
import {
  decodeBase64,
  field,
  type Fields,
  invalidBody,
  isFields,
  optionalText,
  shown,
  typeName,
} from './fields.ts';

/** What stands in for a publish time that the message does not name. */
export type Arrival = Readonly<{
  /** The wall clock of the process. */
  nowMs: number;
  /** The time of the event around the message, where there is one. */
  eventMs?: number | undefined;
}>;

/** `path` precedes the names of fields in errors. */
export function readEnvelope(body: Fields, path: string, arrival: Arrival): Message {
  const { message } = body;
  if (!isFields(message)) throw invalidBody(`${path}message`, `is ${typeName(message)}; accepted: an object`);
  return {
    ...readMessage(message, `${path}message.`, arrival),
    ...delivery(
      body['deliveryAttempt'] ?? body['delivery_attempt'],
      optionalText(body['subscription'], `${path}subscription`),
    ),
  };
}

/** The message alone, in the JSON form of `google.pubsub.v1.PubsubMessage`. */
export function readMessage(message: Fields, path: string, { nowMs, eventMs }: Arrival): Message {
  const id = optionalText(field(message, 'messageId', 'message_id'), `${path}messageId`);
  if (id === undefined) throw invalidBody(`${path}messageId`, 'is missing; accepted: a message ID');
  const orderingKey = optionalText(field(message, 'orderingKey', 'ordering_key'), `${path}orderingKey`);
  const ownMs = readTime(field(message, 'publishTime', 'publish_time'), `${path}publishTime`);
  return {
    id,
    data: decodeBase64(message['data'], `${path}data`),
    attributes: readAttributes(message['attributes'], `${path}attributes`),
    ...publishTimeOf([ownMs, eventMs], nowMs),
    ...(orderingKey !== undefined && { orderingKey }),
  };
}

/** The fields of a delivery, as a Message has them: absent rather than empty. */
export function delivery(
  attempt: unknown,
  subscription: string | undefined,
): Pick<Message, 'deliveryAttempt' | 'subscription'> {
  const number = typeof attempt === 'string' ? Number(attempt) : attempt;
  // Emulators say 0 where there is no dead-letter policy; it means that the service does not count.
  const counted = typeof number === 'number' && Number.isSafeInteger(number) && number > 0;
  return { ...(counted && { deliveryAttempt: number }), ...(subscription !== undefined && { subscription }) };
}

/** Milliseconds since the epoch; undefined where there is nothing. What is there and is no time is refused. */
export function readTime(value: unknown, path: string): number | undefined {
  if (value === undefined || value === '') return undefined;
  const time = typeof value === 'string' ? parseTimestamp(value) : undefined;
  if (time === undefined) throw invalidBody(path, `is ${shown(value)}; accepted: an RFC 3339 time`);
  return time;
}

function readAttributes(value: unknown, path: string): Attributes {
  if (value === undefined || value === null) return {};
  if (!isFields(value)) throw invalidBody(path, `is ${typeName(value)}; accepted: an object of strings`);
  for (const [key, text] of Object.entries(value)) {
    const name = `${path}[${shown(key)}]`;
    if (typeof text !== 'string') throw invalidBody(name, `is ${shown(text)}; accepted: a string`);
    if (!key.isWellFormed() || !text.isWellFormed()) {
      throw invalidBody(name, 'holds half a surrogate pair; accepted: well-formed text');
    }
  }
  // Copied by definition and not by assignment: a key named __proto__ is a key like any other.
  return Object.fromEntries(Object.entries(value)) as Attributes;
}
