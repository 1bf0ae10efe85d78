/**
 * The stored form of a message that waits for its turn, and the identity of its content, which tells a duplicate from a
 * second message under the same number.
 *
 * The identity covers the data and the publisher's attributes, because an event may say all in its attributes. Left out
 * is what differs between two publishes of one message: what the toolkit and the service add, trace context, and the
 * attributes that name the stream (they are compared for themselves). `dedupId` is left out because a stage in front
 * may have written it from the message ID.
 *
 * The content of one that is too large for the store goes to the
 * payload store, and the held message refers to it.
 *
 * The content is in the payload store before anything refers to it. It is discarded only after a commit, or a read,
 * which shows that nothing refers to it and nothing ever will. A crash in between leaves content until its expiry.
 */
import { PermanentError, textOf } from '../errors.ts';
import type { Context } from '../handler.ts';
import { hashOf } from '../hash.ts';
import { isReserved, type Message } from '../message.ts';
import { decodeMessage, encodeMessage } from '../stored-message.ts';
import { ATTRIBUTE } from '../attributes.ts';
import type { StreamPolicy } from './options.ts';
import type { HeldMessage, StreamRef } from './stream-store.ts';

/** `tooLarge`: for the store, and there is no payload store. */
export type StoredForm = HeldMessage | 'tooLarge';

/** Ten years, as for a delay: a stream may be blocked for long, and the payload store keeps nothing without an end. */
const KEPT_MS = 315_360_000_000;

/** Rejects with TransientError `STORE_UNAVAILABLE` where the payload store does not answer. */
export async function storedForm(
  { store, payloads }: Pick<StreamPolicy, 'store' | 'payloads'>,
  ref: StreamRef,
  identity: Readonly<{ number: number; hash: string }>,
  message: Message,
  context: Pick<Context, 'now' | 'source'>,
): Promise<StoredForm> {
  const { number, hash } = identity;
  const content = encodeMessage(message);
  const form = { number, hash, source: context.source, message: content };
  if (content.length <= store.maxHeldBytes) return form;
  if (payloads === undefined) return 'tooLarge';
  // Redeliveries of one message share their content, two publishes do not.
  const owner = hashOf('stream', ref.consumer, ref.source, ref.key, String(number), message.id);
  const payload = await payloads.put(owner, content, context.now() + KEPT_MS);
  return { ...form, message: new Uint8Array(), payload };
}

/**
 * The message that is held. Rejects with PermanentError where its content is gone, damaged or of another format, or
 * `NO_PAYLOAD_STORE`; with TransientError where nothing is known.
 */
export async function load(payloads: StreamPolicy['payloads'], held: HeldMessage): Promise<Message> {
  return decodeMessage(await contentOf(payloads, held));
}

async function contentOf(payloads: StreamPolicy['payloads'], held: HeldMessage): Promise<Uint8Array> {
  if (held.payload === undefined) return held.message;
  if (payloads !== undefined) return payloads.get(held.payload);
  throw new PermanentError(
    'NO_PAYLOAD_STORE',
    `the content of number ${held.number} is in the payload store, and none is configured`,
  );
}

/** Ends the content of messages to which nothing refers any more. A call that is lost costs space until the expiry. */
export async function discard(
  payloads: StreamPolicy['payloads'],
  { log }: Pick<Context, 'log'>,
  messages: readonly HeldMessage[],
): Promise<void> {
  for (const { number, payload } of messages) {
    if (payload === undefined || payloads === undefined) continue;
    try {
      await payloads.done(payload);
    } catch (error) {
      log.warn(
        'in order: the content of a message that is done stays in the payload store until its expiry',
        {
          sequence: number,
          error: textOf(error),
        },
      );
    }
  }
}

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
