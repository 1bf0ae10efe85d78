/**
 * The friendly form of an outgoing message for publishers in TypeScript: `delay: '15m'`, a `Date`, text as data.
 * What leaves is the strict form of the wire contract, checked here, before a number is taken or a row is written.
 *
 * Stricter than the wire in one thing: there must be room left for the attributes that the toolkit adds on the way.
 */
import { ATTRIBUTE, parseDeliveryOptions } from '../attributes.ts';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { PermanentError } from '../errors.ts';
import { type Attributes, checkOutgoing, LIMITS, type OutgoingMessage } from '../message.ts';
import { checkOptions, port, text, whole } from '../options.ts';

export type MessageParts = Readonly<{
  /** Text is sent as UTF-8. Default: none, which needs at least one attribute. */
  data?: string | Uint8Array | undefined;
  attributes?: Attributes | undefined;
  orderingKey?: string | undefined;
  /** 1 to 1,024 bytes: your own name for this message, the same in every attempt to publish it. */
  dedupId?: string | undefined;
  /** From the publish on: a Duration, or a number of seconds. Rounded up to whole seconds; at most ten years. */
  delay?: Duration | number | undefined;
  /** A Date, or RFC 3339 with `Z` or an offset; at most ten years ahead. Not together with `delay`. */
  deliverAt?: Date | string | undefined;
  /** 1 to 1,024 bytes: a later message of this key replaces the pending delivery. Where a schedule ledger is behind. */
  scheduleKey?: string | undefined;
  /** Withdraws the pending delivery of `scheduleKey`. Without a delay. */
  cancel?: true | undefined;
  /** From 1 to 2^53 - 1. */
  sequence?: number | undefined;
  /** Default: the ordering key. */
  sequenceKey?: string | undefined;
  sequenceEpoch?: string | undefined;
}>;

export type ComposeOptions = Readonly<{
  /** Against whose time `deliverAt` is checked (default: the machine's). */
  clock?: Pick<Clock, 'now'>;
  /**
   * The limit on data and attributes together, in bytes (default 10,000,000, Pub/Sub's own; at least 2,049, of which
   * 2,048 are kept for what the toolkit adds).
   */
  maxBytes?: number;
}>;

/** What the toolkit may add: see `forward` and `deadLettering`. */
const ADDED = [
  ATTRIBUTE.dedupId,
  ATTRIBUTE.originPublishTime,
  ATTRIBUTE.deliveredAfter,
  ATTRIBUTE.fencingToken,
  ATTRIBUTE.deadLetterReason,
  ATTRIBUTE.deadLetterError,
];
/** Their names and values with a full-length error text and a source of 500 bytes, rounded up. */
const ADDED_BYTES = 2_048;

/** Every part. One that is not here is a misspelling, and what it asks for would be left out silently. */
const PARTS: ReadonlySet<string> = new Set<keyof MessageParts>([
  'data',
  'attributes',
  'orderingKey',
  'dedupId',
  'delay',
  'deliverAt',
  'scheduleKey',
  'cancel',
  'sequence',
  'sequenceKey',
  'sequenceEpoch',
]);

/**
 * Throws a PermanentError that names the part, its value and what is accepted. `undefined` parts are ignored.
 *
 * @example
 * await publisher.publish(outgoing('orders', { data: 'x', dedupId: 'order-17', delay: '15m' }));
 */
export function outgoing(topic: string, parts: MessageParts, options: ComposeOptions = {}): OutgoingMessage {
  text('topic', topic);
  checkOptions<ComposeOptions>(options, {
    clock: port(['now'], 'a clock, for example systemClock()'),
    maxBytes: whole(ADDED_BYTES + 1),
  });
  const { clock = systemClock(), maxBytes = LIMITS.messageBytes } = options;
  checkParts(parts);
  const orderingKey = parts.orderingKey === '' ? undefined : parts.orderingKey;
  const message: OutgoingMessage = {
    topic,
    data: bytesOf(parts.data),
    attributes: merge(parts.attributes ?? {}, deliveryOptions(parts)),
    ...(orderingKey !== undefined && { orderingKey }),
  };
  checkOutgoing(message, maxBytes);
  parseDeliveryOptions({ ...message, publishTime: new Date(clock.now()) });
  checkRoom(message, maxBytes);
  return message;
}

function checkParts(parts: unknown): void {
  if (typeof parts !== 'object' || parts === null || Array.isArray(parts)) {
    const type = parts === null ? 'null' : typeof parts;
    throw refuse('the message', `of type ${type}`, `an object of ${[...PARTS].join(', ')}`);
  }
  const unknown = Object.keys(parts).find((name) => !PARTS.has(name));
  if (unknown !== undefined)
    throw refuse(JSON.stringify(unknown), 'no part of a message', [...PARTS].join(', '));
}

function bytesOf(data: unknown): Uint8Array {
  if (data === undefined) return new Uint8Array();
  if (typeof data === 'string') {
    if (!data.isWellFormed()) throw refuse('data', 'text with half a surrogate pair', 'well-formed text');
    return Buffer.from(data, 'utf8');
  }
  if (data instanceof Uint8Array) return data;
  const type = data === null ? 'null' : typeof data;
  throw refuse(
    'data',
    `of type ${type}`,
    'a string, a Buffer or a Uint8Array; JSON.stringify an object yourself',
  );
}

function deliveryOptions(parts: MessageParts): Attributes {
  const texts: Readonly<Record<string, string | undefined>> = {
    [ATTRIBUTE.dedupId]: parts.dedupId,
    [ATTRIBUTE.delay]: parts.delay === undefined ? undefined : seconds(parts.delay),
    [ATTRIBUTE.deliverAt]: parts.deliverAt === undefined ? undefined : dueTimeText(parts.deliverAt),
    [ATTRIBUTE.scheduleKey]: parts.scheduleKey,
    [ATTRIBUTE.cancel]: parts.cancel === undefined ? undefined : String(parts.cancel),
    [ATTRIBUTE.sequence]: parts.sequence === undefined ? undefined : String(parts.sequence),
    [ATTRIBUTE.sequenceKey]: parts.sequenceKey,
    [ATTRIBUTE.sequenceEpoch]: parts.sequenceEpoch,
  };
  const given = Object.entries(texts).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(given);
}

/** Two values for one option: it cannot be known which was meant. */
function merge(attributes: Attributes, added: Attributes): Attributes {
  // Neither spread nor entries find anything in a Map.
  if (typeof attributes !== 'object' || Symbol.iterator in attributes) {
    throw refuse('attributes', `of type ${typeof attributes}`, 'an object of strings, no array and no Map');
  }
  for (const name of Object.keys(added)) {
    if (Object.hasOwn(attributes, name)) {
      throw refuse(name, 'given twice, as an option and in attributes', 'one of the two');
    }
  }
  return { ...attributes, ...added };
}

/** Rounded up, so that it is never early. */
function seconds(delay: Duration | number): string {
  const exact = typeof delay === 'number' ? delay : toSeconds(delay);
  const whole = Math.ceil(exact);
  if (!Number.isSafeInteger(whole) || exact < 0) {
    throw refuse(ATTRIBUTE.delay, String(delay), 'seconds from 0, or a duration such as "15m"');
  }
  return String(whole + 0);
}

function toSeconds(delay: Duration): number {
  try {
    return toMilliseconds(delay, ATTRIBUTE.delay) / 1_000;
  } catch (cause) {
    throw refuse(
      ATTRIBUTE.delay,
      typeof delay === 'bigint' ? `${String(delay)}n` : JSON.stringify(delay),
      'seconds from 0, or a duration such as "15m"',
      cause,
    );
  }
}

function dueTimeText(deliverAt: Date | string): string {
  if (!(deliverAt instanceof Date)) return deliverAt;
  if (Number.isNaN(deliverAt.getTime())) throw refuse(ATTRIBUTE.deliverAt, 'an invalid Date', 'a valid one');
  return deliverAt.toISOString();
}

function checkRoom(message: OutgoingMessage, maxBytes: number): void {
  const missing = ADDED.filter((name) => !Object.hasOwn(message.attributes, name));
  const most = LIMITS.attributes - missing.length;
  const count = Object.keys(message.attributes).length;
  if (count > most) {
    throw refuse('attributes', `${count} of them`, `at most ${most}, so that the toolkit can add its own`);
  }
  // The same check against less room: it names the field and the limit.
  checkOutgoing(message, maxBytes - ADDED_BYTES);
}

const refuse = (name: string, value: string, accepted: string, cause?: unknown): PermanentError =>
  new PermanentError('INVALID_MESSAGE', `${name} is ${value}; accepted: ${accepted}`, { cause });
