/**
 * One message as the HTTP request that a push endpoint gets.
 * Formats: https://cloud.google.com/pubsub/docs/push#receive_push and https://cloud.google.com/pubsub/docs/payload-unwrapping
 */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { Lease } from './lease.ts';
import type { PubsubMessage, PushConfig } from './wire.ts';

export type PushRequest = Readonly<{
  body: Buffer;
  headers: Readonly<Record<string, string>>;
  /** What the message has and the request cannot carry, each as the end of a log line. */
  left: readonly string[];
}>;

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
  return { body, headers: framed(body, { 'content-type': 'application/json' }), left: [] };
}

function unwrapped(
  { data, attributes, messageId, orderingKey }: PubsubMessage,
  publishTime: string,
  subscription: string,
  writeMetadata: boolean,
): PushRequest {
  const headers = new Map<string, string>();
  const left: string[] = [];
  /** `what` as a log line names it. */
  const add = (what: string, name: string, value: string): void => {
    const why = noHeader(name, value) ?? (headers.has(name.toLowerCase()) ? ANOTHER_CASE : undefined);
    if (why === undefined) headers.set(name.toLowerCase(), utf8Bytes(value));
    else left.push(`${what} is not among its headers: ${why}`);
  };
  if (writeMetadata) {
    for (const [name, value] of Object.entries(attributes)) {
      const what = `the attribute ${JSON.stringify(name)}`;
      if (METADATA.test(name)) left.push(`${what} is not among its headers: Pub/Sub’s own has that name`);
      else add(what, name, value);
    }
    headers.set('x-goog-pubsub-message-id', messageId);
    headers.set('x-goog-pubsub-publish-time', publishTime);
    headers.set('x-goog-pubsub-subscription-name', subscription);
    if (orderingKey !== '') add('the ordering key', 'x-goog-pubsub-ordering-key', orderingKey);
  }
  // Without a type body parsers skip the body; an attribute may name a better one.
  if (!headers.has('content-type')) headers.set('content-type', 'application/octet-stream');
  return { body: data, headers: framed(data, Object.fromEntries(headers)), left };
}

const framed = (body: Buffer, headers: Record<string, string>): Record<string, string> => ({
  ...headers,
  'content-length': String(body.length),
  'user-agent': headers['user-agent'] ?? 'CloudPubSub-Google',
});

const METADATA = /^x-goog-pubsub-(?:message-id|publish-time|subscription-name|ordering-key)$/i;
const ANOTHER_CASE = 'another attribute has the name in another case, which headers do not distinguish';

/** Node writes each character of a header as one byte; what it is given are the bytes of UTF-8. */
const utf8Bytes = (value: string): string => Buffer.from(value, 'utf8').toString('latin1');

/** Why this is no header (RFC 9110, section 5); undefined where it is one, and arrives as it is. */
function noHeader(name: string, value: string): string | undefined {
  if (FRAMING.has(name.toLowerCase())) return 'a header of that name belongs to the connection';
  try {
    validateHeaderName(name);
  } catch {
    return 'its name is no name of a header';
  }
  // A reader of headers takes them away, and so would make one value of two.
  if (/^[ \t]|[ \t]$/.test(value)) return 'its value begins or ends with a space or a tab';
  try {
    validateHeaderValue(name, utf8Bytes(value));
  } catch {
    return 'its value has a control character';
  }
  return undefined;
}
