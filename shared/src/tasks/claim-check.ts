/**
 * The claim check (Hohpe and Woolf): a message that does not fit a task waits in the payload store, and the task
 * carries a reference to it.
 *
 * The payload is stored before the task is created, so no task refers to nothing. A crash in between, and a redelivery,
 * come to the same reference: what is stored is made of the message as it was received, not of this delivery's trace.
 */
import { ATTRIBUTE } from '../attributes.ts';
import { PermanentError, TransientError } from '../errors.ts';
import { type Attributes, LIMITS, type Message, messageBytes } from '../message.ts';
import { payloadRef, type PayloadRef, type PayloadStore } from '../payload/payload-store.ts';
import { decodeMessage, encodeMessage } from '../stored-message.ts';
import { type Delayed, decodeDelayed, deliveryOf, encodeDelayed, taskFor } from './task-body.ts';
import { checkMessage } from './task-header.ts';
import type { Task, TaskQueue } from './task-queue.ts';

export type TaskEncoding = Readonly<{
  queue: Pick<TaskQueue, 'overheadBytes'>;
  /** Absent: what does not fit a task is a permanent error. */
  payloads?: PayloadStore | undefined;
  /** Body, name, target and headers together. */
  maxTaskBytes: number;
  /** The same for every delivery: `delayed.message` without this delivery's trace. Default: `delayed.message`. */
  plain?: Message;
  /** What the content is stored for, the same for every delivery of the message. Default: `deliveryOf(delayed)`. */
  owner?: string;
}>;

/**
 * `delayed` as its tasks will carry it: as it is where that fits, else without its trace, else with a `payload` that is
 * stored when this resolves. Throws PermanentError `TASK_TOO_LARGE` where nothing fits.
 */
export async function offload(delayed: Delayed, encoding: TaskEncoding): Promise<Delayed> {
  return (await encodeOrOffload(delayed, encoding)).delayed;
}

/** The task for it, with its payload stored where it needs one. Throws as `offload` does. */
export async function encodeTask(delayed: Delayed, encoding: TaskEncoding): Promise<Task> {
  const ready = await encodeOrOffload(delayed, encoding);
  return taskFor(ready.delayed, ready.body);
}

/**
 * The message of it whole, from the payload store where it is there. Throws what `PayloadStore.get` throws, and
 * TransientError `PAYLOAD_STORE_MISSING` without a payload store: the task must still be there when the deployment is
 * corrected.
 */
export async function load(delayed: Delayed, payloads: PayloadStore | undefined): Promise<Delayed> {
  const { payload, message } = delayed;
  if (payload === undefined) return delayed;
  if (payloads === undefined) {
    throw new TransientError(
      'PAYLOAD_STORE_MISSING',
      `the message is in payload ${payload.id}; accepted until a payload store is configured: tasks that carry their message`,
    );
  }
  const whole = checkMessage(decodeMessage(await payloads.get(payload)));
  return { ...delayed, message: { ...whole, attributes: withTrace(whole, message.attributes) } };
}

/** What a task's body stands for, its message whole. Throws as `decodeDelayed` and `load` do. */
export async function loadTask(body: Uint8Array, payloads?: PayloadStore): Promise<Delayed> {
  return load(decodeDelayed(body), payloads);
}

/** As its tasks will carry it without anything stored: as it is, or without its trace. Undefined where it is too large. */
export const withinLimit = (delayed: Delayed, encoding: TaskEncoding): Delayed | undefined =>
  encodePlain(delayed, encoding)?.delayed;

/** What the content of `delayed` is called where it is stored for `owner`, whether or not it is. */
export const payloadRefOf = (delayed: Delayed, owner: string, plain: Message = delayed.message): PayloadRef =>
  payloadRef(owner, encodeMessage(plain));

type Ready = Readonly<{ delayed: Delayed; body: Buffer }>;

function encodePlain(delayed: Delayed, encoding: TaskEncoding): Ready | undefined {
  const { plain = delayed.message } = encoding;
  const asItIs = encodeWithinLimit(delayed, encoding);
  if (asItIs !== undefined || plain === delayed.message || delayed.payload !== undefined) return asItIs;
  return encodeWithinLimit({ ...delayed, message: plain }, encoding);
}

async function encodeOrOffload(delayed: Delayed, encoding: TaskEncoding): Promise<Ready> {
  const { payloads, plain = delayed.message, owner = deliveryOf(delayed) } = encoding;
  const small = encodePlain(delayed, encoding);
  if (small !== undefined) return small;
  if (delayed.payload !== undefined) throw tooLarge(delayed, encoding);
  if (payloads === undefined) throw tooLarge({ ...delayed, message: plain }, encoding);
  const payload = await payloads.put(owner, encodeMessage(plain), delayed.dueTimeMs);
  const checked = { ...delayed, payload };
  const ready = encodeWithinLimit(checked, encoding);
  if (ready === undefined) throw tooLarge(checked, encoding);
  return ready;
}

/** Undefined where the task would be too large; what is too large by its data alone is not even encoded. */
function encodeWithinLimit(delayed: Delayed, { queue, maxTaskBytes }: TaskEncoding): Ready | undefined {
  const room = maxTaskBytes - queue.overheadBytes;
  if (delayed.payload === undefined && delayed.message.data.length > room) return undefined;
  const body = encodeDelayed(delayed);
  return body.length > room ? undefined : { delayed, body };
}

/** The trace of the delivery that made the task, as if the task had carried the message; left out where it has no room. */
function withTrace(message: Message, envelope: Attributes): Attributes {
  const parent = envelope[ATTRIBUTE.traceparent];
  const state = envelope[ATTRIBUTE.tracestate];
  if (parent === undefined || parent === message.attributes[ATTRIBUTE.traceparent]) return message.attributes;
  const { [ATTRIBUTE.tracestate]: _replaced, ...others } = message.attributes;
  const attributes = {
    ...others,
    [ATTRIBUTE.traceparent]: parent,
    ...(state !== undefined && { [ATTRIBUTE.tracestate]: state }),
  };
  const hasRoom =
    Object.keys(attributes).length <= LIMITS.attributes &&
    messageBytes({ ...message, attributes }) <= LIMITS.messageBytes;
  return hasRoom ? attributes : message.attributes;
}

function tooLarge(delayed: Delayed, { queue, maxTaskBytes }: TaskEncoding): PermanentError {
  const bytes = encodeDelayed(delayed).length + queue.overheadBytes;
  return new PermanentError(
    'TASK_TOO_LARGE',
    `the delayed message needs a task of ${bytes} bytes; accepted: at most ${maxTaskBytes} bytes`,
  );
}
