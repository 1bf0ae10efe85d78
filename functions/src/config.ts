/**
 * The environment of a function, read once and validated before it serves anything. An error names the variable,
 * its value and what is accepted; the process does not start with a guess.
 */
import { ConfigError, type Duration, toMilliseconds } from 'pubsub-guarantees';
import {
  bad,
  delayQueue,
  duration,
  email,
  type Environment,
  fullName,
  hostAndPort,
  isHttpUrl,
  optional,
  project as projectOf,
  republisherService,
  required,
  topic,
} from 'pubsub-guarantees/environment';

const FUNCTION_NAMES = ['dedup', 'delay', 'fifo', 'pipeline'] as const;
type FunctionName = (typeof FUNCTION_NAMES)[number];

export type DedupConfig = Readonly<{ lease: Duration; retention: Duration; redisUrl?: string }>;
export type DelayConfig = Readonly<{
  /** `projects/…/locations/…/queues/…` */
  queue: string;
  /** `projects/…/topics/…`: where a delayed message is published when its time has come. */
  topic: string;
  republisher: Readonly<{ service: string }> | Readonly<{ url: string; serviceAccount: string }>;
  /** `host:port` of a local Cloud Tasks server. */
  emulatorHost?: string;
}>;

export type Config = Readonly<{
  name: FunctionName;
  project: string;
  consumer: string;
  /** The subscription, where it is configured; otherwise each message's own. */
  source?: string;
  targetTopic: string;
  deadLetterTopic: string;
  /** How long one delivery may take: below the subscription's ack deadline and the function's own timeout. */
  timeout: Duration;
  firestore: Readonly<{ database: string; collectionPrefix: string }>;
  /** How long one process may hold a key without progress; above the time that one forward takes. */
  orderLease: Duration;
  dedup: DedupConfig | undefined;
  delay: DelayConfig | undefined;
  /** The platform's limit on a request, where somebody has told. */
  functionTimeout?: Duration;
  /** Whether the subscription and Redis are asked for their settings, to say which windows do not fit. */
  checkWindows: boolean;
  /** Whether every delivery gets a line in the log. */
  debug: boolean;
}>;

/** Throws ConfigError. */
export function readConfig(environment: Environment, target: string | undefined): Config {
  const name = FUNCTION_NAMES.find((known) => known === target);
  if (name === undefined) throw bad('FUNCTION_TARGET', target, `one of ${FUNCTION_NAMES.join(', ')}`);
  const project = projectOf(environment);
  const targetTopic = topic(environment, project, 'TARGET_TOPIC');
  const deadLetterTopic = topic(environment, project, 'DEAD_LETTER_TOPIC');
  const delay = name === 'delay' || name === 'pipeline' ? delayConfig(environment, project, name) : undefined;
  distinct({
    TARGET_TOPIC: targetTopic,
    DEAD_LETTER_TOPIC: deadLetterTopic,
    ...(name === 'pipeline' && delay !== undefined && { SOURCE_TOPIC: delay.topic }),
  });
  const source = optional(environment, 'SOURCE_SUBSCRIPTION');
  return {
    name,
    project,
    consumer: optional(environment, 'CONSUMER') ?? optional(environment, 'K_SERVICE') ?? name,
    ...(source !== undefined && {
      source: fullName(project, 'subscriptions', 'SOURCE_SUBSCRIPTION', source),
    }),
    targetTopic,
    deadLetterTopic,
    // `once` begins nothing with less than five seconds left, so less than twice that would begin nothing for long.
    // The longest ack deadline (https://cloud.google.com/pubsub/docs/lease-management): after it, it comes again.
    timeout: duration(environment, 'HANDLER_TIMEOUT', '60s', { least: '10s', most: '600s' }),
    firestore: {
      database: database(environment),
      collectionPrefix: collectionPrefix(environment),
    },
    orderLease: duration(environment, 'ORDER_LEASE', '60s', { least: '1s' }),
    dedup: name === 'dedup' || name === 'pipeline' ? dedupConfig(environment) : undefined,
    delay,
    ...(optional(environment, 'FUNCTION_TIMEOUT') !== undefined && {
      functionTimeout: duration(environment, 'FUNCTION_TIMEOUT', '60s', { least: '1s' }),
    }),
    checkWindows: choice(environment, 'CHECK_WINDOWS', ['on', 'off']) === 'on',
    debug: choice(environment, 'LOG_LEVEL', ['info', 'debug']) === 'debug',
  };
}

/** The first one is the default. */
function choice<Value extends string>(
  environment: Environment,
  variable: string,
  accepted: readonly [Value, ...Value[]],
): Value {
  const value = optional(environment, variable) ?? accepted[0];
  const known = accepted.find((candidate) => candidate === value);
  if (known === undefined) throw bad(variable, value, accepted.join(' or '));
  return known;
}

function dedupConfig(environment: Environment): DedupConfig {
  const lease = duration(environment, 'DEDUP_LEASE', '30s', { least: '1s' });
  const retention = duration(environment, 'DEDUP_RETENTION', '8d');
  if (toMilliseconds(lease) >= toMilliseconds(retention)) {
    throw bad('DEDUP_LEASE', lease, `a duration shorter than DEDUP_RETENTION (${retention})`);
  }
  const store = optional(environment, 'DEDUP_STORE') ?? 'firestore';
  if (store !== 'firestore' && store !== 'redis') throw bad('DEDUP_STORE', store, 'firestore or redis');
  if (store === 'firestore') return { lease, retention };
  const redisUrl = required(environment, 'REDIS_URL', 'redis://host:port or rediss://host:port');
  if (!/^rediss?:\/\/.+/.test(redisUrl) || !URL.canParse(redisUrl)) {
    // The value may hold a password: it is not repeated.
    throw new ConfigError(
      'INVALID_VARIABLE',
      'REDIS_URL is not a Redis URL; accepted: redis://host:port or rediss://host:port',
    );
  }
  return { lease, retention, redisUrl };
}

function delayConfig(environment: Environment, project: string, name: FunctionName): DelayConfig {
  const topicVariable = name === 'pipeline' ? 'SOURCE_TOPIC' : 'TARGET_TOPIC';
  const emulatorHost = hostAndPort(environment, 'CLOUD_TASKS_EMULATOR_HOST');
  return {
    queue: delayQueue(environment, project),
    topic: topic(environment, project, topicVariable),
    republisher: republisher(environment),
    ...(emulatorHost !== undefined && { emulatorHost }),
  };
}

function republisher(environment: Environment): DelayConfig['republisher'] {
  const url = optional(environment, 'REPUBLISHER_URL');
  const service = republisherService(environment);
  const account = optional(environment, 'REPUBLISHER_SERVICE_ACCOUNT');
  if (url === undefined) {
    if (account !== undefined) throw bad('REPUBLISHER_SERVICE_ACCOUNT', account, 'only with REPUBLISHER_URL');
    return { service: service ?? 'default' };
  }
  if (service !== undefined) throw bad('REPUBLISHER_SERVICE', service, 'not together with REPUBLISHER_URL');
  if (!isHttpUrl(url)) throw bad('REPUBLISHER_URL', url, 'an http or https URL');
  const accepted = 'the e-mail of the account that calls REPUBLISHER_URL';
  const variable = 'REPUBLISHER_SERVICE_ACCOUNT';
  return { url, serviceAccount: email(variable, required(environment, variable, accepted), accepted) };
}

function collectionPrefix(environment: Environment): string {
  const value = optional(environment, 'COLLECTION_PREFIX') ?? 'pubsub-guarantees';
  if (!/^[A-Za-z][A-Za-z0-9-]{0,99}$/.test(value)) {
    throw bad('COLLECTION_PREFIX', value, 'letters, digits and hyphens, beginning with a letter');
  }
  return value;
}

function database(environment: Environment): string {
  const value = optional(environment, 'FIRESTORE_DATABASE') ?? '(default)';
  if (!/^(\(default\)|[a-z][a-z0-9-]{0,62})$/.test(value)) {
    throw bad(
      'FIRESTORE_DATABASE',
      value,
      'a database ID: lower-case letters, digits and hyphens, or (default)',
    );
  }
  return value;
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
