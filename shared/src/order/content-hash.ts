/**
 * The identity of a message's content, which tells a duplicate from a second message under the same number.
 *
 * It covers the data and the publisher's attributes, because an event may say all in its attributes. Left out is what
 * differs between two publishes of one message: what the toolkit and the service add, trace context, and the
 * attributes that name the stream (they are compared for themselves). `dedupId` is left out because a stage in front
 * may have written it from the message ID.
 */
import { ATTRIBUTE } from '../attributes.ts';
import { hashOf } from '../hash.ts';
import { isReserved, type Message } from '../message.ts';

const LEFT_OUT: ReadonlySet<string> = new Set([
  ATTRIBUTE.dedupId,
  ATTRIBUTE.sequence,
  ATTRIBUTE.sequenceKey,
  ATTRIBUTE.sequenceEpoch,
  ATTRIBUTE.originPublishTime,
  ATTRIBUTE.deliveredAfter,
  ATTRIBUTE.fencingToken,
  ATTRIBUTE.deadLetterReason,
  ATTRIBUTE.deadLetterError,
  ATTRIBUTE.deadLetterConsumer,
  ATTRIBUTE.deadLetterSource,
  ATTRIBUTE.sourceSchemaName,
  ATTRIBUTE.sourceSchemaRevisionId,
  ATTRIBUTE.sourceSchemaEncoding,
  // https://www.w3.org/TR/trace-context/ and https://www.w3.org/TR/baggage/
  'traceparent',
  'tracestate',
  'baggage',
]);

/** Added by the service to what it dead-letters: https://cloud.google.com/pubsub/docs/dead-letter-topics */
const DEAD_LETTER_PREFIX = 'CloudPubSubDeadLetterSource';

/** 22 characters (132 bits): a key document keeps a hundred of them. */
const HASH_LENGTH = 22;

export function contentHash(message: Message): string {
  const attributes = Object.entries(message.attributes)
    .filter(([key]) => !LEFT_OUT.has(key) && !isReserved(key) && !key.startsWith(DEAD_LETTER_PREFIX))
    .toSorted(([left], [right]) => (left < right ? -1 : 1));
  return hashOf(message.data, ...attributes.flat()).slice(0, HASH_LENGTH);
}
