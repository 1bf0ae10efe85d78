/**
 * What a task carries, as bytes: the message as it will be published, where to and when. Nothing in it is base64 or
 * text made of data, so every byte comes back and a payload is not made a third larger.
 *
 * Layout: one byte of version, the header's length in four bytes (big endian), the header as JSON, the stored message.
 * Version 1 holds a whole message. Version 2 also says which ledger entry decides about it, or which payload its message
 * is in; in the latter case the stored message has no data. What version 1 can say is written as version 1, so that
 * a republisher of before can read it. Bytes of any other form are a permanent error: a task that cannot be read is not
 * retried for ever.
 */
import { ATTRIBUTE } from '../attributes.ts';
import { hashOf } from '../hash.ts';
import { type Attributes, byteLength, type Message } from '../message.ts';
import type { PayloadRef } from '../payload/payload-store.ts';
import { decodeMessage, encodeMessage } from '../stored-message.ts';
import { checkMessage, entryIn, parseHeader, payloadIn, text, unreadable, whole } from './task-header.ts';
import type { Task } from './task-queue.ts';

export type Delayed = Readonly<{
  /** Identity of the delivery that asked for the delay, as a hash. Part of every name that it leads to. */
  key: string;
  /** `projects/…/topics/…`: where the message goes. */
  topic: string;
  /** Milliseconds since the epoch: when the message goes, not before. */
  dueTimeMs: number;
  /** What the task was scheduled for: the due time, or a hop on the way to it. */
  scheduleTimeMs: number;
  /** Counts deliberate schedulings of the same message anew. From 0. */
  attempt: number;
  /** Counts the tasks on the way to one due time. From 0. */
  hop: number;
  /** Where a ledger entry decides whether it may go: the entry's document ID and the generation that this task is for. */
  entry?: Readonly<{ id: string; generation: string }>;
  /**
   * As it will be published; `id` and `publishTime` are those of the message that asked for the delay. With a `payload`
   * the task carries it without its data, and without most attributes where they are many: `load` gives it whole.
   */
  message: Message;
  /** Where the whole message is, when it is too large for a task. */
  payload?: PayloadRef;
}>;

const INLINE = 1;
const VERSION = 2;
const PREFIX_BYTES = 5;
/** Attributes that a task carries beside a payload, for the trace and for a dead letter. More than most messages have. */
const ENVELOPE_BYTES = 8_192;
const ENVELOPE_ATTRIBUTES: readonly string[] = [
  ATTRIBUTE.dedupId,
  ATTRIBUTE.originPublishTime,
  ATTRIBUTE.deliveredAfter,
  ATTRIBUTE.traceparent,
  ATTRIBUTE.tracestate,
];

/**
 * The task for it. Equal for every redelivery and every repeat, different for every generation, attempt and hop.
 * `body` is what `encodeDelayed` gives for it, where the caller has it already.
 */
export function taskFor(delayed: Delayed, body: Uint8Array = encodeDelayed(delayed)): Task {
  const { key, topic, dueTimeMs, attempt, hop, entry } = delayed;
  const parts = [key, topic, String(dueTimeMs), String(attempt), String(hop)];
  const name = hashOf(...parts, ...(entry === undefined ? [] : [entry.generation]));
  return { name, scheduleTimeMs: delayed.scheduleTimeMs, body };
}

/**
 * Names the delivery itself, whatever hop it is at and however its due time was worked out: what owns its payload, so
 * that a redelivery comes to the same one, and two deliveries never share one.
 */
export const deliveryOf = ({ key, topic, attempt, entry }: Delayed): string =>
  hashOf('delivery', key, topic, String(attempt), entry?.generation ?? '');

export function encodeDelayed(delayed: Delayed): Buffer {
  const { message, ...header } = delayed;
  const { entry, payload } = header;
  const json = Buffer.from(JSON.stringify(header), 'utf8');
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt8(entry === undefined && payload === undefined ? INLINE : VERSION, 0);
  prefix.writeUInt32BE(json.length, 1);
  return Buffer.concat([prefix, json, encodeMessage(payload === undefined ? message : envelopeOf(message))]);
}

/** Throws PermanentError `UNREADABLE_TASK` or `UNREADABLE_MESSAGE`. */
export function decodeDelayed(bytes: Uint8Array): Delayed {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = buffer.length < PREFIX_BYTES ? undefined : buffer.readUInt8(0);
  if (version !== INLINE && version !== VERSION) {
    throw unreadable(`the task does not begin with format version ${INLINE} or ${VERSION}`);
  }
  const end = PREFIX_BYTES + buffer.readUInt32BE(1);
  if (end > buffer.length) throw unreadable('the task is shorter than its header says');
  const header = parseHeader(buffer.toString('utf8', PREFIX_BYTES, end));
  return {
    key: text(header, 'key'),
    topic: text(header, 'topic'),
    dueTimeMs: whole(header, 'dueTimeMs'),
    scheduleTimeMs: whole(header, 'scheduleTimeMs'),
    attempt: whole(header, 'attempt'),
    hop: whole(header, 'hop'),
    ...(version === VERSION && { ...entryIn(header), ...payloadIn(header) }),
    message: checkMessage(decodeMessage(buffer.subarray(end))),
  };
}

function envelopeOf(message: Message): Message {
  return { ...message, data: Buffer.alloc(0), attributes: envelopeAttributes(message.attributes) };
}

function envelopeAttributes(attributes: Attributes): Attributes {
  if (byteLength(JSON.stringify(attributes)) <= ENVELOPE_BYTES) return attributes;
  return Object.fromEntries(Object.entries(attributes).filter(([key]) => ENVELOPE_ATTRIBUTES.includes(key)));
}
