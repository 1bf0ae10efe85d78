/**
 * A message as one field of bytes: how held messages and task bodies carry it. The data is in it unchanged, so
 * that every byte comes back, and the format has a version of its own.
 *
 * Layout: one byte of version (1), the header's length in four bytes (big endian), the header as JSON, the data.
 */
import { PermanentError } from './errors.ts';
import type { Attributes, Message } from './message.ts';
import { bytes as areBytes } from './options.ts';

const VERSION = 1;
const PREFIX_BYTES = 5;

type Header = Readonly<{
  id: string;
  publishTimeMs: number;
  assumedPublishTime?: NonNullable<Message['assumedPublishTime']>;
  attributes: Attributes;
  orderingKey?: string;
  subscription?: string;
}>;

/** The delivery attempt is left out: it belongs to a delivery, not to the message. */
export function encodeMessage(message: Message): Buffer {
  const header: Header = {
    id: message.id,
    publishTimeMs: message.publishTime.getTime(),
    ...(message.assumedPublishTime !== undefined && { assumedPublishTime: message.assumedPublishTime }),
    attributes: message.attributes,
    ...(message.orderingKey !== undefined && { orderingKey: message.orderingKey }),
    ...(message.subscription !== undefined && { subscription: message.subscription }),
  };
  const json = Buffer.from(JSON.stringify(header), 'utf8');
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt8(VERSION, 0);
  prefix.writeUInt32BE(json.length, 1);
  return Buffer.concat([prefix, json, message.data]);
}

/**
 * Throws PermanentError `UNREADABLE_MESSAGE` for bytes of another format.
 *
 * @example
 * const original = decodeMessage(message.data); // of a dead letter with `deadLetterEncoding`
 */
export function decodeMessage(bytes: Uint8Array): Message {
  areBytes('bytes', bytes);
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length < PREFIX_BYTES || buffer.readUInt8(0) !== VERSION) {
    throw unreadable(`a stored message does not begin with format version ${VERSION}`);
  }
  const end = PREFIX_BYTES + buffer.readUInt32BE(1);
  if (end > buffer.length) throw unreadable('a stored message is shorter than its header says');
  let header: unknown;
  try {
    header = JSON.parse(buffer.toString('utf8', PREFIX_BYTES, end));
  } catch (cause) {
    throw unreadable('the header of a stored message is not JSON', cause);
  }
  if (!isHeader(header)) throw unreadable('the header of a stored message lacks a field');
  const { publishTimeMs, ...rest } = header;
  return { ...rest, data: buffer.subarray(end), publishTime: new Date(publishTimeMs) };
}

function isHeader(value: unknown): value is Header {
  if (typeof value !== 'object' || value === null) return false;
  const { id, publishTimeMs, attributes } = value as Partial<Record<keyof Header, unknown>>;
  return (
    typeof id === 'string' &&
    typeof publishTimeMs === 'number' &&
    typeof attributes === 'object' &&
    attributes !== null
  );
}

const unreadable = (message: string, cause?: unknown): PermanentError =>
  new PermanentError('UNREADABLE_MESSAGE', message, { cause });
