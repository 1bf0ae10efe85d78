/**
 * What the fields of a task's header and of its message must be. A task of another form is a permanent error that names
 * the field: it goes to the dead letters and is not retried for ever.
 */
import { PermanentError } from '../errors.ts';
import type { Message } from '../message.ts';
import type { PayloadRef } from '../payload/payload-store.ts';

type Header = Readonly<Record<string, unknown>>;

export function parseHeader(json: string): Header {
  let header: unknown;
  try {
    header = JSON.parse(json);
  } catch {
    throw unreadable('the header of the task is not JSON');
  }
  return object(header, 'the header of the task');
}

export function text(header: Header, name: string): string {
  const value = header[name];
  if (typeof value !== 'string' || value === '') throw unreadable(`${name} of the task is not a text`);
  return value;
}

/**
 * A document's name: ours are hashes, and a store that refuses one would be asked for it again and again. A hash may begin
 * with two underscores; no name has them at both ends (https://cloud.google.com/firestore/quotas#limits).
 */
function name(header: Header, of: string): string {
  const id = text(header, 'id');
  if (!/^[\w-]{1,500}$/.test(id) || /^__.*__$/.test(id))
    throw unreadable(`the ${of} of the task has no name`);
  return id;
}

export function whole(header: Header, name: string): number {
  const value = header[name];
  if (!Number.isSafeInteger(value)) throw unreadable(`${name} of the task is not a whole number`);
  return Number(value);
}

export function entryIn(header: Header): { entry?: Readonly<{ id: string; generation: string }> } {
  if (header['entry'] === undefined) return {};
  const entry = object(header['entry'], 'the entry of the task');
  return { entry: { id: name(entry, 'entry'), generation: text(entry, 'generation') } };
}

export function payloadIn(header: Header): { payload?: PayloadRef } {
  if (header['payload'] === undefined) return {};
  const payload = object(header['payload'], 'the payload of the task');
  const bytes = whole(payload, 'bytes');
  if (bytes < 0) throw unreadable('bytes of the task is negative');
  return { payload: { id: name(payload, 'payload'), bytes, digest: text(payload, 'digest') } };
}

/**
 * The stored message's header is accepted by its own codec without a check; what is published from it must have the
 * types.
 */
export function checkMessage(message: Message): Message {
  const { id, attributes, orderingKey, publishTime } = message as Readonly<Record<keyof Message, unknown>>;
  const isFlat = typeof attributes === 'object' && attributes !== null && !Array.isArray(attributes);
  const areTexts = isFlat && Object.values(attributes).every((value) => typeof value === 'string');
  const isKey = orderingKey === undefined || typeof orderingKey === 'string';
  if (typeof id !== 'string' || !isKey || !areTexts || Number.isNaN((publishTime as Date).getTime())) {
    throw unreadable('the message in the task has no ID, attributes or publish time of their types');
  }
  return message;
}

function object(value: unknown, what: string): Header {
  if (typeof value !== 'object' || value === null) throw unreadable(`${what} is not an object`);
  return value as Header;
}

export const unreadable = (message: string): PermanentError => new PermanentError('UNREADABLE_TASK', message);
