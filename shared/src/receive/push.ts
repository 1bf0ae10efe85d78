/**
 * HTTP request → Message. One logical message gives one identical Message from every kind of request: wrapped push,
 * unwrapped push, binary and structured CloudEvent, first-generation event.
 *
 * Pure. Throws a PermanentError: `INVALID_BODY`, naming the field, for a delivery that cannot be understood, and
 * `NOT_FROM_PUBSUB` for a request that is no delivery.
 */
import type { Message } from '../message.ts';
import { isBinaryEvent, isStructuredEvent, readBinaryEvent, readStructuredEvent } from './cloud-event.ts';
import { readEnvelope } from './envelope.ts';
import { type Fields, isFields, notFromPubsub, parseJson } from './fields.ts';
import { type Headers, headersOf, type HttpRequest, mediaType } from './http-request.ts';
import { isLegacyEvent, readLegacyEvent } from './legacy-event.ts';
import { headerMessageId, isUnwrapped, readUnwrapped } from './unwrapped.ts';

/** `nowMs`, the wall clock, stands in for a publish time that the sender left out. */
export function readPush(request: HttpRequest, nowMs: number): Message {
  const headers = headersOf(request);
  const { rawBody } = request;
  // First, because the attributes of an unwrapped message are headers too: one named ce-type makes no CloudEvent.
  if (isUnwrapped(headers)) {
    const wrapped = sameMessageInBody(headers, rawBody);
    return wrapped === undefined
      ? readUnwrapped(headers, rawBody, nowMs)
      : readEnvelope(wrapped, '', { nowMs });
  }
  if (isStructuredEvent(headers)) return readStructuredEvent(headers, rawBody, nowMs);
  if (isBinaryEvent(headers)) return readBinaryEvent(headers, rawBody, nowMs);
  const body = parseJson(rawBody);
  if (isFields(body)) {
    if (Object.hasOwn(body, 'message')) return readEnvelope(body, '', { nowMs });
    if (isLegacyEvent(body)) return readLegacyEvent(body, nowMs);
  }
  throw notFromPubsub(unknownBody(rawBody, body));
}

/** A wrapped push that has the metadata headers as well: the body holds the message of that very ID. */
function sameMessageInBody(headers: Headers, rawBody: Uint8Array): Fields | undefined {
  const id = headerMessageId(headers);
  if (id === undefined || mediaType(headers) !== 'application/json') return undefined;
  const body = parseJson(rawBody);
  if (!isFields(body) || !isFields(body['message'])) return undefined;
  const { messageId, message_id } = body['message'];
  return messageId === id || message_id === id ? body : undefined;
}

function unknownBody(rawBody: Uint8Array, body: unknown): string {
  const expected =
    'accepted: a Pub/Sub push {"message":{…},"subscription":"…"} or a CloudEvent that holds one';
  if (rawBody.length === 0) return `the body is empty; ${expected}`;
  if (isFields(body)) return `the body is JSON without a "message"; ${expected}`;
  return `the body is not a JSON object; ${expected}; for a push without wrapper enable write_metadata`;
}
