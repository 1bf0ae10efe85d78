/**
 * One message as the HTTP request that a push endpoint gets.
 * Formats: https://cloud.google.com/pubsub/docs/push#receive_push and https://cloud.google.com/pubsub/docs/payload-unwrapping
 */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { Lease } from './lease.ts';
import type { PubsubMessage, PushConfig } from './wire.ts';

export type PushRequest = Readonly<{ body: Buffer; headers: Readonly<Record<string, string>> }>;

/** Headers that frame the request or belong to one connection: an attribute must not be able to set them. */
const FRAMING = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export function pushRequest(lease: Lease, config: PushConfig, subscription: string): PushRequest {
  const { entry, deliveryAttempt } = lease;
  const publishTime = new Date(entry.publishTimeMs).toISOString();
  return config.noWrapper
    ? unwrapped(entry.message, publishTime, subscription, config.noWrapper.writeMetadata)
    : wrapped(entry.message, publishTime, subscription, deliveryAttempt);
}

function wrapped(
  { data, attributes, messageId, orderingKey }: PubsubMessage,
  publishTime: string,
  subscription: string,
  deliveryAttempt: number,
): PushRequest {
  // As JSON of the proto: what is empty is left out.
  const message = {
    ...(Object.keys(attributes).length > 0 && { attributes }),
    ...(data.length > 0 && { data: data.toString('base64') }),
    messageId,
    message_id: messageId,
    ...(orderingKey !== '' && { orderingKey }),
    publishTime,
    publish_time: publishTime,
  };
  const body = Buffer.from(
    JSON.stringify({ ...(deliveryAttempt > 0 && { deliveryAttempt }), message, subscription }),
  );
  return { body, headers: framed(body, { 'content-type': 'application/json' }) };
}

function unwrapped(
  { data, attributes, messageId, orderingKey }: PubsubMessage,
  publishTime: string,
  subscription: string,
  writeMetadata: boolean,
): PushRequest {
  // Without a type body parsers skip the body; an attribute may name a better one.
  const headers: Record<string, string> = { 'content-type': 'application/octet-stream' };
  if (writeMetadata) {
    for (const [key, value] of Object.entries(attributes)) {
      if (isHeader(key, value)) headers[key.toLowerCase()] = value;
    }
    headers['x-goog-pubsub-message-id'] = messageId;
    headers['x-goog-pubsub-publish-time'] = publishTime;
    headers['x-goog-pubsub-subscription-name'] = subscription;
    delete headers['x-goog-pubsub-ordering-key'];
    if (orderingKey !== '' && isHeader('x-goog-pubsub-ordering-key', orderingKey)) {
      headers['x-goog-pubsub-ordering-key'] = orderingKey;
    }
  }
  return { body: data, headers: framed(data, headers) };
}

const framed = (body: Buffer, headers: Record<string, string>): Record<string, string> => ({
  ...headers,
  'content-length': String(body.length),
  'user-agent': headers['user-agent'] ?? 'CloudPubSub-Google',
});

/** An attribute that is no legal header is left out of the unwrapped form. */
function isHeader(key: string, value: string): boolean {
  if (FRAMING.has(key.toLowerCase())) return false;
  try {
    validateHeaderName(key);
    validateHeaderValue(key, value);
    return true;
  } catch {
    return false;
  }
}
