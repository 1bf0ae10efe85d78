/**
 * Messages, and the limits that Pub/Sub puts on them. Data is bytes from end to end: never parsed to be forwarded,
 * never a string on the way.
 *
 * Limits are counted in bytes of UTF-8, as the service counts them, and are the same here whether the server behind
 * is the service or an emulator that enforces nothing.
 */
import { PermanentError } from './errors.ts';

export type Attributes = Readonly<Record<string, string>>;

export type Message = Readonly<{
  /** Unique within its topic only. */
  id: string;
  data: Buffer;
  attributes: Attributes;
  /** Absent rather than empty. */
  orderingKey?: string;
  /** The server's publish time, rounded up to the millisecond, so that what is counted from it is never early. */
  publishTime: Date;
  /**
   * Why `publishTime` is the time of arrival, by the clock of the process that received it: the sender named none
   * (absent, empty, or a default such as the epoch), or one more than a day ahead. Absent: it is the server's.
   */
  assumedPublishTime?: 'not set' | 'too far ahead';
  /** From 1; absent where the subscription has no dead-letter policy. */
  deliveryAttempt?: number;
  /** `projects/…/subscriptions/…`, as delivered. */
  subscription?: string;
}>;

export type OutgoingMessage = Readonly<{
  /** A short name in the publisher's own project, or `projects/…/topics/…`. */
  topic: string;
  data: Uint8Array;
  attributes: Attributes;
  orderingKey?: string;
}>;

/** https://cloud.google.com/pubsub/quotas#resource_limits */
export const LIMITS = {
  attributes: 100,
  attributeKeyBytes: 256,
  attributeValueBytes: 1_024,
  orderingKeyBytes: 1_024,
  /** Data and attributes together: the stricter reading of the published 10 MB. */
  messageBytes: 10_000_000,
} as const;

export const byteLength = (text: string): number => Buffer.byteLength(text, 'utf8');

/** Keys that begin with `goog` in any case belong to the service; a publish with one of them is refused. */
export const isReserved = (key: string): boolean => /^goog/i.test(key);

/**
 * What a message may take at most, ordering key included: for code that makes room or fills a request. The size limit
 * itself is about data and attributes alone.
 */
export function messageBytes(message: Pick<OutgoingMessage, 'data' | 'attributes' | 'orderingKey'>): number {
  return sizeOf(message) + byteLength(message.orderingKey ?? '');
}

/** Within the limits on the number of attributes and on all bytes of a message. */
export const hasRoom = (message: OutgoingMessage, maxBytes: number): boolean =>
  Object.keys(message.attributes).length <= LIMITS.attributes && messageBytes(message) <= maxBytes;

/** What counts toward the size limit: the key does not, or a message at the limit could not even be dead-lettered. */
function sizeOf({ data, attributes }: Pick<OutgoingMessage, 'data' | 'attributes'>): number {
  return Object.entries(attributes).reduce(
    (sum, [key, value]) => sum + byteLength(key) + byteLength(value),
    data.length,
  );
}

/** Throws a PermanentError that names the field and its type, for a message that is none: JavaScript has no types. */
export function checkTypes(message: OutgoingMessage): void {
  const given: unknown = message;
  if (typeof given !== 'object' || given === null) {
    throw invalid(
      'INVALID_MESSAGE',
      `the message is of type ${typeName(given)}; accepted: topic, data and attributes`,
    );
  }
  if (!(message.data instanceof Uint8Array)) {
    throw invalid(
      'INVALID_MESSAGE',
      `data is of type ${typeName(message.data)}; accepted: a Buffer or Uint8Array`,
    );
  }
  if (typeof message.topic !== 'string' || message.topic === '') {
    throw invalid('INVALID_MESSAGE', `topic is ${JSON.stringify(message.topic)}; accepted: a topic's name`);
  }
  const attributes: unknown = message.attributes;
  // Neither spread nor entries find anything in a Map.
  if (typeof attributes !== 'object' || attributes === null || Symbol.iterator in attributes) {
    throw invalid('INVALID_ATTRIBUTE', `attributes is of type ${typeName(attributes)}; accepted: an object`);
  }
  for (const [key, value] of Object.entries(attributes)) checkText(key, value);
}

/**
 * Throws a PermanentError that names the field, its size and the limit, for anything that the service would refuse.
 * `maxBytes` replaces the size limit.
 *
 * @example
 * checkOutgoing({ topic: 'out', data: Buffer.from('x'), attributes: { tenant: 'a' } });
 */
export function checkOutgoing(message: OutgoingMessage, maxBytes: number = LIMITS.messageBytes): void {
  checkTypes(message);
  const entries = Object.entries(message.attributes);
  if (message.data.length === 0 && entries.length === 0) {
    throw invalid(
      'EMPTY_MESSAGE',
      'the message has neither data nor attributes; accepted: at least one of them',
    );
  }
  if (entries.length > LIMITS.attributes) {
    throw tooLarge(`the message has ${entries.length} attributes`, `${LIMITS.attributes}`);
  }
  for (const [key, value] of entries) checkAttribute(key, value);
  const orderingKey: unknown = message.orderingKey ?? '';
  if (typeof orderingKey !== 'string' || !isWellFormed(orderingKey)) {
    throw invalid('INVALID_MESSAGE', 'orderingKey is not a well-formed string');
  }
  if (byteLength(orderingKey) > LIMITS.orderingKeyBytes) {
    throw tooLarge(`orderingKey has ${byteLength(orderingKey)} bytes`, `${LIMITS.orderingKeyBytes} bytes`);
  }
  const size = sizeOf(message);
  if (size > maxBytes) throw tooLarge(`data and attributes have ${size} bytes`, `${maxBytes} bytes`);
}

function checkText(key: string, value: unknown): void {
  if (typeof value === 'string') return;
  throw invalid(
    'INVALID_ATTRIBUTE',
    `the value of attribute ${shown(key)} is of type ${typeName(value)}; accepted: a string`,
  );
}

function checkAttribute(key: string, value: string): void {
  const name = shown(key);
  if (key === '')
    throw invalid('INVALID_ATTRIBUTE', 'an attribute has an empty key; accepted: 1 to 256 bytes');
  if (isReserved(key)) {
    throw invalid(
      'RESERVED_ATTRIBUTE',
      `attribute ${name} begins with "goog", which the service keeps for itself`,
    );
  }
  if (!isWellFormed(key) || !isWellFormed(value)) {
    throw invalid(
      'INVALID_ATTRIBUTE',
      `attribute ${name} holds half a surrogate pair; accepted: well-formed text`,
    );
  }
  if (byteLength(key) > LIMITS.attributeKeyBytes) {
    throw tooLarge(`attribute key ${name} has ${byteLength(key)} bytes`, `${LIMITS.attributeKeyBytes} bytes`);
  }
  if (byteLength(value) > LIMITS.attributeValueBytes) {
    throw tooLarge(
      `the value of attribute ${name} has ${byteLength(value)} bytes`,
      `${LIMITS.attributeValueBytes} bytes`,
    );
  }
}

const shown = (key: string): string => JSON.stringify(key.length > 80 ? `${key.slice(0, 80)}…` : key);
const typeName = (value: unknown): string => (value === null ? 'null' : typeof value);
const isWellFormed = (text: string): boolean => text.isWellFormed();
const invalid = (code: string, message: string): PermanentError => new PermanentError(code, message);
const tooLarge = (what: string, limit: string): PermanentError =>
  new PermanentError('LIMIT_EXCEEDED', `${what}; accepted: at most ${limit}`);
