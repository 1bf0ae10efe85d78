/**
 * The environment of a function, read once and validated before it serves anything. An error names the variable,
 * its value and what is accepted; the process does not start with a guess.
 */
import type { Duration } from 'pubsub-guarantees';
import {
  bad,
  badSecret,
  choice,
  duration,
  type Emulators,
  emulators,
  type Environment,
  firestoreNames,
  fullName,
  maxBytesInFlight,
  optional,
  project as projectOf,
  required,
  topic,
} from 'pubsub-guarantees/environment';
import { type DelayConfig, delayConfig } from './delay-config.ts';
import { checkLimits } from './limits.ts';
import { type OrderConfig, orderConfig } from './order-config.ts';
import { type OutboxConfig, outboxConfig } from './outbox-config.ts';
import { type SagaConfig, sagaConfig } from './saga-config.ts';
import { type WakeConfig, wakeConfig } from './wake-config.ts';

const FUNCTION_NAMES = ['dedup', 'delay', 'fifo', 'pipeline', 'saga'] as const;
type FunctionName = (typeof FUNCTION_NAMES)[number];

export type DedupConfig = Readonly<{
  lease: Duration;
  retention: Duration;
  onConflict: 'deadLetter' | 'ack' | 'process';
  onStoreUnavailable: 'retry' | 'process';
  redisUrl?: string;
  /** How the names of keys in Redis begin. Absent: as the collections' prefix says. */
  redisPrefix?: string;
}>;

export type Config = Readonly<{
  name: FunctionName;
  project: string;
  consumer: string;
  /** The subscription, where it is configured; otherwise each message's own. */
  source?: string;
  /** Where messages are forwarded. Absent for `saga`, whose steps name their topics. */
  targetTopic?: string;
  deadLetterTopic: string;
  /** How long one delivery may take: below the subscription's ack deadline and the function's own timeout. */
  timeout: Duration;
  firestore: Readonly<{ database: string; collectionPrefix: string }>;
  /** Local servers in place of Google's. */
  emulators: Emulators;
  order: OrderConfig;
  dedup: DedupConfig | undefined;
  delay: DelayConfig | undefined;
  outbox: OutboxConfig;
  wake: WakeConfig | undefined;
  saga?: SagaConfig;
  /** The platform's limit on a request, where the deployment has set the variable. */
  functionTimeout?: Duration;
  /** Whether the subscription and Redis are asked for their settings, to say which windows do not fit. */
  checkWindows: boolean;
  /** Whether attributes that only look like those of the contract are dead letters. */
  strictAttributes: boolean;
  /** Whether every delivery gets a line in the log. */
  debug: boolean;
  /** How many bytes of messages the process has in flight at most. */
  maxBytesInFlight: number;
}>;

/** Where a delayed message comes back in, for those that delay. */
const DELAYED_TO: Readonly<Partial<Record<FunctionName, 'TARGET_TOPIC' | 'SOURCE_TOPIC' | 'SAGA_TOPIC'>>> = {
  delay: 'TARGET_TOPIC',
  pipeline: 'SOURCE_TOPIC',
  saga: 'SAGA_TOPIC',
};
const CLAIMING: readonly FunctionName[] = ['dedup', 'pipeline', 'saga'];

/** Throws ConfigError. */
export function readConfig(environment: Environment, target: string | undefined): Config {
  const config = settingsOf(environment, target);
  checkLimits(config);
  return config;
}

function settingsOf(environment: Environment, target: string | undefined): Config {
  const name = FUNCTION_NAMES.find((known) => known === target);
  if (name === undefined) throw bad('FUNCTION_TARGET', target, `one of ${FUNCTION_NAMES.join(', ')}`);
  const local = emulators(environment);
  const project = projectOf(environment);
  const saga = name === 'saga' ? sagaConfig(environment, project) : undefined;
  const targetTopic = saga === undefined ? topic(environment, project, 'TARGET_TOPIC') : undefined;
  const deadLetterTopic = topic(environment, project, 'DEAD_LETTER_TOPIC');
  const delayedTo = DELAYED_TO[name];
  const delay = delayedTo && delayConfig(environment, project, delayedTo);
  distinct({
    ...(targetTopic !== undefined && { TARGET_TOPIC: targetTopic }),
    DEAD_LETTER_TOPIC: deadLetterTopic,
    ...(delay !== undefined && delayedTo !== 'TARGET_TOPIC' && { [String(delayedTo)]: delay.topic }),
  });
  const source = optional(environment, 'SOURCE_SUBSCRIPTION');
  const order = orderConfig(environment);
  const hasStreams = name === 'fifo' || name === 'pipeline';
  return {
    name,
    project,
    consumer: optional(environment, 'CONSUMER') ?? optional(environment, 'K_SERVICE') ?? name,
    ...(source !== undefined && {
      source: fullName(project, 'subscriptions', 'SOURCE_SUBSCRIPTION', source),
    }),
    ...(targetTopic !== undefined && { targetTopic }),
    deadLetterTopic,
    timeout: duration(environment, 'HANDLER_TIMEOUT', '60s', { least: '1s' }),
    firestore: firestoreNames(environment),
    emulators: local,
    order,
    outbox: outboxConfig(environment, hasStreams && order.start === 'counter', { hasRows: name === 'saga' }),
    wake: wakeConfig(environment, project, hasStreams),
    dedup: CLAIMING.includes(name) ? dedupConfig(environment) : undefined,
    ...(saga !== undefined && { saga }),
    delay,
    ...(optional(environment, 'FUNCTION_TIMEOUT') !== undefined && {
      functionTimeout: duration(environment, 'FUNCTION_TIMEOUT', '60s', { least: '1s' }),
    }),
    checkWindows: choice(environment, 'CHECK_WINDOWS', ['on', 'off']) === 'on',
    strictAttributes: choice(environment, 'STRICT_ATTRIBUTES', ['off', 'on']) === 'on',
    debug: choice(environment, 'LOG_LEVEL', ['info', 'debug']) === 'debug',
    maxBytesInFlight: maxBytesInFlight(environment),
  };
}

function dedupConfig(environment: Environment): DedupConfig {
  const lease = duration(environment, 'DEDUP_LEASE', '30s', { least: '1s' });
  const retention = duration(environment, 'DEDUP_RETENTION', '8d');
  const store = optional(environment, 'DEDUP_STORE') ?? 'firestore';
  if (store !== 'firestore' && store !== 'redis') throw bad('DEDUP_STORE', store, 'firestore or redis');
  const onConflict = choice(environment, 'DEDUP_ON_CONFLICT', ['deadLetter', 'ack', 'process']);
  const onStoreUnavailable = choice(environment, 'DEDUP_ON_STORE_UNAVAILABLE', ['retry', 'process']);
  const settings = { lease, retention, onConflict, onStoreUnavailable };
  const redisPrefix = optional(environment, 'REDIS_PREFIX');
  if (store === 'firestore') {
    if (redisPrefix !== undefined) throw bad('REDIS_PREFIX', redisPrefix, 'only with DEDUP_STORE=redis');
    return settings;
  }
  if (redisPrefix !== undefined && !/^\S{1,100}$/.test(redisPrefix)) {
    throw bad('REDIS_PREFIX', redisPrefix, 'at most 100 characters without a space');
  }
  const redisUrl = required(environment, 'REDIS_URL', 'redis://host:port or rediss://host:port');
  if (!/^rediss?:\/\/.+/.test(redisUrl) || !URL.canParse(redisUrl)) {
    // The value may hold a password: it is not repeated.
    throw badSecret('REDIS_URL', 'not a Redis URL', 'redis://host:port or rediss://host:port');
  }
  return { ...settings, redisUrl, ...(redisPrefix !== undefined && { redisPrefix }) };
}

/**
 * A message that is published to where it came from comes round again: for ever, or, once it has been seen, to be
 * dropped as its own duplicate. A dead letter among the messages is taken for one.
 */
function distinct(topics: Readonly<Record<string, string>>): void {
  const names = Object.keys(topics);
  for (const [index, variable] of names.entries()) {
    const twin = names.slice(0, index).find((earlier) => topics[earlier] === topics[variable]);
    if (twin !== undefined) throw bad(variable, topics[variable], `another topic than ${twin}`);
  }
}
