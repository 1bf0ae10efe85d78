/**
 * The published limits of a publish request, all in bytes: https://cloud.google.com/pubsub/quotas#resource_limits
 * A request is refused as a whole, before any of its messages is stored.
 */
import { invalidArgument } from '../grpc-server.ts';
import type { PubsubMessage } from './wire.ts';

const MAX_MESSAGES = 1000;
/** The stricter reading of "10 MB": it is what the real service names in its error. */
const MAX_REQUEST_BYTES = 10_000_000;
const MAX_ATTRIBUTES = 100;
const MAX_KEY_BYTES = 256;
const MAX_VALUE_BYTES = 1024;
const MAX_ORDERING_KEY_BYTES = 1024;
/** What Google's own clients set when they publish with tracing on; everything else with "goog" is reserved. */
const SET_BY_CLIENTS = 'googclient_traceparent';

const REFER = 'Refer to https://cloud.google.com/pubsub/quotas for more information.';

/** Data and attributes, which is what flow control and the size limit count. */
export function messageBytes(message: PubsubMessage): number {
  let bytes = message.data.length;
  for (const [key, value] of Object.entries(message.attributes)) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  return bytes;
}

/** Throws INVALID_ARGUMENT, naming what is too large, empty or reserved. */
export function assertPublishable(messages: readonly PubsubMessage[]): void {
  if (messages.length === 0) throw invalidArgument('The publish request holds no messages.');
  if (messages.length > MAX_MESSAGES) throw tooLarge('message_count', messages.length, MAX_MESSAGES);
  const [{ orderingKey } = { orderingKey: '' }] = messages;
  let bytes = 0;
  for (const message of messages) {
    assertMessage(message);
    if (message.orderingKey !== orderingKey) {
      throw invalidArgument(
        'In a single publish request all messages must have no ordering key or they must all have the same ordering key.',
      );
    }
    bytes += messageBytes(message);
  }
  if (bytes > MAX_REQUEST_BYTES) throw tooLarge('request_size', bytes, MAX_REQUEST_BYTES);
}

function assertMessage({ data, attributes, orderingKey }: PubsubMessage): void {
  const entries = Object.entries(attributes);
  if (data.length === 0 && entries.length === 0) {
    throw invalidArgument(
      'One or more messages in the publish request is empty. Each message must contain either non-empty data, or at least one attribute.',
    );
  }
  if (entries.length > MAX_ATTRIBUTES) throw tooLarge('attribute_count', entries.length, MAX_ATTRIBUTES);
  for (const [key, value] of entries) {
    if (key === '') throw invalidArgument('An attribute key in the request is empty.');
    assertBytes(`The key of the attribute "${shown(key)}" in the request`, key, MAX_KEY_BYTES);
    assertBytes(`The value of the attribute "${shown(key)}" in the request`, value, MAX_VALUE_BYTES);
    if (key.toLowerCase().startsWith('goog') && key !== SET_BY_CLIENTS) {
      throw invalidArgument(
        `The attribute key "${key}" in the request is reserved: keys must not begin with "goog".`,
      );
    }
  }
  assertBytes('The ordering key in the request', orderingKey, MAX_ORDERING_KEY_BYTES);
}

function assertBytes(what: string, text: string, limit: number): void {
  const size = Buffer.byteLength(text);
  if (size > limit) {
    throw invalidArgument(
      `${what} is too long. The size is ${size} bytes, but the maximum allowed is ${limit}. ${REFER}`,
    );
  }
}

const shown = (key: string): string => (key.length > 64 ? `${key.slice(0, 64)}…` : key);

const tooLarge = (what: string, value: number, limit: number): Error =>
  invalidArgument(
    `The value for ${what} is too large. You passed ${value} in the request, but the maximum value is ${limit}. ${REFER}`,
  );
