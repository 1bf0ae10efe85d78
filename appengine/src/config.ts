/**
 * The environment of the republisher, read once and validated before it serves anything. An error names the variable,
 * its value and what is accepted; the process does not start with a guess, and never without a way to check its callers.
 */
import {
  bad,
  calledUrl,
  delayQueues,
  drainingQueues,
  email,
  type Emulators,
  emulators,
  type Environment,
  firestoreNames,
  fullName,
  isHttpUrl,
  maxBytesInFlight,
  optional,
  project as projectOf,
  republisherService,
  required,
  topic,
} from 'pubsub-guarantees/environment';
import type { Callers } from './auth.ts';

export type Config = Readonly<{
  project: string;
  port: number;
  /** Loopback on the local stack; absent: all interfaces, as App Engine and Cloud Run want it. */
  host?: string;
  /** `projects/…/topics/…` */
  allowedTopics: readonly string[];
  deadLetterTopic: string;
  /** `projects/…/locations/…/queues/…`: where the next task of a delay beyond 30 days goes, one of them by its name. */
  queues: readonly string[];
  /** This republisher, as the queue calls it. */
  target:
    | Readonly<{ appEngine: Readonly<{ service?: string }> }>
    | Readonly<{ url: string; serviceAccount: string; audience: string }>;
  callers: Callers;
  /** Where the functions keep their schedules and payloads. */
  firestore: Readonly<{ database: string; collectionPrefix: string }>;
  /** The queue's limit of attempts, where it has one. */
  maxAttempts?: number;
  /** How many bytes of tasks and their payloads the process has in flight at most. */
  maxBytesInFlight: number;
  /** Local servers in place of Google's. */
  emulators: Emulators;
}>;

/** Throws ConfigError. */
export function readConfig(environment: Environment): Config {
  const local = emulators(environment);
  const project = projectOf(environment);
  const topics = required(environment, 'ALLOWED_TOPICS', 'topic IDs or full names, separated by commas');
  const maxAttempts = number(environment, 'QUEUE_MAX_ATTEMPTS', 1, 1_000_000);
  const queues = delayQueues(environment, project);
  const callers = readCallers(environment, [...queues, ...drainingQueues(environment, project)]);
  return {
    project,
    port: number(environment, 'PORT', 0, 65_535) ?? 8080,
    ...(local.tasks !== undefined && { host: '127.0.0.1' }),
    emulators: local,
    allowedTopics: topics
      .split(',')
      .map((name) => fullName(project, 'topics', 'ALLOWED_TOPICS', name.trim())),
    deadLetterTopic: topic(environment, project, 'DEAD_LETTER_TOPIC'),
    queues,
    target: target(environment, callers),
    callers,
    firestore: firestoreNames(environment),
    maxBytesInFlight: maxBytesInFlight(environment),
    ...(maxAttempts !== undefined && { maxAttempts }),
  };
}

function readCallers(environment: Environment, calling: readonly string[]): Callers {
  // App Engine sets it, and strips its own headers from what comes from outside. Cloud Run, which sets K_SERVICE,
  // strips nothing: there they prove nothing, whatever else the environment says.
  const isOnAppEngine =
    optional(environment, 'GAE_ENV') === 'standard' && optional(environment, 'K_SERVICE') === undefined;
  // The header has the ID alone.
  const ids = calling.map((name) => name.slice(name.lastIndexOf('/') + 1));
  const appEngine: Callers['appEngine'] = isOnAppEngine ? { queues: ids } : false;
  const audience = optional(environment, 'OIDC_AUDIENCE');
  const serviceAccount = optional(environment, 'OIDC_SERVICE_ACCOUNT');
  if (isOnAppEngine && audience === undefined && serviceAccount === undefined) return { appEngine };
  const where = isOnAppEngine ? 'together with the other OIDC variable' : 'off App Engine';
  const accounts = `the e-mail of the account that calls (needed ${where})`;
  return {
    appEngine,
    oidc: {
      audiences: list(environment, 'OIDC_AUDIENCE', `the audience of the queue's tokens (needed ${where})`),
      serviceAccounts: list(environment, 'OIDC_SERVICE_ACCOUNT', accounts).map((value) =>
        email('OIDC_SERVICE_ACCOUNT', value),
      ),
    },
  };
}

/** The first is what new tasks are made with; those behind it are accepted as well. */
function list(environment: Environment, variable: string, accepted: string): readonly string[] {
  const values = required(environment, variable, accepted)
    .split(',')
    .map((value) => value.trim());
  if (values.includes(''))
    throw bad(variable, values.join(','), `${accepted}, or several with a comma between`);
  return values;
}

function target(environment: Environment, { appEngine, oidc }: Callers): Config['target'] {
  const url = optional(environment, 'REPUBLISHER_URL');
  const service = republisherService(environment);
  if (url !== undefined && service !== undefined) {
    throw bad('REPUBLISHER_SERVICE', service, 'not together with REPUBLISHER_URL');
  }
  const account = optional(environment, 'REPUBLISHER_SERVICE_ACCOUNT');
  if (url === undefined && appEngine !== false) {
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
  const [audience = ''] = oidc.audiences;
  if (url === undefined && !isHttpUrl(audience)) {
    throw bad('REPUBLISHER_URL', url, 'an https URL: where the queue calls this republisher');
  }
  const called = calledUrl(environment, 'REPUBLISHER_URL', url ?? audience);
  const serviceAccount = account ?? oidc.serviceAccounts[0] ?? '';
  if (!oidc.serviceAccounts.includes(serviceAccount)) {
    throw bad('REPUBLISHER_SERVICE_ACCOUNT', serviceAccount, `one of OIDC_SERVICE_ACCOUNT, or nothing`);
  }
  return { url: called, serviceAccount, audience };
}

function number(environment: Environment, variable: string, from: number, to: number): number | undefined {
  const value = optional(environment, variable);
  if (value === undefined) return undefined;
  if (!/^[0-9]{1,7}$/.test(value) || Number(value) < from || Number(value) > to) {
    throw bad(variable, value, `a whole number from ${from} to ${to}`);
  }
  return Number(value);
}
