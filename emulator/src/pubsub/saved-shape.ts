/**
 * The shape of the saved state of the Pub/Sub server (see saved.ts for its meaning): which fields there are, and of what
 * kind. What they say together is checked in saved-parse.ts.
 */
import { POLICY } from '../iam/saved-policy.ts';
import { INGESTION } from './ingestion.ts';
import {
  bool,
  bytes,
  duration,
  list,
  oneOf,
  optional,
  type Read,
  record,
  refused,
  strings,
  text,
  time,
  whole,
} from '../saved-json.ts';

const id: Read<string> = (value, place) => {
  if (typeof value === 'string' && /^[1-9]\d{0,18}$/.test(value)) return value;
  throw refused(place, value, 'a string of 1 to 19 digits');
};
const ids = optional(list(id), []);
const labels = optional(strings, {});
const count = optional(whole(0, Number.MAX_SAFE_INTEGER), 0);
const flag = optional(bool, false);

const TOPIC = record({
  name: text,
  labels,
  messageRetentionDuration: optional(duration, null),
  schemaSettings: optional(
    record({
      schema: text,
      encoding: oneOf('JSON', 'BINARY'),
      firstRevisionId: optional(text, ''),
      lastRevisionId: optional(text, ''),
    }),
    null,
  ),
  messageStoragePolicy: optional(
    record({ allowedPersistenceRegions: list(text), enforceInTransit: flag }),
    null,
  ),
  kmsKeyName: optional(text, ''),
  ingestionDataSourceSettings: INGESTION,
  retained: ids,
  iamPolicy: POLICY,
});

const SCHEMA = record({
  name: text,
  iamPolicy: POLICY,
  revisions: list(
    record({
      revisionId: text,
      type: oneOf('AVRO', 'PROTOCOL_BUFFER'),
      definition: text,
      revisionCreateTime: time,
    }),
  ),
});

const PUSH_CONFIG = record({
  pushEndpoint: text,
  attributes: labels,
  oidcToken: optional(record({ serviceAccountEmail: text, audience: optional(text, '') }), null),
  pubsubWrapper: optional(record({}), null),
  noWrapper: optional(record({ writeMetadata: flag }), null),
});

const SUBSCRIPTION = record({
  name: text,
  topic: text,
  pushConfig: optional(PUSH_CONFIG, null),
  ackDeadlineSeconds: count,
  messageRetentionDuration: optional(duration, null),
  labels,
  enableMessageOrdering: flag,
  expirationPolicy: optional(record({ ttl: optional(duration, null) }), null),
  deadLetterPolicy: optional(record({ deadLetterTopic: text, maxDeliveryAttempts: count }), null),
  retryPolicy: optional(
    record({ minimumBackoff: optional(duration, null), maximumBackoff: optional(duration, null) }),
    null,
  ),
  filter: optional(text, ''),
  retainAckedMessages: flag,
  detached: flag,
  enableExactlyOnceDelivery: flag,
  unacknowledged: optional(list(record({ messageId: id, failures: count, countedFailures: count })), []),
  acknowledged: ids,
  idle: optional(duration, null),
  iamPolicy: POLICY,
});

const SNAPSHOT = record({
  name: text,
  topic: text,
  labels,
  expireTime: time,
  messages: ids,
  iamPolicy: POLICY,
});

export const MESSAGE = record({
  messageId: id,
  publishTime: time,
  data: optional(bytes, Buffer.alloc(0)),
  attributes: labels,
  orderingKey: optional(text, ''),
});

export const STATE = record({
  topics: optional(list(TOPIC), []),
  subscriptions: optional(list(SUBSCRIPTION), []),
  schemas: optional(list(SCHEMA), []),
  snapshots: optional(list(SNAPSHOT), []),
  messages: optional(list(MESSAGE), []),
  nextMessageId: optional(id, '1'),
});
