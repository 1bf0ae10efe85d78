/**
 * Outgoing messages as rows of the caller's commit, and rows as messages again.
 *
 * Everything that a copy must have in common is in the row when it is written: the bytes, the number and the `dedupId`.
 * However often a row is published, after whatever crash, each copy is the same message.
 */
import { ATTRIBUTE, parseDeliveryOptions } from '../attributes.ts';
import { PermanentError } from '../errors.ts';
import { checkOutgoing, checkTypes, type OutgoingMessage } from '../message.ts';
import { withNumber } from '../sequence/sequencer.ts';
import { fullTopicName } from '../publish/topic-name.ts';
import type { PayloadRef } from '../payload/payload-store.ts';
import { decodeMessage, encodeMessage } from '../stored-message.ts';

/** One stream of one counter: a counter that was replaced begins another stream, under another epoch. */
export type StreamRef = Readonly<{ key: string; epoch: string }>;

export type Place = StreamRef &
  Readonly<{
    number: number;
    /** The number of the row before this one in the stream, 0 for the first. Numbers between them have no row. */
    after: number;
  }>;

export type Row = Readonly<{
  id: string;
  /** `projects/…/topics/…` */
  topic: string;
  /** As `encodeMessage` writes it, with the row's ID as its ID. */
  message: Uint8Array;
  /** Absent: a row without order. */
  place?: Place;
  /** Where its data is. Absent: in the message. */
  payload?: PayloadRef;
  /**
   * Rows without order that one delivery of the inbox has written are published one after the other, and are found by
   * its name: their IDs are `<group>.<position>`.
   */
  group?: string;
}>;

export type RowLimits = Readonly<{
  /** Of the message as it is stored. */
  maxMessageBytes: number;
  /** Of data and attributes together. */
  maxBytes: number;
  /** Of a topic without one. */
  project: string;
  nowMs: number;
}>;

/** Throws PermanentError, before anything is written, for what no topic or no row would take. */
export function rowOf(
  id: string,
  message: OutgoingMessage,
  limits: RowLimits,
  place?: Place,
  payload?: PayloadRef,
): Row {
  checkTypes(message);
  // What the outbox adds would make a message of one that is empty.
  if (message.data.length === 0) checkOutgoing(message, limits.maxBytes);
  for (const name of [ATTRIBUTE.sequence, ATTRIBUTE.sequenceKey, ATTRIBUTE.sequenceEpoch]) {
    if (place === undefined || message.attributes[name] === undefined) continue;
    const text = `attribute ${name} is set; the outbox numbers the messages of a sequenceKey itself`;
    throw new PermanentError('INVALID_ATTRIBUTE', text);
  }
  const dedupId = message.attributes[ATTRIBUTE.dedupId] ?? id;
  const named = { ...message, attributes: { ...message.attributes, [ATTRIBUTE.dedupId]: dedupId } };
  const whole = place === undefined ? named : withNumber(named, place);
  checkOutgoing(whole, limits.maxBytes);
  // A member that the consumer would refuse, a delayed one among them, is a gap for everything behind it.
  if (place !== undefined) parseDeliveryOptions({ ...whole, publishTime: new Date(limits.nowMs) });
  const { topic, data, attributes, orderingKey } = whole;
  const bytes = encodeMessage({
    id,
    data: payload === undefined ? Buffer.from(data) : Buffer.alloc(0),
    attributes,
    ...(orderingKey !== undefined && { orderingKey }),
    publishTime: new Date(limits.nowMs),
  });
  if (bytes.length > limits.maxMessageBytes) {
    const text = `an outgoing message takes ${bytes.length} bytes in the outbox`;
    const accepted = `at most ${limits.maxMessageBytes} bytes, or one that \`prepare\` has put in the payload store`;
    throw new PermanentError('LIMIT_EXCEEDED', `${text}; accepted: ${accepted}`);
  }
  return {
    id,
    topic: fullTopicName(topic, limits.project),
    message: bytes,
    ...(place !== undefined && { place }),
    ...(payload !== undefined && { payload }),
  };
}

/** Without the data that is elsewhere. Throws PermanentError for bytes that are no message. */
export function outgoingOf({ topic, message }: Row): OutgoingMessage {
  const { data, attributes, orderingKey } = decodeMessage(message);
  return { topic, data, attributes, ...(orderingKey !== undefined && { orderingKey }) };
}
