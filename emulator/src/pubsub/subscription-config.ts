/**
 * What a subscription can be configured to: defaults, limits, and which of it may change later.
 * Limits and defaults are those of the service's own proto (google/pubsub/v1/pubsub.proto).
 */
import { invalidArgument } from '../grpc-server.ts';
import { parseFilter } from './filter.ts';
import { assertLabels } from './labels.ts';
import { assertName, generatedName, projectOf } from './names.ts';
import { pushConfig } from './push-config.ts';
import { maskedFields, refuseSet, snakeCase } from './refuse.ts';
import {
  durationMs,
  seconds,
  type DeadLetterPolicy,
  type Duration,
  type FieldMask,
  type RetryPolicy,
  type Subscription,
} from './wire.ts';

const NOT_CARRIED_OUT = [
  'bigqueryConfig',
  'cloudStorageConfig',
  'bigtableConfig',
  'detached',
  'messageTransforms',
  'tags',
];
const CHANGEABLE = [
  'pushConfig',
  'ackDeadlineSeconds',
  'messageRetentionDuration',
  'labels',
  'expirationPolicy',
  'deadLetterPolicy',
  'retryPolicy',
  'enableExactlyOnceDelivery',
  'retainAckedMessages',
] as const;

const ACK_DEADLINE_SECONDS = { default: 10, min: 10, max: 600 };
const RETENTION_SECONDS = { default: 604_800, min: 600, max: 2_678_400 };
const EXPIRATION_SECONDS = { default: 2_678_400, min: 86_400 };
const BACKOFF_SECONDS = { minimum: 10, maximum: 600, max: 600 };
const ATTEMPTS = { default: 5, min: 5, max: 100 };

/**
 * Throws INVALID_ARGUMENT outside the limits and UNIMPLEMENTED for what this server does not carry out.
 * `signs`: whether pushes can carry OIDC tokens.
 */
export function newSubscription(request: Subscription, signs: boolean): Subscription {
  assertName('topics', request.topic);
  const name = request.name || generatedName('subscriptions', projectOf(request.topic));
  assertName('subscriptions', name);
  refuseSet('subscription', request, NOT_CARRIED_OUT);
  assertLabels(request.labels);
  const checked: Subscription = {
    name,
    topic: request.topic,
    pushConfig: pushConfig(request.pushConfig, signs),
    ackDeadlineSeconds: ackDeadline(request.ackDeadlineSeconds),
    messageRetentionDuration: retention(request.messageRetentionDuration),
    labels: request.labels,
    enableMessageOrdering: request.enableMessageOrdering,
    expirationPolicy: expiration(request.expirationPolicy),
    deadLetterPolicy: deadLetterPolicy(request.deadLetterPolicy),
    retryPolicy: retryPolicy(request.retryPolicy),
    filter: filter(request.filter),
    enableExactlyOnceDelivery: request.enableExactlyOnceDelivery,
    retainAckedMessages: request.retainAckedMessages,
    detached: false,
    state: 'ACTIVE',
  };
  assertPullIfExactlyOnce(checked);
  assertOutlivesMessages(checked);
  return checked;
}

/** The subscription with the masked fields replaced. Errors as above; INVALID_ARGUMENT for what can never change. */
export function changedSubscription(
  current: Subscription,
  request: Subscription,
  mask: FieldMask | null,
  signs: boolean,
): Subscription {
  const fields = maskedFields(mask, 'UpdateSubscriptionRequest');
  const changeable: readonly string[] = CHANGEABLE;
  refuseSet(
    'subscription',
    request,
    NOT_CARRIED_OUT.filter((field) => fields.includes(field)),
  );
  for (const field of fields) {
    if (!changeable.includes(field) && !NOT_CARRIED_OUT.includes(field)) {
      throw invalidArgument(
        `Invalid update_mask provided in the UpdateSubscriptionRequest: '${snakeCase(field)}' cannot be updated.`,
      );
    }
  }
  const wanted = Object.fromEntries(Object.entries(request).filter(([field]) => fields.includes(field)));
  // The checks and defaults of a new subscription hold for the changed fields; its topic may be gone by now.
  const checked = newSubscription(
    { ...current, ...wanted, topic: 'projects/p/topics/unchanged', detached: false },
    signs,
  );
  const changes = CHANGEABLE.filter((field) => fields.includes(field)).map((field) => [
    field,
    checked[field],
  ]);
  return { ...current, ...Object.fromEntries(changes) };
}

/** Throws INVALID_ARGUMENT for exactly-once delivery by push, which the service does not offer either. */
export function assertPullIfExactlyOnce(config: Subscription): void {
  if (config.enableExactlyOnceDelivery && config.pushConfig !== null) {
    throw invalidArgument('Exactly-once delivery (enable_exactly_once_delivery) is not supported with push.');
  }
}

/**
 * "The expiration period must be longer than the message retention duration"
 * (https://cloud.google.com/pubsub/docs/create-subscription). Equal ones pass: the longest retention is the default period.
 */
function assertOutlivesMessages({ expirationPolicy, messageRetentionDuration }: Subscription): void {
  const ttl = expirationPolicy?.ttl;
  if (!ttl || messageRetentionDuration === null) return;
  const [ttlSeconds, retentionSeconds] = [ttl, messageRetentionDuration].map(
    (each) => durationMs(each) / 1000,
  );
  if (durationMs(ttl) >= durationMs(messageRetentionDuration)) return;
  throw invalidArgument(
    `Invalid expiration_policy.ttl (seconds): ${ttlSeconds}. It must not be below message_retention_duration, ${retentionSeconds}.`,
  );
}

function ackDeadline(value: number): number {
  if (value === 0) return ACK_DEADLINE_SECONDS.default;
  const { min, max } = ACK_DEADLINE_SECONDS;
  assertWithin('ack_deadline_seconds', value, min, max);
  return value;
}

function retention(value: Duration | null): Duration {
  if (value === null) return seconds(RETENTION_SECONDS.default);
  assertWithin(
    'message_retention_duration (seconds)',
    durationMs(value) / 1000,
    RETENTION_SECONDS.min,
    RETENTION_SECONDS.max,
  );
  return value;
}

function expiration(value: Subscription['expirationPolicy']): Subscription['expirationPolicy'] {
  if (value === null) return { ttl: seconds(EXPIRATION_SECONDS.default) };
  // A policy without a ttl means: never expires.
  if (value.ttl !== null) {
    assertWithin(
      'expiration_policy.ttl (seconds)',
      durationMs(value.ttl) / 1000,
      EXPIRATION_SECONDS.min,
      Infinity,
    );
  }
  return value;
}

function deadLetterPolicy(value: DeadLetterPolicy | null): DeadLetterPolicy | null {
  if (value === null) return null;
  assertName('topics', value.deadLetterTopic);
  const attempts = value.maxDeliveryAttempts === 0 ? ATTEMPTS.default : value.maxDeliveryAttempts;
  assertWithin('dead_letter_policy.max_delivery_attempts', attempts, ATTEMPTS.min, ATTEMPTS.max);
  return { deadLetterTopic: value.deadLetterTopic, maxDeliveryAttempts: attempts };
}

function retryPolicy(value: RetryPolicy | null): RetryPolicy | null {
  if (value === null) return null;
  const minimumBackoff = value.minimumBackoff ?? seconds(BACKOFF_SECONDS.minimum);
  const maximumBackoff = value.maximumBackoff ?? seconds(BACKOFF_SECONDS.maximum);
  const [min, max] = [durationMs(minimumBackoff) / 1000, durationMs(maximumBackoff) / 1000];
  assertWithin('retry_policy.minimum_backoff (seconds)', min, 0, BACKOFF_SECONDS.max);
  assertWithin('retry_policy.maximum_backoff (seconds)', max, 0, BACKOFF_SECONDS.max);
  if (min > max) {
    throw invalidArgument(`retry_policy.minimum_backoff (${min} s) is above maximum_backoff (${max} s)`);
  }
  return { minimumBackoff, maximumBackoff };
}

function filter(value: string): string {
  parseFilter(value);
  return value;
}

function assertWithin(field: string, value: number, min: number, max: number): void {
  if (!(value >= min && value <= max)) {
    throw invalidArgument(`Invalid ${field}: ${value}. It must be between ${min} and ${max}.`);
  }
}
