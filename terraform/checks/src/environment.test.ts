/**
 * What is deployed starts: the functions and the republisher read the variables that are planned for them, and find
 * nothing to say of the windows.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { at, text } from './facts/values.ts';
import type { Json } from './module.ts';
import { KEPT, type Planned, readPlan } from './plans.ts';
import { TERRAFORM_FOLDER } from './terraform.ts';

type Environment = Readonly<Record<string, string>>;
type ReadConfig = (environment: Environment, target?: string) => Readonly<Record<string, unknown>>;
type CheckWindows = (windows: object) => readonly Readonly<{ code: string }>[];

/** By its place: the workspaces of what is deployed are no dependencies of the checks. */
const imported = async (path: string): Promise<unknown> =>
  import(new URL(`../../../${path}`, import.meta.url).href);
const { readConfig: readFunction } = (await imported('functions/src/config.ts')) as {
  readConfig: ReadConfig;
};
const { readConfig: readRepublisher } = (await imported('appengine/src/config.ts')) as {
  readConfig: ReadConfig;
};
const { checkWindows } = (await imported('shared/src/dedup/windows.ts')) as { checkWindows: CheckWindows };

const resources = (await Promise.all(KEPT.map(async (name) => (await readPlan(name)).resources))).flat();
const ofType = (type: string): readonly Planned[] => resources.filter((one) => one.type === type);
const variables = (value: Json | undefined): Environment => value as Environment;

/** Every name that was asked for. */
const asked = new Set<string>();
const watched = (environment: Environment): Environment =>
  new Proxy(environment, {
    get(target, name) {
      if (typeof name === 'string') asked.add(name);
      return Reflect.get(target, name) as unknown;
    },
  });

/** With what the platform adds: the secret's value. */
function environmentOf({ values }: Planned): Environment {
  const environment = variables(at(values, 'service_config', 'environment_variables'));
  const secret = { REDIS_URL: 'rediss://:password@10.0.0.3:6378' };
  return { ...environment, ...(environment['DEDUP_STORE'] === 'redis' && secret) };
}

describe('the variables of', () => {
  for (const { address, values } of ofType('google_cloudfunctions2_function')) {
    test(`${address} are what the function reads`, () => {
      const environment = environmentOf({ address, type: '', values });
      const config = readFunction(watched(environment), text(at(values, 'build_config', 'entry_point')));
      assert.equal(config['name'], at(values, 'build_config', 'entry_point'));
      assert.equal(config['consumer'], values['name']);
    });

    test(`${address} fit its subscription`, () => {
      const environment = variables(at(values, 'service_config', 'environment_variables'));
      const own = ofType('google_pubsub_subscription').find(
        (one) => one.values['name'] === environment['SOURCE_SUBSCRIPTION'],
      );
      const seconds = (value: Json | undefined): number => Number.parseInt(text(value), 10) * 1000;
      const lease = environment['DEDUP_LEASE'];
      const problems = checkWindows({
        ...(lease !== undefined && { dedup: { lease, retention: environment['DEDUP_RETENTION'] } }),
        handlerTimeout: environment['HANDLER_TIMEOUT'],
        functionTimeout: environment['FUNCTION_TIMEOUT'],
        subscription: {
          ackDeadlineMs: seconds(own?.values['ack_deadline_seconds']),
          messageRetentionMs: seconds(own?.values['message_retention_duration']),
          maxDeliveryAttempts: Number(at(own?.values, 'dead_letter_policy', 'max_delivery_attempts')),
          minimumBackoffMs: seconds(at(own?.values, 'retry_policy', 'minimum_backoff')),
          maximumBackoffMs: seconds(at(own?.values, 'retry_policy', 'maximum_backoff')),
        },
      });
      assert.deepEqual(problems, []);
    });
  }

  test('the republisher on App Engine are what it reads', () => {
    const [version] = ofType('google_app_engine_standard_app_version');
    const environment = variables(version?.values['env_variables']);
    // What App Engine sets by itself.
    const config = readRepublisher(
      watched({ ...environment, GAE_ENV: 'standard', GOOGLE_CLOUD_PROJECT: 'demo-project' }),
    );
    assert.deepEqual(
      config['allowedTopics'],
      ['payments', 'reminders-due'].map((id) => `projects/demo-project/topics/${id}`),
    );
  });

  test('the republisher on Cloud Run are what it reads, and its callers call it where it is', () => {
    const [service] = ofType('google_cloud_run_v2_service');
    const env = at(service?.values, 'template', 'containers') as {
      env: readonly { name: string; value: string }[];
    };
    const environment = Object.fromEntries(env.env.map(({ name, value }) => [name, value]));
    const { target } = readRepublisher(watched({ ...environment, K_SERVICE: 'republisher' })) as {
      target: Environment;
    };
    const caller = ofType('google_cloudfunctions2_function').find(({ values }) => values['name'] === 'later');
    const calls = variables(at(caller?.values, 'service_config', 'environment_variables'));
    assert.equal(target['url'], calls['REPUBLISHER_URL']);
    assert.equal(target['audience'], calls['REPUBLISHER_URL']);
    assert.equal(target['serviceAccount'], calls['REPUBLISHER_SERVICE_ACCOUNT']);
  });
});

/** What is read, and no module sets. */
const NOT_SET: Readonly<Record<string, string>> = {
  CLOUD_TASKS_EMULATOR_HOST: 'of the local stack',
  DELAY_QUEUE: 'DELAY_QUEUES is set instead',
  FIRESTORE_EMULATOR_HOST: 'of the local stack',
  GAE_ENV: 'of the platform',
  GAE_SERVICE: 'of the platform',
  K_SERVICE: 'of the platform',
  PORT: 'of the platform',
  PUBSUB_EMULATOR_HOST: 'of the local stack',
  QUEUE_MAX_ATTEMPTS: 'the queues have no limit',
};
/** What is set, and neither of them reads. */
const NOT_READ: Readonly<Record<string, string>> = {
  LOG_EXECUTION_ID: 'of the platform',
  NODE_EXTRA_CA_CERTS: 'of Node',
};

test('every variable that is read can be set by a module, and every one that is set is read', async () => {
  const files = ['guarantee/main', 'policy/outputs', 'republisher/main', 'republisher/cloud-run'];
  const texts = await Promise.all(
    files.map(async (file) => readFile(join(TERRAFORM_FOLDER, 'modules', `${file}.tf`), 'utf8')),
  );
  const secret = /key\s+= "(\w+)"/.exec(texts[0] ?? '')?.[1] ?? '';
  const set = new Set([
    secret,
    ...[...texts.join('\n').matchAll(/^[\s{]*.*?\b([A-Z][A-Z_]{3,}) +=/gm)].map(([, name = '']) => name),
  ]);
  assert.ok(asked.size > 30 && set.size > 30, `${asked.size} are read, ${set.size} are set`);
  assert.deepEqual(
    [...asked].filter((name) => !set.has(name) && !(name in NOT_SET)),
    [],
  );
  assert.deepEqual(
    [...set].filter((name) => !asked.has(name) && !(name in NOT_READ)),
    [],
  );
  assert.deepEqual(
    Object.keys(NOT_SET).filter((name) => set.has(name) || !asked.has(name)),
    [],
  );
});
