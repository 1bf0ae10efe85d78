/**
 * Push without a wrapper: the body is the message's data, its attributes are HTTP headers, and with `write_metadata`
 * the message's own fields are `x-goog-pubsub-` headers
 * (https://cloud.google.com/pubsub/docs/payload-unwrapping).
 *
 * What HTTP takes away cannot be given back: header names have no case, so an attribute `tenantId` arrives as
 * `tenantid`. The names of the wire contract are known and get their case again. Attributes that are called like a
 * header of the transport or of the platform (`content-type`, `x-goog-…`, `authorization`, …) are not read: they
 * cannot be distinguished from the real ones, and a publisher must not be able to pass for the platform.
 */
import { ATTRIBUTE } from '../attributes.ts';
import type { Attributes, Message } from '../message.ts';
import { delivery, readTime } from './envelope.ts';
import { invalidBody, optionalText } from './fields.ts';
import type { Headers } from './http-request.ts';
import { publishTimeOf } from './publish-time.ts';

const PREFIX = 'x-goog-pubsub-';

/** Headers of HTTP, of proxies and of Google's front ends. */
const TRANSPORT: ReadonlySet<string> = new Set(
  (
    'accept accept-charset accept-encoding accept-language authorization cache-control connection ' +
    'content-encoding content-length content-type cookie date expect forwarded from function-execution-id host ' +
    'keep-alive origin pragma proxy-authorization proxy-connection referer te traceparent tracestate trailer ' +
    'transfer-encoding upgrade user-agent via'
  ).split(' '),
);
const PLATFORM =
  /^(x-goog-|x-google-|x-forwarded-|x-appengine-|x-serverless-|x-cloud-|x-cloudtasks-|x-envoy-|sec-fetch-|:)/;

const CONTRACT = new Map<string, string>(Object.values(ATTRIBUTE).map((name) => [name.toLowerCase(), name]));

export const isUnwrapped = (headers: Headers): boolean =>
  [...headers.keys()].some((name) => name.startsWith(PREFIX));

/** The ID that the headers give, where they give one. */
export const headerMessageId = (headers: Headers): string | undefined => headers.get(`${PREFIX}message-id`);

export function readUnwrapped(headers: Headers, rawBody: Uint8Array, nowMs: number): Message {
  const text = (name: string): string | undefined => optionalText(headers.get(name), `header ${name}`);
  const id = text(`${PREFIX}message-id`);
  if (id === undefined) throw invalidBody(`header ${PREFIX}message-id`, 'is missing; accepted: a message ID');
  const orderingKey = text(`${PREFIX}ordering-key`) ?? text('x-goog-ordering-key');
  const publishTime = `${PREFIX}publish-time`;
  return {
    id,
    data: Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength),
    attributes: headerAttributes(headers),
    ...publishTimeOf([readTime(text(publishTime), `header ${publishTime}`)], nowMs),
    ...(orderingKey !== undefined && { orderingKey: utf8(orderingKey) }),
    ...delivery(headers.get(`${PREFIX}delivery-attempt`), text(`${PREFIX}subscription-name`)),
  };
}

/** Every header that is neither the transport's nor the platform's. */
export function headerAttributes(headers: Headers): Attributes {
  const attributes = [...headers].filter(([name]) => !TRANSPORT.has(name) && !PLATFORM.test(name));
  return Object.fromEntries(attributes.map(([name, value]) => [CONTRACT.get(name) ?? name, utf8(value)]));
}

/** HTTP stacks read header bytes as Latin-1. Where the bytes are UTF-8, that is what the attribute was. */
function utf8(value: string): string {
  if (!/[\u0080-\u00ff]/.test(value) || /[\u0100-\uffff]/.test(value)) return value;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(value, 'latin1'));
  } catch {
    return value;
  }
}
