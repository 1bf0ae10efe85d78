import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError } from 'pubsub-guarantees';
import { readConfig } from './config.ts';

const common = {
  GOOGLE_CLOUD_PROJECT: 'p-1',
  ALLOWED_TOPICS: 'out, projects/q/topics/other',
  DEAD_LETTER_TOPIC: 'dead-letters',
  DELAY_QUEUE: 'delay-queue',
  TASKS_LOCATION: 'us-central1',
};
const onAppEngine = { ...common, GAE_ENV: 'standard', GAE_SERVICE: 'later' };
const elsewhere = {
  ...common,
  OIDC_AUDIENCE: 'https://republisher.example',
  OIDC_SERVICE_ACCOUNT: 'caller@p-1.iam.gserviceaccount.com',
};

test('on App Engine: full names from short ones, its own service as target, its headers as proof', () => {
  assert.deepEqual(readConfig({ ...onAppEngine, PORT: '8081', GAE_MEMORY_MB: '384' }), {
    project: 'p-1',
    port: 8081,
    allowedTopics: ['projects/p-1/topics/out', 'projects/q/topics/other'],
    deadLetterTopic: 'projects/p-1/topics/dead-letters',
    queues: ['projects/p-1/locations/us-central1/queues/delay-queue'],
    target: { appEngine: { service: 'later' } },
    callers: { appEngine: { queues: ['delay-queue'] } },
    firestore: { database: '(default)', collectionPrefix: 'pubsub-guarantees' },
    emulators: {},
    // (384 MB - 160 MiB) / 5
    maxBytesInFlight: 43_245_568,
  });
});

test('queues that drain may still call, and are sent nothing', () => {
  const drains = { ...onAppEngine, DRAINING_QUEUES: 'old,projects/p-1/locations/us-central1/queues/older' };
  const { callers, queues } = readConfig(drains);
  assert.deepEqual(callers.appEngine, { queues: ['delay-queue', 'old', 'older'] });
  assert.deepEqual(queues, ['projects/p-1/locations/us-central1/queues/delay-queue']);
});

test('elsewhere: a token of one account is needed, and the next task carries one', () => {
  const { callers, target, port } = readConfig(elsewhere);
  const oidc = {
    audience: 'https://republisher.example',
    serviceAccount: 'caller@p-1.iam.gserviceaccount.com',
  };
  const accepted = { audiences: [oidc.audience], serviceAccounts: [oidc.serviceAccount] };
  assert.deepEqual(callers, { appEngine: false, oidc: accepted });
  assert.deepEqual(target, { url: 'https://republisher.example', ...oidc });
  assert.equal(port, 8080);
  const named = { ...elsewhere, OIDC_AUDIENCE: 'later', REPUBLISHER_URL: 'https://r.example/republish' };
  assert.deepEqual(readConfig(named).target, {
    ...oidc,
    audience: 'later',
    url: 'https://r.example/republish',
  });
});

test('several audiences and accounts are accepted, and new tasks are made with the first', () => {
  const { callers, target } = readConfig({
    ...elsewhere,
    OIDC_AUDIENCE: 'https://new.example, https://republisher.example',
    OIDC_SERVICE_ACCOUNT: 'new@p-1.iam.gserviceaccount.com,caller@p-1.iam.gserviceaccount.com',
  });
  assert.deepEqual(callers.oidc, {
    audiences: ['https://new.example', 'https://republisher.example'],
    serviceAccounts: ['new@p-1.iam.gserviceaccount.com', 'caller@p-1.iam.gserviceaccount.com'],
  });
  assert.deepEqual(target, {
    url: 'https://new.example',
    serviceAccount: 'new@p-1.iam.gserviceaccount.com',
    audience: 'https://new.example',
  });
});

test('several queues: full names from short ones', () => {
  const { queues } = readConfig({
    ...onAppEngine,
    DELAY_QUEUE: '',
    DELAY_QUEUES: 'a, projects/q/locations/l/queues/b',
  });
  assert.deepEqual(queues, [
    'projects/p-1/locations/us-central1/queues/a',
    'projects/q/locations/l/queues/b',
  ]);
});

test('on Cloud Run the headers of App Engine prove nothing, whatever else is set', () => {
  const { callers } = readConfig({ ...elsewhere, GAE_ENV: 'standard', K_SERVICE: 'republisher' });
  assert.equal(callers.appEngine, false);
  const alone = { ...onAppEngine, K_SERVICE: 'republisher' };
  assert.throws(
    () => readConfig(alone),
    /^ConfigError: OIDC_AUDIENCE is not set; accepted: .*off App Engine/,
  );
});

test('a local Cloud Tasks server binds the republisher to the loopback interface', () => {
  const { host, emulators } = readConfig({ ...onAppEngine, CLOUD_TASKS_EMULATOR_HOST: '127.0.0.1:8123' });
  assert.deepEqual({ host, emulators }, { host: '127.0.0.1', emulators: { tasks: '127.0.0.1:8123' } });
});

test('a limit of attempts is taken where the queue has one', () => {
  assert.equal(readConfig({ ...onAppEngine, QUEUE_MAX_ATTEMPTS: '100' }).maxAttempts, 100);
});

test('an instance on App Engine or Cloud Run is not led to an emulator', () => {
  const emulator = { PUBSUB_EMULATOR_HOST: '127.0.0.1:8085' };
  for (const [variable, environment] of [
    ['GAE_INSTANCE', { ...onAppEngine, GAE_INSTANCE: 'i-1' }],
    ['K_SERVICE', { ...elsewhere, K_SERVICE: 'i-1' }],
  ] as const) {
    assert.throws(
      () => readConfig({ ...environment, ...emulator }),
      new RegExp(
        `PUBSUB_EMULATOR_HOST is "127.0.0.1:8085"; accepted: not set on a deployed .*${variable} is "i-1"`,
      ),
    );
  }
});

const refused: readonly (readonly [string, Record<string, string | undefined>, RegExp])[] = [
  [
    'no project',
    { ...onAppEngine, GOOGLE_CLOUD_PROJECT: '' },
    /^GOOGLE_CLOUD_PROJECT is not set; accepted: /,
  ],
  [
    'no allowed topic',
    { ...onAppEngine, ALLOWED_TOPICS: undefined },
    /^ALLOWED_TOPICS is not set; accepted: /,
  ],
  ['an empty name', { ...onAppEngine, ALLOWED_TOPICS: 'out,' }, /^ALLOWED_TOPICS is ""; accepted: /],
  ['a pattern', { ...onAppEngine, ALLOWED_TOPICS: '*' }, /^ALLOWED_TOPICS is "\*"; accepted: /],
  [
    'no dead letters',
    { ...onAppEngine, DEAD_LETTER_TOPIC: ' ' },
    /^DEAD_LETTER_TOPIC is not set; accepted: /,
  ],
  ['a bad queue', { ...onAppEngine, DELAY_QUEUE: 'a/b' }, /^DELAY_QUEUE is "a\/b"; accepted: /],
  [
    'queues twice over',
    { ...onAppEngine, DELAY_QUEUES: 'a,b' },
    /^DELAY_QUEUE is "delay-queue"; accepted: not together with DELAY_QUEUES/,
  ],
  [
    'one queue twice',
    { ...onAppEngine, DELAY_QUEUE: '', DELAY_QUEUES: 'a,b,a' },
    /^DELAY_QUEUES is "a,b,a"; accepted: each queue once/,
  ],
  [
    'a queue without a name',
    { ...onAppEngine, DELAY_QUEUE: '', DELAY_QUEUES: 'a,' },
    /^DELAY_QUEUES is ""; accepted: /,
  ],
  [
    'no queue at all',
    { ...onAppEngine, DELAY_QUEUE: '' },
    /^DELAY_QUEUE is not set; accepted: .*DELAY_QUEUES/,
  ],
  ['another GAE_ENV', { ...common, GAE_ENV: 'local' }, /^OIDC_AUDIENCE is not set; accepted: /],
  ['an empty audience', { ...elsewhere, OIDC_AUDIENCE: 'https://r.example,' }, /^OIDC_AUDIENCE is "/],
  ['no location', { ...onAppEngine, TASKS_LOCATION: undefined }, /^TASKS_LOCATION is not set; accepted: /],
  ['a port in words', { ...onAppEngine, PORT: 'http' }, /^PORT is "http"; accepted: /],
  ['a port too high', { ...onAppEngine, PORT: '65536' }, /^PORT is "65536"; accepted: /],
  ['no attempts', { ...onAppEngine, QUEUE_MAX_ATTEMPTS: '0' }, /^QUEUE_MAX_ATTEMPTS is "0"; accepted: /],
  [
    'an emulator URL',
    { ...onAppEngine, CLOUD_TASKS_EMULATOR_HOST: 'http://x' },
    /^CLOUD_TASKS_EMULATOR_HOST is /,
  ],
  [
    'a Pub/Sub emulator without a port',
    { ...onAppEngine, PUBSUB_EMULATOR_HOST: 'something' },
    /^PUBSUB_EMULATOR_HOST is "something"; accepted: host:port/,
  ],
  [
    'a Firestore emulator without brackets',
    { ...onAppEngine, FIRESTORE_EMULATOR_HOST: '::1:21000' },
    /^FIRESTORE_EMULATOR_HOST is "::1:21000"; accepted: /,
  ],
  [
    'an emulator without such a port',
    { ...onAppEngine, CLOUD_TASKS_EMULATOR_HOST: 'h:99999' },
    /^CLOUD_TASKS_EMULATOR_HOST is "h:99999"/,
  ],
  [
    'a project with a space',
    { ...onAppEngine, GOOGLE_CLOUD_PROJECT: 'a b' },
    /^GOOGLE_CLOUD_PROJECT is "a b"/,
  ],
  [
    'a service that is none',
    { ...onAppEngine, REPUBLISHER_SERVICE: 'a b' },
    /^REPUBLISHER_SERVICE is "a b"; accepted: /,
  ],
  [
    'an account that nothing uses',
    { ...onAppEngine, REPUBLISHER_SERVICE_ACCOUNT: 'a@b' },
    /^REPUBLISHER_SERVICE_ACCOUNT is "a@b"; accepted: on App Engine only with/,
  ],
  ['nothing that proves the caller', common, /^OIDC_AUDIENCE is not set; accepted: .*off App Engine/],
  ['ALLOW_UNAUTH does nothing', { ...common, ALLOW_UNAUTH: '1' }, /^OIDC_AUDIENCE is not set; accepted: /],
  [
    'an audience alone',
    { ...elsewhere, OIDC_SERVICE_ACCOUNT: '' },
    /^OIDC_SERVICE_ACCOUNT is not set; accepted: /,
  ],
  [
    'no e-mail',
    { ...elsewhere, OIDC_SERVICE_ACCOUNT: 'caller' },
    /^OIDC_SERVICE_ACCOUNT is "caller"; accepted: /,
  ],
  ['no URL', { ...elsewhere, OIDC_AUDIENCE: 'later' }, /^REPUBLISHER_URL is not set; accepted: /],
  ['half of OIDC', { ...onAppEngine, OIDC_AUDIENCE: 'x' }, /^OIDC_SERVICE_ACCOUNT is not set; accepted: /],
  [
    'a URL that Cloud Tasks never calls',
    { ...elsewhere, REPUBLISHER_URL: 'http://r.example' },
    /^REPUBLISHER_URL is "http:\/\/r.example"; accepted: an https URL/,
  ],
  ['a URL without tokens', { ...onAppEngine, REPUBLISHER_URL: 'https://r.example' }, /^REPUBLISHER_URL is "/],
  [
    'a service elsewhere',
    { ...elsewhere, REPUBLISHER_SERVICE: 's' },
    /^REPUBLISHER_SERVICE is "s"; accepted: /,
  ],
  [
    'another account',
    { ...elsewhere, REPUBLISHER_SERVICE_ACCOUNT: 'b@c' },
    /^REPUBLISHER_SERVICE_ACCOUNT is /,
  ],
];

for (const [name, environment, text] of refused) {
  test(`refuses to start: ${name}`, () => {
    assert.throws(
      () => readConfig(environment),
      (error) => error instanceof ConfigError && text.test(error.message) && !error.message.includes('\n'),
    );
  });
}
