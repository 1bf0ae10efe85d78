/**
 * CloudEvents that carry a Pub/Sub message: binary (the event in `ce-` headers, as Eventarc sends them) and
 * structured (everything in one JSON object). The data of either is the body of a wrapped push.
 */
import type { Message } from '../message.ts';
import { readEnvelope, readTime } from './envelope.ts';
import { decodeBase64, type Fields, invalidBody, isFields, parseJson, shown, typeName } from './fields.ts';
import { type Headers, mediaType } from './http-request.ts';

/** https://github.com/googleapis/google-cloudevents (`MessagePublishedData`). */
const EVENT_TYPE = 'google.cloud.pubsub.topic.v1.messagePublished';
const STRUCTURED = 'application/cloudevents';

export const isBinaryEvent = (headers: Headers): boolean =>
  headers.has('ce-type') || headers.has('ce-id') || headers.has('ce-specversion');

export const isStructuredEvent = (headers: Headers): boolean => mediaType(headers).startsWith(STRUCTURED);

export function readBinaryEvent(headers: Headers, rawBody: Uint8Array, nowMs: number): Message {
  checkType(headers.get('ce-type'), 'header ce-type');
  const body = parseJson(rawBody);
  if (!isFields(body)) throw invalidBody('the body', 'of a CloudEvent is not a JSON object in UTF-8');
  return readEnvelope(body, '', { nowMs, eventMs: readTime(headers.get('ce-time'), 'header ce-time') });
}

export function readStructuredEvent(headers: Headers, rawBody: Uint8Array, nowMs: number): Message {
  if (mediaType(headers) !== `${STRUCTURED}+json`) {
    throw invalidBody('header content-type', `is ${shown(mediaType(headers))}; accepted: ${STRUCTURED}+json`);
  }
  const event = parseJson(rawBody);
  if (!isFields(event)) throw invalidBody('the body', 'of a CloudEvent is not a JSON object in UTF-8');
  checkType(event['type'], 'type');
  const eventMs = readTime(event['time'] ?? undefined, 'time');
  return readEnvelope(eventData(event), 'data.', { nowMs, eventMs });
}

function eventData(event: Fields): Fields {
  const { data, data_base64: encoded } = event;
  const value = encoded === undefined ? data : parseJson(decodeBase64(encoded, 'data_base64'));
  if (isFields(value)) return value;
  if (encoded !== undefined) throw invalidBody('data_base64', 'does not hold a JSON object in UTF-8');
  throw invalidBody('data', `is ${typeName(data)}; accepted: an object with a message`);
}

function checkType(type: unknown, path: string): void {
  if (type !== EVENT_TYPE) throw invalidBody(path, `is ${shown(type)}; accepted: ${EVENT_TYPE}`);
}
