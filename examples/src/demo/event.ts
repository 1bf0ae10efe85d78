/**
 * One line of an events file: what to publish, by whom, and when. Everything about a line is checked here, before
 * anything starts; an error names the field, its value and what is accepted. Attributes of the wire contract are
 * not checked: an invalid one is published, and the toolkit answers with a dead letter.
 */
import { PermanentError } from 'pubsub-guarantees';
import { checkOutgoing, LIMITS } from 'pubsub-guarantees/publish';
import { LANES } from './lanes.ts';

export type DemoEvent = Readonly<{
  /** Line number in the file, from 1. */
  line: number;
  topic: string;
  publisher: string;
  /** Milliseconds after the start of publishing. */
  afterMs: number;
  data: Buffer;
  attributes: Readonly<Record<string, string>>;
  orderingKey?: string;
}>;

/** What is wrong with a line. The text is one line, for people. */
export class EventError extends Error {}

/** Ten minutes: a demo that runs longer than that is a mistake in the file. */
export const LONGEST_MS = 600_000;
/** The toolkit adds up to four attributes (dedupId, originPublishTime, deliveredAfter, fencingToken) … */
const OWN_ATTRIBUTES = 4;
/** … of which a derived dedupId is the longest; the checker needs all of them, so the file must leave the room. */
const OWN_BYTES = 4_096;
/** What the toolkit writes. A file that sets them could make the checker believe a wrong publish time. */
const TOOLKIT_ONLY = [
  'originPublishTime',
  'deliveredAfter',
  'fencingToken',
  'deadLetterReason',
  'deadLetterError',
];

const PROJECT_TOKEN = '{{projectId}}';
const TOPICS = LANES.map((lane) => lane.source);
const FIELDS = ['topic', 'publisher', 'afterMs', 'data', 'dataBase64', 'attributes', 'orderingKey'];
const PUBLISHER = /^[A-Za-z0-9_-]{1,40}$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Throws EventError. `nowMs` is what a `deliverAt` is compared with, to refuse a wait beyond LONGEST_MS. */
export function parseEvent(text: string, line: number, nowMs: number): DemoEvent {
  const fields = parseObject(text);
  for (const name of Object.keys(fields)) {
    if (!FIELDS.includes(name)) {
      throw new EventError(`unknown field ${shown(name)}; accepted: ${FIELDS.join(', ')}`);
    }
  }
  const { topic, publisher = 'p1', afterMs = 0, orderingKey } = fields;
  if (typeof topic !== 'string' || !TOPICS.includes(topic))
    throw refuse('topic', topic, `one of ${TOPICS.join(', ')}`);
  if (typeof publisher !== 'string' || !PUBLISHER.test(publisher)) {
    throw refuse('publisher', publisher, 'a name of 1 to 40 letters, digits, _ and - (default p1)');
  }
  if (typeof afterMs !== 'number' || !Number.isInteger(afterMs) || afterMs < 0 || afterMs > LONGEST_MS) {
    throw refuse('afterMs', afterMs, `a whole number of milliseconds from 0 to ${LONGEST_MS} (default 0)`);
  }
  if (orderingKey !== undefined && (typeof orderingKey !== 'string' || orderingKey === '')) {
    throw refuse('orderingKey', orderingKey, 'a string of 1 to 1024 bytes, or no such field');
  }
  const event: DemoEvent = {
    line,
    topic,
    publisher,
    afterMs,
    data: parseData(fields),
    attributes: parseAttributes(fields['attributes'] ?? {}),
    ...(orderingKey !== undefined && { orderingKey }),
  };
  checkLimits(event);
  checkWait(event, nowMs);
  return event;
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message.replaceAll(/\s+/g, ' ') : String(error);
    throw new EventError(`not JSON (${reason.slice(0, 120)}); accepted: one JSON object on a line`);
  }
  if (!isObject(value)) throw new EventError(`the line is ${shown(value)}; accepted: one JSON object`);
  return value;
}

function parseData(fields: Record<string, unknown>): Buffer {
  const { data, dataBase64 } = fields;
  if (data !== undefined && dataBase64 !== undefined) {
    throw refuse('dataBase64', dataBase64, 'not together with data');
  }
  if (data !== undefined) {
    if (typeof data !== 'string') throw refuse('data', data, 'a string (binary data: dataBase64)');
    return Buffer.from(data, 'utf8');
  }
  if (dataBase64 === undefined) return Buffer.alloc(0);
  if (typeof dataBase64 !== 'string' || !BASE64.test(dataBase64)) {
    throw refuse('dataBase64', dataBase64, 'standard base64 with padding');
  }
  return Buffer.from(dataBase64, 'base64');
}

function parseAttributes(value: unknown): Record<string, string> {
  if (!isObject(value)) throw refuse('attributes', value, 'an object of strings');
  const entries = Object.entries(value).map(([key, item]): [string, string] => {
    if (typeof item !== 'string') throw refuse(`attributes.${key}`, item, 'a string');
    if (TOOLKIT_ONLY.includes(key)) {
      throw refuse(`attributes.${key}`, item, 'no such attribute: the toolkit sets it');
    }
    if (`${key}${item}`.includes(PROJECT_TOKEN)) {
      throw refuse(
        `attributes.${key}`,
        item,
        `no ${PROJECT_TOKEN}: Google's client replaces it when it publishes`,
      );
    }
    return [key, item];
  });
  return Object.fromEntries(entries);
}

function checkLimits(event: DemoEvent): void {
  const count = Object.keys(event.attributes).length;
  const most = LIMITS.attributes - OWN_ATTRIBUTES;
  if (count > most) {
    throw new EventError(
      `field attributes has ${count} entries; accepted: at most ${most} (the toolkit adds ${OWN_ATTRIBUTES} to the ${LIMITS.attributes} of Pub/Sub)`,
    );
  }
  try {
    checkOutgoing(event, LIMITS.messageBytes - OWN_BYTES);
  } catch (error) {
    if (error instanceof PermanentError) throw new EventError(error.message);
    throw error;
  }
}

/** A delivery that is due in an hour would keep the demo for an hour. */
function checkWait(event: DemoEvent, nowMs: number): void {
  if (!LANES.some((lane) => lane.source === event.topic && lane.later)) return;
  const { delay, deliverAt } = event.attributes;
  const waits =
    delay === undefined
      ? deliverAt === undefined
        ? 0
        : Date.parse(deliverAt) - nowMs
      : Number(delay) * 1_000;
  // NaN and nonsense pass: they are invalid values, and what happens to those is worth seeing.
  if (waits <= LONGEST_MS || !(waits <= Number.MAX_SAFE_INTEGER)) return;
  const name = delay === undefined ? 'deliverAt' : 'delay';
  throw refuse(
    `attributes.${name}`,
    event.attributes[name],
    `at most ${LONGEST_MS / 1_000} s ahead in this demo, which waits for every delivery`,
  );
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function refuse(field: string, value: unknown, accepted: string): EventError {
  const is = value === undefined ? 'missing' : shown(value);
  return new EventError(`field ${field} is ${is}; accepted: ${accepted}`);
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
