/**
 * Reading single variables of an environment, for the deployables. Pure: the caller passes the environment. Every
 * refusal is a ConfigError that names the variable, its value and what is accepted.
 */
import { bytesFor } from './receive/bytes-in-flight.ts';
import { type Duration, toMilliseconds } from './duration.ts';
import { type ConfigError, refusedAs } from './errors.ts';
import { anyText, hostAndPort, isObject, listOf, text } from './options.ts';
import { shownValue } from './shown-value.ts';

export const DEFAULT_COLLECTION_PREFIX = 'pubsub-guarantees';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that are set to nothing count as not set: that is what a template with an empty value leaves. */
export function optional(environment: Environment, variable: string): string | undefined {
  isObject('environment', environment);
  text('variable', variable);
  const value = environment[variable]?.trim();
  return value === '' ? undefined : value;
}

export function required(environment: Environment, variable: string, accepted: string): string {
  const value = optional(environment, variable);
  if (value === undefined) throw bad(variable, value, accepted);
  return value;
}

export function topic(environment: Environment, projectId: string, variable: string): string {
  return fullName(
    projectId,
    'topics',
    variable,
    required(environment, variable, 'a topic ID or projects/P/topics/T'),
  );
}

export function fullName(
  project: string,
  kind: 'topics' | 'subscriptions',
  variable: string,
  value: string,
): string {
  for (const given of [project, kind, value]) anyText('name', given);
  if (new RegExp(`^projects/[^/\\s]+/${kind}/[^/\\s]+$`).test(value)) return value;
  if (!/^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$/.test(value)) {
    throw bad(
      variable,
      value,
      `an ID of 3 to 255 characters that begins with a letter, or projects/P/${kind}/ID`,
    );
  }
  return `projects/${project}/${kind}/${value}`;
}

/** One of a few words; the first one is the default. */
export function choice<Value extends string>(
  environment: Environment,
  variable: string,
  accepted: readonly [Value, ...Value[]],
): Value {
  listOf(text, 'a list of words')('accepted', accepted);
  const value = optional(environment, variable) ?? accepted[0];
  const known = accepted.find((candidate) => candidate === value);
  if (known === undefined) throw bad(variable, value, accepted.join(' or '));
  return known;
}

export function duration(
  environment: Environment,
  variable: string,
  standard: Duration,
  limits: Readonly<{ least?: Duration; most?: Duration }> = {},
): Duration {
  const { least = '1ms', most } = limits;
  const value = optional(environment, variable) ?? standard;
  const milliseconds = toMilliseconds(value, variable);
  if (milliseconds < toMilliseconds(least)) throw bad(variable, value, `at least ${least}`);
  if (most !== undefined && milliseconds > toMilliseconds(most))
    throw bad(variable, value, `at most ${most}`);
  return value as Duration;
}

/**
 * Addresses of the emulators that Google's clients read from the environment by themselves, and of the Cloud Tasks one,
 * which the program passes on. Absent: Google's service.
 */
export type Emulators = Readonly<{ pubsub?: string; firestore?: string; tasks?: string }>;

/**
 * `PUBSUB_EMULATOR_HOST`, `FIRESTORE_EMULATOR_HOST` and `CLOUD_TASKS_EMULATOR_HOST`. An address that the clients cannot
 * use costs each delivery a time-out that does not name it; and a deployed instance that is led to an emulator publishes
 * nothing and says nothing. Both are refused.
 */
export function emulators(environment: Environment): Emulators {
  const pubsub = emulatorHost(environment, 'PUBSUB_EMULATOR_HOST');
  const firestore = emulatorHost(environment, 'FIRESTORE_EMULATOR_HOST');
  const tasks = emulatorHost(environment, 'CLOUD_TASKS_EMULATOR_HOST');
  return {
    ...(pubsub !== undefined && { pubsub }),
    ...(firestore !== undefined && { firestore }),
    ...(tasks !== undefined && { tasks }),
  };
}

function emulatorHost(environment: Environment, variable: string): string | undefined {
  isObject('environment', environment);
  // As the clients read it: a space belongs to the value.
  const value = environment[variable];
  if (value === undefined || value === '') return undefined;
  hostAndPort(variable, value);
  const deployed = DEPLOYED.find((name) => optional(environment, name) !== undefined);
  if (deployed === undefined) return value;
  const set = `${deployed} is ${JSON.stringify(optional(environment, deployed))}`;
  throw bad(variable, value, `not set on a deployed instance, which this is (${set})`);
}

/**
 * What only an instance on Google's platforms has: https://cloud.google.com/run/docs/container-contract#env-vars and
 * https://cloud.google.com/appengine/docs/standard/nodejs/runtime#environment_variables. GAE_ENV and GAE_SERVICE are
 * not among them: a republisher beside the local stack has them too.
 */
const DEPLOYED = ['K_SERVICE', 'K_REVISION', 'GAE_INSTANCE', 'GAE_DEPLOYMENT_ID', 'GAE_VERSION'];

/** The e-mail address of a service account. */
export function email(variable: string, value: string, accepted = 'the e-mail of a service account'): string {
  text('value', value);
  if (!/^[^@\s]+@[^@\s]+$/.test(value)) throw bad(variable, value, accepted);
  return value;
}

/**
 * `DELAY_QUEUE`, or `DELAY_QUEUES` with several of them and a comma between, as full names: each given as one, or as
 * an ID together with `TASKS_LOCATION`. At least one; their order means nothing.
 */
export function delayQueues(environment: Environment, project: string): readonly string[] {
  const several = optional(environment, 'DELAY_QUEUES');
  if (several === undefined) {
    const accepted = `${QUEUE_FORMS}, or several in DELAY_QUEUES`;
    return [queueName(environment, project, 'DELAY_QUEUE', required(environment, 'DELAY_QUEUE', accepted))];
  }
  const one = optional(environment, 'DELAY_QUEUE');
  if (one !== undefined) throw bad('DELAY_QUEUE', one, 'not together with DELAY_QUEUES');
  return queueNames(environment, project, 'DELAY_QUEUES', several);
}

/** `DRAINING_QUEUES`: queues that nothing new is sent to, and that still call. Empty when it is not set. */
export function drainingQueues(environment: Environment, project: string): readonly string[] {
  const several = optional(environment, 'DRAINING_QUEUES');
  return several === undefined ? [] : queueNames(environment, project, 'DRAINING_QUEUES', several);
}

function queueNames(
  environment: Environment,
  project: string,
  variable: string,
  several: string,
): readonly string[] {
  const names = several.split(',').map((value) => queueName(environment, project, variable, value.trim()));
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw bad(variable, several, `each queue once, and not ${twice} twice`);
  return names;
}

/** One queue as its full name, given as that or as an ID together with `TASKS_LOCATION`. */
export const taskQueue = (environment: Environment, project: string, variable: string): string =>
  queueName(environment, project, variable, required(environment, variable, QUEUE_FORMS));

const QUEUE_FORMS = 'a queue ID together with TASKS_LOCATION, or projects/P/locations/L/queues/Q';

function queueName(environment: Environment, project: string, variable: string, value: string): string {
  if (/^projects\/[^/\s,]+\/locations\/[^/\s,]+\/queues\/[^/\s,]+$/.test(value)) return value;
  if (!/^[A-Za-z0-9-]{1,100}$/.test(value)) throw bad(variable, value, QUEUE_FORMS);
  const location = required(
    environment,
    'TASKS_LOCATION',
    `a region such as us-central1, or a full ${variable}`,
  );
  if (!/^[a-z0-9-]+$/.test(location)) throw bad('TASKS_LOCATION', location, 'a region such as us-central1');
  return `projects/${project}/locations/${location}/queues/${value}`;
}

/** `REPUBLISHER_SERVICE`, the ID of an App Engine service; undefined when it is not set. */
export function republisherService(environment: Environment): string | undefined {
  const value = optional(environment, 'REPUBLISHER_SERVICE');
  if (value !== undefined && !/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(value)) {
    throw bad('REPUBLISHER_SERVICE', value, "an App Engine service's ID");
  }
  return value;
}

/** `FIRESTORE_DATABASE`, and `COLLECTION_PREFIX`, with which the name of each collection begins. */
export const firestoreNames = (
  environment: Environment,
): Readonly<{ database: string; collectionPrefix: string }> => ({
  database: database(environment),
  collectionPrefix: collectionPrefix(environment),
});

function collectionPrefix(environment: Environment): string {
  const value = optional(environment, 'COLLECTION_PREFIX') ?? DEFAULT_COLLECTION_PREFIX;
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

export const isHttpUrl = (url: string): boolean =>
  typeof url === 'string' && URL.canParse(url) && /^https?:/.test(url);

/**
 * A URL that Cloud Tasks may be asked to call. It sends a token, so its HTTP targets are `https`
 * (https://cloud.google.com/tasks/docs/creating-http-target-tasks): it would refuse each task of another one, and every
 * delayed message would be a dead letter. A local server of Cloud Tasks (`CLOUD_TASKS_EMULATOR_HOST`) calls `http` too.
 */
export function calledUrl(environment: Environment, variable: string, value: string | undefined): string {
  const isLocal = optional(environment, 'CLOUD_TASKS_EMULATOR_HOST') !== undefined;
  if (value !== undefined && isHttpUrl(value) && (isLocal || value.startsWith('https:'))) return value;
  const accepted = isLocal ? 'an http or https URL' : 'an https URL, or http with CLOUD_TASKS_EMULATOR_HOST';
  throw bad(variable, value, accepted);
}

export function project(environment: Environment): string {
  const value = required(environment, 'GOOGLE_CLOUD_PROJECT', 'the project ID');
  if (/[\s/]/.test(value)) throw bad('GOOGLE_CLOUD_PROJECT', value, 'the project ID');
  return value;
}

/** ConfigError `INVALID_OPTION` whose path is the variable. */
export function bad(variable: string, value: string | undefined, accepted: string): ConfigError {
  const whole = typeof value === 'string' ? JSON.stringify(value) : shownValue(value);
  const shown = value === undefined ? 'not set' : whole;
  return refusedAs(variable, shown, accepted);
}

/** The same for a value that must not be repeated: `what` says what is wrong with it. */
export function badSecret(variable: string, what: string, accepted: string): ConfigError {
  for (const given of [variable, what, accepted]) anyText('name', given);
  return refusedAs(variable, what, accepted);
}

const MIB = 1_048_576;
/** What the modules deploy by default, for a platform that does not tell. */
const DEFAULT_MEMORY_BYTES = 512 * MIB;

/**
 * `MAX_BYTES_IN_FLIGHT`: how many bytes of messages a process may have in flight, in bytes. Default: what fits the
 * memory that the process has, which App Engine says in `GAE_MEMORY_MB` and others as a limit of the operating system.
 */
export function maxBytesInFlight(environment: Environment): number {
  const variable = 'MAX_BYTES_IN_FLIGHT';
  const value = optional(environment, variable);
  if (value === undefined) return bytesFor(memoryBytes(environment));
  if (!/^[0-9]{1,12}$/.test(value) || Number(value) < MIB) {
    throw bad(variable, value, `a whole number of bytes, at least ${MIB}`);
  }
  return Number(value);
}

function memoryBytes(environment: Environment): number {
  const onAppEngine = Number(optional(environment, 'GAE_MEMORY_MB'));
  if (onAppEngine > 0) return onAppEngine * 1_000_000;
  const limit = process.constrainedMemory();
  // Without a limit the answer is a number beyond all memory, or 0.
  return limit > 0 && limit < Number.MAX_SAFE_INTEGER ? limit : DEFAULT_MEMORY_BYTES;
}
