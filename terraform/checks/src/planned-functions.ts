/**
 * Of a planned function: its variables, its subscription, its secrets and its wake-ups, and whether they say the same.
 */
import { at, last, text } from './facts/values.ts';
import { listOf, objectOf, textOf } from './module.ts';
import type { Planned } from './plans.ts';
import { PROJECT_NUMBER } from './stand-in/outputs.ts';

/** What the stand-in makes up for a Redis' password. */
const AUTH_STRING = 'auth-string';

export const unless = (holds: boolean, problem: string): readonly string[] => (holds ? [] : [problem]);

export const functions = (all: readonly Planned[]): readonly Planned[] =>
  all.filter(({ type }) => type === 'google_cloudfunctions2_function');

export const uriOf = ({ values }: Planned): string => text(at(values, 'service_config', 'uri'));

export const seconds = (of: Planned, variable: string): number =>
  Number.parseInt(environmentOf(of)[variable] ?? '', 10);

export const accountOf = ({ values }: Planned): string =>
  [
    at(values, 'service_config', 'service_account_email'),
    at(values, 'template', 'service_account'),
    values['service_account'],
  ]
    .map(textOf)
    .join('');

export function environmentOf({ values }: Planned): Readonly<Record<string, string>> {
  const list = listOf(objectOf(at(values, 'template', 'containers'))['env']).map(objectOf);
  return {
    ...(objectOf(at(values, 'service_config', 'environment_variables') ?? values['env_variables']) as Record<
      string,
      string
    >),
    ...Object.fromEntries(list.map(({ name, value }) => [textOf(name), textOf(value)])),
  };
}

export function subscribed(of: Planned, all: readonly Planned[]): readonly string[] {
  const environment = environmentOf(of);
  const own = all.find(
    ({ type, values }) =>
      type === 'google_pubsub_subscription' && values['name'] === environment['SOURCE_SUBSCRIPTION'],
  );
  if (own === undefined) return ['SOURCE_SUBSCRIPTION is no subscription of the plan'];
  const limit = Number(at(of.values, 'service_config', 'timeout_seconds'));
  const ack = Number(own.values['ack_deadline_seconds']);
  const kept = Number.parseInt(text(own.values['message_retention_duration']), 10);
  const remembered = environment['DEDUP_RETENTION'];
  const agent = `serviceAccount:service-${PROJECT_NUMBER}@gcp-sa-pubsub.iam.gserviceaccount.com`;
  const lacks = Object.entries({
    'roles/pubsub.subscriber': ['subscription', own.values['name']],
    'roles/pubsub.publisher': ['topic', environment['DEAD_LETTER_TOPIC']],
    'roles/iam.serviceAccountTokenCreator': [
      'service_account_id',
      at(own.values, 'push_config', 'oidc_token', 'service_account_email'),
    ],
  } as const).filter(
    ([role, [name, on]]) =>
      !all.some(
        ({ values }) =>
          values['role'] === role && values['member'] === agent && last(values[name]) === text(on),
      ),
  );
  return [
    ...lacks.map(([role]) => `Pub/Sub’s own account lacks ${role}`),
    ...unless(
      seconds(of, 'HANDLER_TIMEOUT') < limit && limit < ack && ack <= 600,
      'its deadlines do not rise',
    ),
    ...unless(seconds(of, 'FUNCTION_TIMEOUT') === limit, 'FUNCTION_TIMEOUT is not its timeout'),
    ...unless(
      remembered === undefined || Number.parseInt(remembered, 10) >= kept,
      'messages outlive their records',
    ),
    ...unless(
      text(at(own.values, 'push_config', 'push_endpoint')) === uriOf(of),
      'its subscription pushes elsewhere',
    ),
    ...unless(
      at(own.values, 'push_config', 'oidc_token', 'audience') === uriOf(of),
      'the audience of the push must be its URL',
    ),
    ...unless(
      !['TARGET_TOPIC', 'DEAD_LETTER_TOPIC'].some((name) => environment[name] === last(own.values['topic'])),
      'its subscription is on what it publishes to',
    ),
    ...unless(
      last(at(own.values, 'dead_letter_policy', 'dead_letter_topic')) === environment['DEAD_LETTER_TOPIC'],
      'Pub/Sub’s dead letters go elsewhere than its own',
    ),
  ];
}

export function noSecrets(of: Planned): readonly string[] {
  const environment = environmentOf(of);
  const shown = JSON.stringify(of.values).includes(AUTH_STRING)
    ? ['a password stands in its configuration']
    : [];
  const open = Object.entries(environment).filter(
    ([name, value]) => /password|secret|token|REDIS_URL/i.test(name) || /^rediss?:|auth-string/.test(value),
  );
  const secrets = listOf(objectOf(at(of.values, 'service_config'))['secret_environment_variables']).map(
    (one) => at(one, 'key'),
  );
  const mount = text(at(of.values, 'service_config', 'secret_volumes', 'mount_path'));
  const file = text(at(of.values, 'service_config', 'secret_volumes', 'versions', 'path'));
  const authorities = environment['NODE_EXTRA_CA_CERTS'];
  return [
    ...shown,
    ...open.map(([name]) => `${name} is a secret in the open`),
    ...unless(
      environment['DEDUP_STORE'] !== 'redis' || secrets.includes('REDIS_URL'),
      'REDIS_URL must be a secret',
    ),
    ...unless(
      authorities === undefined || authorities === `${mount}/${file}`,
      'NODE_EXTRA_CA_CERTS is not where it is mounted',
    ),
  ];
}

export function wakes(of: Planned, all: readonly Planned[]): readonly string[] {
  const { WAKE_QUEUE: queue, WAKE_URL: url } = environmentOf(of);
  if (queue === undefined) return [];
  const attempts = all
    .filter(({ type, values }) => type === 'google_cloud_tasks_queue' && values['name'] === last(queue))
    .map(({ values }) => Number(at(values, 'retry_config', 'max_attempts')));
  return [
    ...unless(
      attempts.every((limit) => limit > 0) && attempts.length === 1,
      'wake-ups need a queue with a limit of attempts',
    ),
    ...unless(url === uriOf(of), 'WAKE_URL is not its URL'),
  ];
}

/** The variable with the topic at which a function's delayed messages come out. */
const COMES_OUT: Readonly<Record<string, string>> = {
  delay: 'TARGET_TOPIC',
  pipeline: 'SOURCE_TOPIC',
  saga: 'SAGA_TOPIC',
};

/** Where the republisher must not publish to, a delayed message waits for ever; so does the timer of a saga. */
export function delays(of: Planned, all: readonly Planned[]): readonly string[] {
  const topic = environmentOf(of)[COMES_OUT[text(at(of.values, 'build_config', 'entry_point'))] ?? ''];
  const lists = all
    .map((one) => environmentOf(one)['ALLOWED_TOPICS'])
    .filter((list) => list !== undefined && topic !== undefined);
  return lists
    .filter((list) => !list?.split(',').includes(topic ?? ''))
    .map(() => `the republisher may not publish to ${topic}`);
}

/** What an orchestrator needs beside the others' things. */
export function orchestrates(of: Planned, all: readonly Planned[]): readonly string[] {
  const { SAGA_TOPIC: topic, SOURCE_SUBSCRIPTION: subscription } = environmentOf(of);
  if (topic === undefined) return [];
  const own = all.find(
    ({ type, values }) => type === 'google_pubsub_subscription' && values['name'] === subscription,
  );
  const isSwept = all.some(
    ({ type, values }) =>
      type === 'google_cloud_scheduler_job' && at(values, 'http_target', 'uri') === `${uriOf(of)}/sweep`,
  );
  const mayPublish = all.some(
    ({ type, values }) =>
      type === 'google_pubsub_topic_iam_member' &&
      last(values['topic']) === topic &&
      values['member'] === `serviceAccount:${accountOf(of)}`,
  );
  return [
    ...unless(last(own?.values['topic']) === topic, 'its subscription is not on SAGA_TOPIC'),
    ...unless(isSwept, 'without a sweep a saga whose timer is lost stands still'),
    ...unless(mayPublish, 'it may not publish its timers to SAGA_TOPIC'),
  ];
}
