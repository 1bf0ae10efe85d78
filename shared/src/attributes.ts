/**
 * The wire contract: the message attributes by which a publisher in any language asks for a guarantee. Nothing else
 * in the library knows an attribute's name.
 *
 * Values are validated where they enter. An invalid one is a permanent error that names the attribute, the value and
 * what is accepted: the message goes to the dead letters, it is not retried and its meaning is not guessed at.
 */
import { PermanentError } from './errors.ts';
import { identifierHash } from './hash.ts';
import { type Attributes, byteLength, type Message } from './message.ts';
import { parseTimestamp } from './timestamp.ts';
import { isObject } from './options.ts';

export const ATTRIBUTE = {
  // Set by publishers.
  dedupId: 'dedupId',
  delay: 'delay',
  deliverAt: 'deliverAt',
  scheduleKey: 'scheduleKey',
  cancel: 'cancel',
  sequence: 'sequence',
  sequenceKey: 'sequenceKey',
  sequenceEpoch: 'sequenceEpoch',
  // Added by the toolkit on the way out.
  originPublishTime: 'originPublishTime',
  deliveredAfter: 'deliveredAfter',
  fencingToken: 'fencingToken',
  sourceSchemaName: 'sourceSchemaName',
  sourceSchemaRevisionId: 'sourceSchemaRevisionId',
  sourceSchemaEncoding: 'sourceSchemaEncoding',
  retryAttempt: 'retryAttempt',
  deadLetterReason: 'deadLetterReason',
  deadLetterError: 'deadLetterError',
  deadLetterConsumer: 'deadLetterConsumer',
  deadLetterSource: 'deadLetterSource',
  deadLetterEncoding: 'deadLetterEncoding',
  // Set by publishers, renewed by the toolkit: https://www.w3.org/TR/trace-context/
  traceparent: 'traceparent',
  tracestate: 'tracestate',
} as const;

/** Those that publishers set, and that ask for something. */
export const PUBLISHED_ATTRIBUTES: readonly string[] = [
  ATTRIBUTE.dedupId,
  ATTRIBUTE.delay,
  ATTRIBUTE.deliverAt,
  ATTRIBUTE.scheduleKey,
  ATTRIBUTE.cancel,
  ATTRIBUTE.sequence,
  ATTRIBUTE.sequenceKey,
  ATTRIBUTE.sequenceEpoch,
];

/** Ten years of 365 days: the longest delay. A millisecond epoch in a seconds field is far beyond it, and so refused. */
export const LONGEST_DELAY_SECONDS = 315_360_000;
/** dedupId, scheduleKey and sequenceKey: as long as an attribute value may be. */
const KEY_BYTES = 1_024;

export type Sequence = Readonly<{
  /** From 1, at most 2^53 - 1. */
  number: number;
  key: string;
  /** Identity of the counter that gave the number, where the publisher names it. */
  epoch?: string;
}>;

/** What a message asks for. */
export type DeliveryOptions = Readonly<{
  /** The publisher's name for the message, 1 to 1,024 bytes. Absent: the message ID names it. */
  dedupId?: string;
  /**
   * The due time, milliseconds since the epoch, at most ten years after the publish. Absent: no delay, or `0`, was asked
   * for.
   */
  deliverAtMs?: number;
  /** Names a delivery that can be replaced and cancelled, 1 to 1,024 bytes. Absent: it cannot. */
  scheduleKey?: string;
  /** Withdraws the pending delivery of `scheduleKey`. Absent: it asks for one. */
  cancel?: true;
  /** Its place in a stream. Absent: it is in none. */
  sequence?: Sequence;
}>;

/**
 * Reads and validates every attribute of the contract. `delay` is counted from the server's publish time, so a
 * redelivery gives the same due time. Throws PermanentError `INVALID_ATTRIBUTE`.
 *
 * @example
 * const { dedupId, deliverAtMs, sequence } = parseDeliveryOptions(message);
 */
export function parseDeliveryOptions(
  message: Pick<Message, 'attributes' | 'publishTime' | 'orderingKey'>,
): DeliveryOptions {
  isObject('message', message);
  const { attributes } = message;
  isObject('message.attributes', attributes);
  const dedupId = parseKey(attributes, ATTRIBUTE.dedupId);
  const scheduleKey = parseKey(attributes, ATTRIBUTE.scheduleKey);
  const cancel = parseCancel(attributes);
  const deliverAtMs = parseDueTime(attributes, message.publishTime.getTime());
  const sequence = parseSequence(attributes, message.orderingKey);
  const asksForTime =
    attributes[ATTRIBUTE.delay] !== undefined || attributes[ATTRIBUTE.deliverAt] !== undefined;
  if (cancel && scheduleKey === undefined) throw refuse('cancel', 'true', 'only together with scheduleKey');
  if (cancel && asksForTime) throw refuse('cancel', 'true', 'without delay and deliverAt');
  if (sequence !== undefined && (asksForTime || scheduleKey !== undefined)) {
    throw refuse(
      'sequence',
      String(sequence.number),
      'without delay, deliverAt and scheduleKey: a delayed member of a stream is a gap for everything behind it',
    );
  }
  return {
    ...(dedupId !== undefined && { dedupId }),
    ...(deliverAtMs !== undefined && { deliverAtMs }),
    ...(scheduleKey !== undefined && { scheduleKey }),
    ...(cancel && { cancel }),
    ...(sequence !== undefined && { sequence }),
  };
}

/** Reserved, and kept in no record: passed on, it would look like a delivery that can be replaced or withdrawn. */
export function refuseSchedule({ scheduleKey }: DeliveryOptions): void {
  if (scheduleKey === undefined) return;
  throw new PermanentError(
    'SCHEDULE_KEY_UNSUPPORTED',
    `attribute ${ATTRIBUTE.scheduleKey} asks for a delivery that can be replaced or cancelled; accepted: messages without it, because no record of schedules is kept here; publish it to the topic of a function that keeps one`,
  );
}

/** `attributes` without the named ones. */
export function without(attributes: Attributes, names: readonly string[]): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([key]) => !names.includes(key)));
}

function parseKey(attributes: Attributes, name: string): string | undefined {
  const value = attributes[name];
  if (value === undefined) return undefined;
  const bytes = byteLength(value);
  if (bytes < 1 || bytes > KEY_BYTES)
    throw refuse(name, value, `1 to ${KEY_BYTES} bytes of UTF-8, not ${bytes}`);
  // Halves of a character all have the same bytes in UTF-8: two keys would pass for one.
  if (!value.isWellFormed()) throw refuse(name, value, 'well-formed Unicode');
  return value;
}

function parseCancel(attributes: Attributes): true | undefined {
  const value = attributes[ATTRIBUTE.cancel];
  if (value === undefined) return undefined;
  if (value !== 'true') throw refuse(ATTRIBUTE.cancel, value, 'only "true"');
  return true;
}

function parseDueTime(attributes: Attributes, publishTimeMs: number): number | undefined {
  const delay = attributes[ATTRIBUTE.delay];
  const deliverAt = attributes[ATTRIBUTE.deliverAt];
  if (delay !== undefined && deliverAt !== undefined) {
    throw refuse(ATTRIBUTE.deliverAt, deliverAt, 'not together with delay');
  }
  if (delay !== undefined) {
    if (!/^(0|[1-9][0-9]{0,8})$/.test(delay) || Number(delay) > LONGEST_DELAY_SECONDS) {
      throw refuse(ATTRIBUTE.delay, delay, `whole seconds from 0 to ${LONGEST_DELAY_SECONDS}, digits only`);
    }
    return delay === '0' ? undefined : publishTimeMs + Number(delay) * 1_000;
  }
  if (deliverAt === undefined) return undefined;
  const dueTimeMs = parseTimestamp(deliverAt);
  if (dueTimeMs === undefined) {
    throw refuse(
      ATTRIBUTE.deliverAt,
      deliverAt,
      'an RFC 3339 time with Z or an offset, e.g. 2030-01-31T08:00:00Z',
    );
  }
  if (dueTimeMs > publishTimeMs + LONGEST_DELAY_SECONDS * 1_000) {
    throw refuse(
      ATTRIBUTE.deliverAt,
      deliverAt,
      `at most ten years (${LONGEST_DELAY_SECONDS} s) after the publish time`,
    );
  }
  return dueTimeMs;
}

function parseSequence(attributes: Attributes, orderingKey: string | undefined): Sequence | undefined {
  const text = attributes[ATTRIBUTE.sequence];
  const named = parseKey(attributes, ATTRIBUTE.sequenceKey);
  const epoch = parseKey(attributes, ATTRIBUTE.sequenceEpoch);
  if (text === undefined) {
    if (named !== undefined) throw refuse(ATTRIBUTE.sequenceKey, named, 'only together with sequence');
    if (epoch !== undefined) throw refuse(ATTRIBUTE.sequenceEpoch, epoch, 'only together with sequence');
    return undefined;
  }
  if (!/^[1-9][0-9]{0,15}$/.test(text) || !Number.isSafeInteger(Number(text))) {
    throw refuse(
      ATTRIBUTE.sequence,
      text,
      `a whole number from 1 to ${Number.MAX_SAFE_INTEGER}, digits only`,
    );
  }
  const key = named ?? orderingKey;
  if (key === undefined || key === '') {
    throw refuse(
      ATTRIBUTE.sequence,
      text,
      'only with a sequenceKey, or with an ordering key to stand for it',
    );
  }
  return { number: Number(text), key, ...(epoch !== undefined && { epoch }) };
}

/** What a publisher names its messages by is in no log: a log line has its short hash. */
const IDENTIFIERS: ReadonlySet<string> = new Set([
  ATTRIBUTE.dedupId,
  ATTRIBUTE.scheduleKey,
  ATTRIBUTE.sequenceKey,
]);

/** Values are cut in the text: a dead letter's error must stay short. */
function refuse(name: string, value: string, accepted: string): PermanentError {
  const cut = value.length > 60 ? `${value.slice(0, 60)}…` : value;
  const shown = IDENTIFIERS.has(name) && value !== '' ? identifierHash(value) : JSON.stringify(cut);
  return new PermanentError('INVALID_ATTRIBUTE', `attribute ${name} is ${shown}; accepted: ${accepted}`);
}
