/**
 * What each command of `deploy/gcloud.sh` says, by the words that it begins with.
 */
import { alertOf } from './alert-commands.ts';
import { environmentText, type Fact } from './facts.ts';
import { reachOfCommand, redisOf } from './redis.ts';

/** What goes to App Engine by `app.yaml`: the dry run prints it before the command. */
export type AppYaml = { service: string; variables: Record<string, string> };

type CommandReader = Readonly<{
  prefix: string;
  read: (name: string, flag: (name: string) => string, app: AppYaml) => readonly Fact[];
}>;

const grantOn =
  (kind: string): CommandReader['read'] =>
  (name, flag) => {
    const on = kind === 'project' ? kind : `${kind} ${name}`;
    const expression = /expression=(.*)$/.exec(flag('condition'))?.[1] ?? '';
    return [[`grant on ${on}: ${flag('role')} to ${flag('member')}`, { condition: expression }]];
  };

/** As `--set-env-vars` takes them with a delimiter of one's own. */
const variablesOf = (value: string): string =>
  environmentText(
    Object.fromEntries(
      value
        .replace(/^\^;\^/, '')
        .split(';')
        .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
    ),
  );

const field = (name: string, flag: (name: string) => string): string =>
  `${flag('database')}/${flag('collection-group')}.${name}`;

const displayNameOf = (json: string): string => (JSON.parse(json) as { displayName: string }).displayName;

export const COMMANDS: readonly CommandReader[] = [
  // The provider makes Pub/Sub's account with the first topic; its resource for it is in google-beta alone.
  { prefix: 'beta services identity create', read: () => [] },
  {
    prefix: 'services enable',
    read: (names) => names.split(' ').map((name) => [`service ${name}`, {}] as const),
  },
  {
    prefix: 'iam service-accounts create',
    read: (name, flag) => [[`account ${name}`, { name: flag('display-name') }]],
  },
  {
    prefix: 'iam roles create',
    read: (name, flag) => [[`role ${name}`, { title: flag('title'), permissions: flag('permissions') }]],
  },
  { prefix: 'projects add-iam-policy-binding', read: grantOn('project') },
  { prefix: 'iam service-accounts add-iam-policy-binding', read: grantOn('account') },
  { prefix: 'pubsub topics add-iam-policy-binding', read: grantOn('topic') },
  { prefix: 'pubsub subscriptions add-iam-policy-binding', read: grantOn('subscription') },
  { prefix: 'tasks queues add-iam-policy-binding', read: grantOn('queue') },
  { prefix: 'run services add-iam-policy-binding', read: grantOn('run') },
  {
    prefix: 'firestore databases create',
    read: (_, flag) => [
      [
        `database ${flag('database')}`,
        { location: flag('location'), isProtected: String(flag('delete-protection') === '') },
      ],
    ],
  },
  {
    prefix: 'firestore indexes fields update',
    read: (name, flag) => {
      // gcloud makes them for the collection, and takes no scope.
      const [, order = ''] = /^order=(\w+)$/.exec(flag('index')) ?? [];
      return [[`index ${field(name, flag)}`, { indexed: order === '' ? 'no' : `${order} collection` }]];
    },
  },
  { prefix: 'firestore fields ttls update', read: (name, flag) => [[`expiry ${field(name, flag)}`, {}]] },
  { prefix: 'pubsub topics create', read: (name) => [[`topic ${name}`, {}]] },
  {
    prefix: 'pubsub subscriptions create',
    read: (name, flag) => [
      [
        `subscription ${name}`,
        {
          topic: flag('topic'),
          ackDeadline: flag('ack-deadline'),
          retention: flag('message-retention-duration'),
          expires: flag('expiration-period') === 'never' ? 'never' : 'by itself',
          endpoint: flag('push-endpoint'),
          account: flag('push-auth-service-account'),
          audience: flag('push-auth-token-audience'),
          deadLetters: flag('dead-letter-topic'),
          attempts: flag('max-delivery-attempts'),
          backoff: `${flag('min-retry-delay')}-${flag('max-retry-delay')}`,
        },
      ],
    ],
  },
  {
    prefix: 'tasks queues create',
    read: (name, flag) => [
      [
        `queue ${name}`,
        {
          location: flag('location'),
          rate: flag('max-dispatches-per-second'),
          concurrent: flag('max-concurrent-dispatches'),
          attempts: flag('max-attempts'),
          backoff: `${flag('min-backoff')}-${flag('max-backoff')}`,
          doublings: flag('max-doublings'),
          log: flag('log-sampling-ratio'),
        },
      ],
    ],
  },
  {
    prefix: 'app deploy',
    read: (_, flag, app) => [
      [
        `app version of ${app.service}`,
        { account: flag('service-account'), environment: environmentText(app.variables) },
      ],
    ],
  },
  {
    prefix: 'functions deploy',
    read: (name, flag) => [
      [
        `function ${name}`,
        {
          runtime: flag('runtime'),
          entry: flag('entry-point'),
          buildAccount: flag('build-service-account'),
          account: flag('service-account'),
          cpu: flag('cpu'),
          memory: flag('memory'),
          timeout: flag('timeout').replace(/s$/, ''),
          concurrency: flag('concurrency'),
          instances: `${flag('min-instances')}-${flag('max-instances')}`,
          isInternal: String(flag('ingress-settings') === 'internal-only'),
          environment: variablesOf(flag('set-env-vars')),
          reach: reachOfCommand(flag),
        },
      ],
    ],
  },
  { prefix: 'redis instances create', read: redisOf },
  { prefix: 'secrets create', read: (name) => [[`secret ${name}`, {}]] },
  { prefix: 'secrets versions add', read: (name) => [[`value of secret ${name}`, {}]] },
  { prefix: 'secrets add-iam-policy-binding', read: grantOn('secret') },
  {
    prefix: 'run deploy',
    read: (name, flag) => [
      [
        `run service ${name}`,
        {
          account: flag('service-account'),
          concurrency: flag('concurrency'),
          timeout: flag('timeout'),
          cpu: flag('cpu'),
          memory: flag('memory'),
          instances: `${flag('min-instances')}-${flag('max-instances')}`,
          isInternal: String(flag('ingress') === 'internal'),
          audiences: flag('set-custom-audiences'),
          environment: variablesOf(flag('set-env-vars')),
        },
      ],
    ],
  },
  {
    prefix: 'scheduler jobs create http',
    read: (name, flag) => [
      [
        `job ${name}`,
        {
          schedule: flag('schedule'),
          zone: flag('time-zone'),
          deadline: flag('attempt-deadline'),
          retries: flag('max-retry-attempts'),
          call: `${flag('http-method')} ${flag('uri')}`,
          account: flag('oidc-service-account-email'),
          audience: flag('oidc-token-audience'),
        },
      ],
    ],
  },
  {
    prefix: 'eventarc triggers create',
    read: (name, flag) => [
      [
        `trigger ${name}`,
        {
          location: flag('location'),
          filters: [...flag('event-filters').split(','), flag('event-filters-path-pattern')]
            .toSorted()
            .join(' '),
          content: flag('event-data-content-type'),
          account: flag('service-account'),
          service: flag('destination-run-service'),
          region: flag('destination-run-region'),
          path: flag('destination-run-path'),
        },
      ],
    ],
  },
  { prefix: 'alpha monitoring policies create', read: (_, flag) => alertOf(flag) },
  {
    prefix: 'monitoring dashboards create',
    read: (_, flag) => [[`dashboard ${displayNameOf(flag('config'))}`, {}]],
  },
];
