/**
 * The environment of a function, read once and validated before it serves anything. An error names the variable,
 * its value and what is accepted; the process does not start with a guess.
 */
import { ConfigError, type Duration, toMilliseconds } from 'pubsub-guarantees';

const FUNCTION_NAMES = ['dedup', 'delay', 'fifo', 'pipeline'] as const;
type FunctionName = (typeof FUNCTION_NAMES)[number];

type Environment = Readonly<Record<string, string | undefined>>;

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
}>;

/** Throws ConfigError. */
export function readConfig(environment: Environment, target: string | undefined): Config {
  const name = FUNCTION_NAMES.find((known) => known === target);
  if (name === undefined) throw bad('FUNCTION_TARGET', target, `one of ${FUNCTION_NAMES.join(', ')}`);
  const project = required(environment, 'GOOGLE_CLOUD_PROJECT', 'the project ID');
  const source = optional(environment, 'SOURCE_SUBSCRIPTION');
  return {
    name,
    project,
    consumer: optional(environment, 'CONSUMER') ?? optional(environment, 'K_SERVICE') ?? name,
    ...(source !== undefined && {
      source: fullName(project, 'subscriptions', 'SOURCE_SUBSCRIPTION', source),
    }),
    targetTopic: topic(environment, project, 'TARGET_TOPIC'),
    deadLetterTopic: topic(environment, project, 'DEAD_LETTER_TOPIC'),
    timeout: duration(environment, 'HANDLER_TIMEOUT', '60s'),
    firestore: {
      database: optional(environment, 'FIRESTORE_DATABASE') ?? '(default)',
      collectionPrefix: collectionPrefix(environment),
    },
    orderLease: duration(environment, 'ORDER_LEASE', '60s'),
    dedup: name === 'dedup' || name === 'pipeline' ? dedupConfig(environment) : undefined,
    delay: name === 'delay' || name === 'pipeline' ? delayConfig(environment, project, name) : undefined,
  };
}

function dedupConfig(environment: Environment): DedupConfig {
  const lease = duration(environment, 'DEDUP_LEASE', '30s');
  const retention = duration(environment, 'DEDUP_RETENTION', '8d');
  if (toMilliseconds(lease) >= toMilliseconds(retention)) {
    throw bad('DEDUP_LEASE', lease, `a duration shorter than DEDUP_RETENTION (${retention})`);
  }
  const store = optional(environment, 'DEDUP_STORE') ?? 'firestore';
  if (store !== 'firestore' && store !== 'redis') throw bad('DEDUP_STORE', store, 'firestore or redis');
  if (store === 'firestore') return { lease, retention };
  const redisUrl = required(environment, 'REDIS_URL', 'redis://host:port or rediss://host:port');
  if (!/^rediss?:\/\/.+/.test(redisUrl)) {
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
  const emulatorHost = optional(environment, 'CLOUD_TASKS_EMULATOR_HOST');
  if (emulatorHost !== undefined && !/^[^:/]+:\d+$/.test(emulatorHost)) {
    throw bad('CLOUD_TASKS_EMULATOR_HOST', emulatorHost, 'host:port');
  }
  return {
    queue: queue(environment, project),
    topic: topic(environment, project, topicVariable),
    republisher: republisher(environment),
    ...(emulatorHost !== undefined && { emulatorHost }),
  };
}

function queue(environment: Environment, project: string): string {
  const accepted = 'a queue ID together with TASKS_LOCATION, or projects/P/locations/L/queues/Q';
  const value = required(environment, 'DELAY_QUEUE', accepted);
  if (/^projects\/[^/]+\/locations\/[^/]+\/queues\/[^/]+$/.test(value)) return value;
  if (!/^[A-Za-z0-9-]{1,100}$/.test(value)) throw bad('DELAY_QUEUE', value, accepted);
  const location = required(
    environment,
    'TASKS_LOCATION',
    'a region such as us-central1, or a full DELAY_QUEUE',
  );
  if (!/^[a-z0-9-]+$/.test(location)) throw bad('TASKS_LOCATION', location, 'a region such as us-central1');
  return `projects/${project}/locations/${location}/queues/${value}`;
}

function republisher(environment: Environment): DelayConfig['republisher'] {
  const url = optional(environment, 'REPUBLISHER_URL');
  if (url === undefined) return { service: optional(environment, 'REPUBLISHER_SERVICE') ?? 'default' };
  if (!URL.canParse(url) || !/^https?:/.test(url)) throw bad('REPUBLISHER_URL', url, 'an http or https URL');
  const serviceAccount = required(
    environment,
    'REPUBLISHER_SERVICE_ACCOUNT',
    'the e-mail of the account that calls REPUBLISHER_URL',
  );
  return { url, serviceAccount };
}

/** Variables that are set to nothing count as not set: that is what a template with an empty value leaves. */
function optional(environment: Environment, variable: string): string | undefined {
  const value = environment[variable]?.trim();
  return value === '' ? undefined : value;
}

function required(environment: Environment, variable: string, accepted: string): string {
  const value = optional(environment, variable);
  if (value === undefined)
    throw new ConfigError('MISSING_VARIABLE', `${variable} is not set; accepted: ${accepted}`);
  return value;
}

function topic(environment: Environment, project: string, variable: string): string {
  return fullName(
    project,
    'topics',
    variable,
    required(environment, variable, 'a topic ID or projects/P/topics/T'),
  );
}

function fullName(
  project: string,
  kind: 'topics' | 'subscriptions',
  variable: string,
  value: string,
): string {
  if (new RegExp(`^projects/[^/]+/${kind}/[^/]+$`).test(value)) return value;
  if (!/^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$/.test(value)) {
    throw bad(
      variable,
      value,
      `an ID of 3 to 255 characters that begins with a letter, or projects/P/${kind}/ID`,
    );
  }
  return `projects/${project}/${kind}/${value}`;
}

function duration(environment: Environment, variable: string, standard: Duration): Duration {
  const value = optional(environment, variable) ?? standard;
  if (toMilliseconds(value, variable) === 0) throw bad(variable, value, 'more than nothing');
  return value as Duration;
}

function collectionPrefix(environment: Environment): string {
  const value = optional(environment, 'COLLECTION_PREFIX') ?? 'pubsub-guarantees';
  if (!/^[A-Za-z][A-Za-z0-9-]{0,99}$/.test(value)) {
    throw bad('COLLECTION_PREFIX', value, 'letters, digits and hyphens, beginning with a letter');
  }
  return value;
}

function bad(variable: string, value: string | undefined, accepted: string): ConfigError {
  const shown = value === undefined ? 'not set' : `${JSON.stringify(value)}`;
  return new ConfigError('INVALID_VARIABLE', `${variable} is ${shown}; accepted: ${accepted}`);
}
