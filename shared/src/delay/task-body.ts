/**
 * What a task carries, as bytes: the message as it will be published, where to and when. Nothing in it is base64 or
 * text made of data, so every byte comes back and a payload is not made a third larger.
 *
 * Layout: one byte of version (1), the header's length in four bytes (big endian), the header as JSON, the stored
 * message. Bytes of any other form are a permanent error: a task that cannot be read is not retried for ever.
 */
import { PermanentError } from '../errors.ts';
import { hashOf } from '../hash.ts';
import type { Message } from '../message.ts';
import { decodeMessage, encodeMessage } from '../stored-message.ts';
import type { Task } from './task-queue.ts';

export type Delayed = Readonly<{
  /** Identity of the delivery that asked for the delay, as a hash. Part of every name that it leads to. */
  key: string;
  /** `projects/…/topics/…`: where the message goes. */
  topic: string;
  /** Milliseconds since the epoch: when the message goes, not before. */
  instantMs: number;
  /** What the task was scheduled for: the instant, or a hop on the way to it. */
  scheduleTimeMs: number;
  /** Counts deliberate schedulings of the same message anew. From 0. */
  attempt: number;
  /** Counts the tasks on the way to one instant. From 0. */
  hop: number;
  /** As it will be published; `id` and `publishTime` are those of the message that asked for the delay. */
  message: Message;
}>;

const VERSION = 1;
const PREFIX_BYTES = 5;

/** The task for it. Equal for every redelivery and every repeat, different for every attempt and hop. */
export function taskFor(delayed: Delayed): Task {
  const { key, topic, instantMs, attempt, hop } = delayed;
  return {
    name: hashOf(key, topic, String(instantMs), String(attempt), String(hop)),
    scheduleTimeMs: delayed.scheduleTimeMs,
    body: encodeDelayed(delayed),
  };
}

export function encodeDelayed({ message, ...header }: Delayed): Buffer {
  const json = Buffer.from(JSON.stringify(header), 'utf8');
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt8(VERSION, 0);
  prefix.writeUInt32BE(json.length, 1);
  return Buffer.concat([prefix, json, encodeMessage(message)]);
}

/** Throws PermanentError `UNREADABLE_TASK` or `UNREADABLE_MESSAGE`. */
export function decodeDelayed(bytes: Uint8Array): Delayed {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length < PREFIX_BYTES || buffer.readUInt8(0) !== VERSION) {
    throw unreadable(`the task does not begin with format version ${VERSION}`);
  }
  const end = PREFIX_BYTES + buffer.readUInt32BE(1);
  if (end > buffer.length) throw unreadable('the task is shorter than its header says');
  const header = parse(buffer.toString('utf8', PREFIX_BYTES, end));
  return {
    key: text(header, 'key'),
    topic: text(header, 'topic'),
    instantMs: whole(header, 'instantMs'),
    scheduleTimeMs: whole(header, 'scheduleTimeMs'),
    attempt: whole(header, 'attempt'),
    hop: whole(header, 'hop'),
    message: checked(decodeMessage(buffer.subarray(end))),
  };
}

function parse(json: string): Readonly<Record<string, unknown>> {
  let header: unknown;
  try {
    header = JSON.parse(json);
  } catch {
    throw unreadable('the header of the task is not JSON');
  }
  if (typeof header !== 'object' || header === null)
    throw unreadable('the header of the task is not an object');
  return header as Record<string, unknown>;
}

function text(header: Readonly<Record<string, unknown>>, name: string): string {
  const value = header[name];
  if (typeof value !== 'string' || value === '') throw unreadable(`${name} of the task is not a text`);
  return value;
}

function whole(header: Readonly<Record<string, unknown>>, name: string): number {
  const value = header[name];
  if (!Number.isSafeInteger(value)) throw unreadable(`${name} of the task is not a whole number`);
  return Number(value);
}

/** The stored message's header is taken as it stands by its own codec; what is published from it must have the types. */
function checked(message: Message): Message {
  const { id, attributes, orderingKey, publishTime } = message as Readonly<Record<keyof Message, unknown>>;
  const isFlat = typeof attributes === 'object' && attributes !== null && !Array.isArray(attributes);
  const areTexts = isFlat && Object.values(attributes).every((value) => typeof value === 'string');
  const isKey = orderingKey === undefined || typeof orderingKey === 'string';
  if (typeof id !== 'string' || !isKey || !areTexts || Number.isNaN((publishTime as Date).getTime())) {
    throw unreadable('the message in the task has no ID, attributes or publish time of their types');
  }
  return message;
}

const unreadable = (message: string): PermanentError => new PermanentError('UNREADABLE_TASK', message);
