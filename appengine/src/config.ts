/**
 * The environment of the republisher, read once and validated before it serves anything. An error names the variable,
 * its value and what is accepted; the process does not start with a guess, and never without a proof of who calls.
 */
import { ConfigError } from 'pubsub-guarantees';
import type { Callers } from './auth.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export type Config = Readonly<{
  project: string;
  port: number;
  /** Loopback on the local stack; absent: all interfaces, as App Engine and Cloud Run want it. */
  host?: string;
  /** `projects/…/topics/…` */
  allowedTopics: readonly string[];
  deadLetterTopic: string;
  /** `projects/…/locations/…/queues/…`: where the next task of a delay beyond 30 days goes. */
  queue: string;
  /** This republisher, as the queue calls it. */
  target:
    | Readonly<{ appEngine: Readonly<{ service?: string }> }>
    | Readonly<{ url: string; serviceAccount: string; audience: string }>;
  callers: Callers;
  /** The queue's limit of attempts, where it has one. */
  maxAttempts?: number;
  /** `host:port` of a local Cloud Tasks server. */
  emulatorHost?: string;
}>;

/** Throws ConfigError. */
export function readConfig(environment: Environment): Config {
  const project = required(environment, 'GOOGLE_CLOUD_PROJECT', 'the project ID');
  if (/[\s/]/.test(project)) throw bad('GOOGLE_CLOUD_PROJECT', project, 'the project ID');
  const topics = required(environment, 'ALLOWED_TOPICS', 'topic IDs or full names, separated by commas');
  const maxAttempts = number(environment, 'QUEUE_MAX_ATTEMPTS', 1, 1_000_000);
  const emulatorHost = optional(environment, 'CLOUD_TASKS_EMULATOR_HOST');
  if (emulatorHost !== undefined && !isHostAndPort(emulatorHost)) {
    throw bad('CLOUD_TASKS_EMULATOR_HOST', emulatorHost, 'host:port');
  }
  const callers = readCallers(environment);
  return {
    project,
    port: number(environment, 'PORT', 0, 65_535) ?? 8080,
    ...(emulatorHost !== undefined && { host: '127.0.0.1', emulatorHost }),
    allowedTopics: topics.split(',').map((name) => topic(project, 'ALLOWED_TOPICS', name.trim())),
    deadLetterTopic: topic(
      project,
      'DEAD_LETTER_TOPIC',
      required(environment, 'DEAD_LETTER_TOPIC', 'a topic ID or projects/P/topics/T'),
    ),
    queue: queue(environment, project),
    target: target(environment, callers),
    callers,
    ...(maxAttempts !== undefined && { maxAttempts }),
  };
}

function readCallers(environment: Environment): Callers {
  // App Engine sets it, and strips its own headers from what comes from outside.
  const appEngine = optional(environment, 'GAE_ENV') !== undefined;
  const audience = optional(environment, 'OIDC_AUDIENCE');
  const serviceAccount = optional(environment, 'OIDC_SERVICE_ACCOUNT');
  if (appEngine && audience === undefined && serviceAccount === undefined) return { appEngine };
  const where = appEngine ? 'together with the other OIDC variable' : 'off App Engine';
  const oidc = {
    audience: required(environment, 'OIDC_AUDIENCE', `the audience of the queue's tokens (needed ${where})`),
    serviceAccount: required(
      environment,
      'OIDC_SERVICE_ACCOUNT',
      `the e-mail of the account that calls (needed ${where})`,
    ),
  };
  return { appEngine, oidc: { ...oidc, serviceAccount: email('OIDC_SERVICE_ACCOUNT', oidc.serviceAccount) } };
}

function target(environment: Environment, { appEngine, oidc }: Callers): Config['target'] {
  const url = optional(environment, 'REPUBLISHER_URL');
  const service = optional(environment, 'REPUBLISHER_SERVICE');
  if (url !== undefined && service !== undefined) {
    throw bad('REPUBLISHER_SERVICE', service, 'not together with REPUBLISHER_URL');
  }
  if (service !== undefined && !/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(service)) {
    throw bad('REPUBLISHER_SERVICE', service, "an App Engine service's ID");
  }
  const account = optional(environment, 'REPUBLISHER_SERVICE_ACCOUNT');
  if (url === undefined && appEngine) {
    if (account !== undefined && oidc === undefined) {
      throw bad('REPUBLISHER_SERVICE_ACCOUNT', account, 'on App Engine only with OIDC_SERVICE_ACCOUNT');
    }
    const own = service ?? optional(environment, 'GAE_SERVICE');
    return { appEngine: own === undefined ? {} : { service: own } };
  }
  if (service !== undefined) throw bad('REPUBLISHER_SERVICE', service, 'only on App Engine');
  if (oidc === undefined) {
    throw bad('REPUBLISHER_URL', url, 'on App Engine only with OIDC_AUDIENCE and OIDC_SERVICE_ACCOUNT');
  }
  const called = url ?? (isUrl(oidc.audience) ? oidc.audience : undefined);
  if (called === undefined || !isUrl(called)) {
    throw bad('REPUBLISHER_URL', called, 'an http or https URL: where the queue calls this republisher');
  }
  const serviceAccount = account ?? oidc.serviceAccount;
  if (serviceAccount !== oidc.serviceAccount) {
    throw bad('REPUBLISHER_SERVICE_ACCOUNT', serviceAccount, `the same as OIDC_SERVICE_ACCOUNT, or nothing`);
  }
  return { url: called, serviceAccount, audience: oidc.audience };
}

function queue(environment: Environment, project: string): string {
  const accepted = 'a queue ID together with TASKS_LOCATION, or projects/P/locations/L/queues/Q';
  const value = required(environment, 'DELAY_QUEUE', accepted);
  if (/^projects\/[^/\s]+\/locations\/[^/\s]+\/queues\/[^/\s]+$/.test(value)) return value;
  if (!/^[A-Za-z0-9-]{1,100}$/.test(value)) throw bad('DELAY_QUEUE', value, accepted);
  const location = required(environment, 'TASKS_LOCATION', 'a region, or a full name in DELAY_QUEUE');
  if (!/^[a-z0-9-]+$/.test(location)) throw bad('TASKS_LOCATION', location, 'a region such as us-central1');
  return `projects/${project}/locations/${location}/queues/${value}`;
}

function topic(project: string, variable: string, name: string): string {
  if (/^projects\/[^/\s]+\/topics\/[^/\s]+$/.test(name)) return name;
  if (!/^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$/.test(name)) {
    throw bad(
      variable,
      name,
      'an ID of 3 to 255 characters that begins with a letter, or projects/P/topics/T',
    );
  }
  return `projects/${project}/topics/${name}`;
}

function email(variable: string, value: string): string {
  if (!/^[^@\s]+@[^@\s]+$/.test(value)) throw bad(variable, value, 'the e-mail of a service account');
  return value;
}

function isHostAndPort(text: string): boolean {
  const port = Number(/^[^:/\s]+:(\d{1,5})$/.exec(text)?.[1] ?? 0);
  return port > 0 && port <= 65_535;
}

const isUrl = (text: string): boolean => URL.canParse(text) && /^https?:/.test(text);

function number(environment: Environment, variable: string, from: number, to: number): number | undefined {
  const value = optional(environment, variable);
  if (value === undefined) return undefined;
  if (!/^[0-9]{1,7}$/.test(value) || Number(value) < from || Number(value) > to) {
    throw bad(variable, value, `a whole number from ${from} to ${to}`);
  }
  return Number(value);
}

/** Variables that are set to nothing count as not set: that is what a template with an empty value leaves. */
function optional(environment: Environment, variable: string): string | undefined {
  const value = environment[variable]?.trim();
  return value === '' ? undefined : value;
}

function required(environment: Environment, variable: string, accepted: string): string {
  const value = optional(environment, variable);
  if (value === undefined) {
    throw new ConfigError('MISSING_VARIABLE', `${variable} is not set; accepted: ${accepted}`);
  }
  return value;
}

function bad(variable: string, value: string | undefined, accepted: string): ConfigError {
  const shown = value === undefined ? 'not set' : JSON.stringify(value);
  return new ConfigError('INVALID_VARIABLE', `${variable} is ${shown}; accepted: ${accepted}`);
}
