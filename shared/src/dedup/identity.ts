/**
 * What makes two deliveries the same message: the publisher's `dedupId` where there is one, else the message ID, which
 * is unique within its topic only and is therefore never looked at without its consumer and source.
 */
import { parseDeliveryOptions } from '../attributes.ts';
import type { Context } from '../handler.ts';
import { hashOf, identifierHash } from '../hash.ts';
import type { Message } from '../message.ts';

export type Identity = Readonly<{
  /** A hash over (consumer, source, kind, value). */
  key: string;
  /** A hash over the data alone: attributes may differ between two publishes of one message. */
  fingerprint: string;
  /** For texts: `dedupId #…` (its short hash) or `message ID …`. */
  name: string;
}>;

/** Throws PermanentError `INVALID_ATTRIBUTE` for attributes that break the wire contract. */
export function identify(message: Message, context: Pick<Context, 'consumer' | 'source'>): Identity {
  const { dedupId } = parseDeliveryOptions(message);
  const [kind, value] = dedupId === undefined ? ['messageId', message.id] : ['dedupId', dedupId];
  return {
    key: hashOf(context.consumer, context.source, kind, value),
    fingerprint: hashOf(message.data),
    name: dedupId === undefined ? `message ID ${message.id}` : `dedupId ${identifierHash(dedupId)}`,
  };
}
