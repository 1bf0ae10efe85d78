import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from './config.ts';

const BASE = {
  GOOGLE_CLOUD_PROJECT: 'p',
  TARGET_TOPIC: 'out',
  DEAD_LETTER_TOPIC: 'dead',
  SOURCE_TOPIC: 'source',
  DELAY_QUEUE: 'later',
  TASKS_LOCATION: 'us-central1',
};

test('fills in short names and defaults', () => {
  assert.deepEqual(readConfig({ ...BASE, MAX_BYTES_IN_FLIGHT: '20000000' }, 'pipeline'), {
    name: 'pipeline',
    project: 'p',
    consumer: 'pipeline',
    targetTopic: 'projects/p/topics/out',
    deadLetterTopic: 'projects/p/topics/dead',
    timeout: '60s',
    firestore: { database: '(default)', collectionPrefix: 'pubsub-guarantees' },
    emulators: {},
    order: {
      lease: '60s',
      start: 1,
      maxAttempts: 10,
      onPoison: 'block',
      onUnknownStale: 'deadLetter',
      scope: 'source',
      onGap: 'wait',
      gap: { timeout: '5m' },
    },
    dedup: { lease: '30s', retention: '8d', onConflict: 'deadLetter', onStoreUnavailable: 'retry' },
    delay: {
      queues: ['projects/p/locations/us-central1/queues/later'],
      topic: 'projects/p/topics/source',
      republisher: { service: 'default' },
      ledger: 'keys',
      payloads: true,
    },
    outbox: { isOn: false },
    wake: undefined,
    checkWindows: true,
    strictAttributes: false,
    debug: false,
    maxBytesInFlight: 20_000_000,
  });
});

test('the bytes in flight are a whole number of at least a mebibyte, and by default what fits the memory', () => {
  const bytes = (value: string) => readConfig({ ...BASE, MAX_BYTES_IN_FLIGHT: value }, 'pipeline');
  for (const wrong of ['0', '1000', '-1', '20MB', '1e9']) {
    assert.throws(() => bytes(wrong), {
      message: `MAX_BYTES_IN_FLIGHT is "${wrong}"; accepted: a whole number of bytes, at least 1048576`,
    });
  }
  assert.ok(readConfig(BASE, 'pipeline').maxBytesInFlight >= 14 * 1_048_576);
});

test('the platform’s timeout, the check of the windows and the log level are optional and validated', () => {
  const set = { FUNCTION_TIMEOUT: '540s', CHECK_WINDOWS: 'off', LOG_LEVEL: 'debug' };
  const { functionTimeout, checkWindows, debug } = readConfig({ ...BASE, ...set }, 'dedup');
  assert.deepEqual([functionTimeout, checkWindows, debug], ['540s', false, true]);
  for (const [variable, value] of [
    ['FUNCTION_TIMEOUT', '540'],
    ['CHECK_WINDOWS', 'no'],
    ['STRICT_ATTRIBUTES', 'yes'],
    ['LOG_LEVEL', 'warn'],
  ] as const) {
    assert.throws(
      () => readConfig({ ...BASE, [variable]: value }, 'dedup'),
      (error) => error instanceof Error && error.message.startsWith(`${variable} is "${value}"`),
    );
  }
});

test('takes full names, the service name as consumer, and a republisher elsewhere', () => {
  const config = readConfig(
    {
      ...BASE,
      TARGET_TOPIC: 'projects/other/topics/out',
      SOURCE_SUBSCRIPTION: 'in-sub',
      K_SERVICE: 'orders-delay',
      DELAY_QUEUE: 'projects/p/locations/europe-west1/queues/later',
      REPUBLISHER_URL: 'https://republisher.example',
      REPUBLISHER_SERVICE_ACCOUNT: 'caller@p.iam.gserviceaccount.com',
    },
    'delay',
  );
  assert.equal(config.consumer, 'orders-delay');
  assert.equal(config.source, 'projects/p/subscriptions/in-sub');
  assert.equal(config.delay?.topic, 'projects/other/topics/out');
  assert.deepEqual(config.delay?.queues, ['projects/p/locations/europe-west1/queues/later']);
  assert.deepEqual(config.delay?.republisher, {
    url: 'https://republisher.example',
    serviceAccount: 'caller@p.iam.gserviceaccount.com',
  });
});

const REFUSED: readonly (readonly [
  what: string,
  target: string,
  variables: Record<string, string>,
  says: RegExp,
])[] = [
  ['no target', '', {}, /FUNCTION_TARGET is "".*dedup, delay, fifo, pipeline/],
  ['no project', 'dedup', { GOOGLE_CLOUD_PROJECT: '' }, /GOOGLE_CLOUD_PROJECT is not set/],
  ['no target topic', 'dedup', { TARGET_TOPIC: ' ' }, /TARGET_TOPIC is not set/],
  ['no dead-letter topic', 'fifo', { DEAD_LETTER_TOPIC: '' }, /DEAD_LETTER_TOPIC is not set/],
  ['a topic that is none', 'fifo', { TARGET_TOPIC: 'a b' }, /TARGET_TOPIC is "a b"; accepted:/],
  ['no queue', 'delay', { DELAY_QUEUE: '' }, /DELAY_QUEUE is not set/],
  ['a queue without its location', 'delay', { TASKS_LOCATION: '' }, /TASKS_LOCATION is not set/],
  ['no topic to come back in', 'pipeline', { SOURCE_TOPIC: '' }, /SOURCE_TOPIC is not set/],
  [
    'an unknown store',
    'dedup',
    { DEDUP_STORE: 'mysql' },
    /DEDUP_STORE is "mysql"; accepted: firestore or redis/,
  ],
  ['Redis without its URL', 'dedup', { DEDUP_STORE: 'redis' }, /REDIS_URL is not set/],
  ['a duration without a unit', 'dedup', { DEDUP_LEASE: '30' }, /DEDUP_LEASE is "30"; accepted:/],
  [
    'a policy that is none',
    'dedup',
    { DEDUP_ON_CONFLICT: 'drop' },
    /is "drop"; accepted: deadLetter or ack or/,
  ],
  ['another that is none', 'dedup', { DEDUP_ON_STORE_UNAVAILABLE: 'ack' }, /accepted: retry or process/],
  [
    'a lease as long as the record',
    'dedup',
    { DEDUP_LEASE: '8d' },
    /DEDUP_LEASE is "8d"; accepted: less than DEDUP_RETENTION \(8d\)/,
  ],
  ['no time at all', 'fifo', { HANDLER_TIMEOUT: '0s' }, /HANDLER_TIMEOUT is "0s"/],
  [
    'a republisher that no account may call',
    'delay',
    { REPUBLISHER_URL: 'https://r.example' },
    /REPUBLISHER_SERVICE_ACCOUNT/,
  ],
  [
    'a republisher that Cloud Tasks never calls',
    'delay',
    { REPUBLISHER_URL: 'http://r.example', REPUBLISHER_SERVICE_ACCOUNT: 'a@b' },
    /REPUBLISHER_URL is "http:\/\/r.example"; accepted: an https URL/,
  ],
  ['a Tasks address without a port', 'delay', { CLOUD_TASKS_EMULATOR_HOST: 'localhost' }, /host:port/],
  [
    'a Tasks address with no such port',
    'delay',
    { CLOUD_TASKS_EMULATOR_HOST: 'h:99999' },
    /HOST is "h:99999"/,
  ],
  ['a project with a space', 'fifo', { GOOGLE_CLOUD_PROJECT: 'a b' }, /GOOGLE_CLOUD_PROJECT is "a b"/],
  [
    'a full name with a space',
    'fifo',
    { TARGET_TOPIC: 'projects/p/topics/a b' },
    /TARGET_TOPIC is "projects/,
  ],
  [
    'dead letters among the messages',
    'fifo',
    { DEAD_LETTER_TOPIC: 'out' },
    /DEAD_LETTER_TOPIC is .*TARGET_TOPIC/,
  ],
  [
    'a pipeline in a circle',
    'pipeline',
    { SOURCE_TOPIC: 'out' },
    /SOURCE_TOPIC is .*another topic than TARGET_TOPIC/,
  ],
  [
    'dead letters in a circle',
    'pipeline',
    { SOURCE_TOPIC: 'dead' },
    /SOURCE_TOPIC is .*than DEAD_LETTER_TOPIC/,
  ],
  ['a lease without time', 'dedup', { DEDUP_LEASE: '1ms' }, /DEDUP_LEASE is "1ms"; accepted: at least 1s/],
  [
    'a lease of a key without time',
    'fifo',
    { ORDER_LEASE: '1ms' },
    /ORDER_LEASE is "1ms"; accepted: at least 1s/,
  ],
  [
    'more time than a delivery has',
    'dedup',
    { HANDLER_TIMEOUT: '11m' },
    /HANDLER_TIMEOUT is "11m"; accepted: at most the longest ack deadline \(600s\)/,
  ],
  ['a database that is none', 'fifo', { FIRESTORE_DATABASE: 'a/b' }, /FIRESTORE_DATABASE is "a\/b"/],
  [
    'two republishers',
    'delay',
    { REPUBLISHER_URL: 'https://r.example', REPUBLISHER_SERVICE: 's' },
    /REPUBLISHER_SERVICE is "s"; accepted: not together/,
  ],
  [
    'an account for no URL',
    'delay',
    { REPUBLISHER_SERVICE_ACCOUNT: 'a@b' },
    /REPUBLISHER_SERVICE_ACCOUNT is "a@b"; accepted: only with/,
  ],
  [
    'an account that is none',
    'delay',
    { REPUBLISHER_URL: 'https://r.example', REPUBLISHER_SERVICE_ACCOUNT: 'a' },
    /REPUBLISHER_SERVICE_ACCOUNT is "a"/,
  ],
  ['a service that is none', 'delay', { REPUBLISHER_SERVICE: 'a b' }, /REPUBLISHER_SERVICE is "a b"/],
  [
    'a Redis URL that cannot be read',
    'dedup',
    { DEDUP_STORE: 'redis', REDIS_URL: 'redis:// bad host' },
    /REDIS_URL is not a Redis URL/,
  ],
  ['a collection prefix with a slash', 'fifo', { COLLECTION_PREFIX: 'a/b' }, /COLLECTION_PREFIX is "a\/b"/],
];

for (const [what, target, variables, says] of REFUSED) {
  test(`refuses ${what}, naming the variable`, () => {
    assert.throws(() => readConfig({ ...BASE, ...variables }, target), {
      name: 'ConfigError',
      message: says,
    });
  });
}

test('does not repeat a Redis URL that it refuses, because it may hold a password', () => {
  const variables = { ...BASE, DEDUP_STORE: 'redis', REDIS_URL: 'secret@host' };
  assert.throws(
    () => readConfig(variables, 'dedup'),
    (error: Error) => !error.message.includes('secret'),
  );
});

test('keys in Redis may have a prefix of their own', () => {
  const redis = { ...BASE, DEDUP_STORE: 'redis', REDIS_URL: 'redis://r:6379' };
  assert.equal(readConfig(redis, 'dedup').dedup?.redisPrefix, undefined);
  assert.equal(readConfig({ ...redis, REDIS_PREFIX: 'run-1:' }, 'dedup').dedup?.redisPrefix, 'run-1:');
  assert.throws(
    () => readConfig({ ...redis, REDIS_PREFIX: 'a b' }, 'dedup'),
    /REDIS_PREFIX is "a b"; accepted: at most 100 characters without a space/,
  );
  assert.throws(
    () => readConfig({ ...BASE, REDIS_PREFIX: 'run-1:' }, 'dedup'),
    /REDIS_PREFIX is "run-1:"; accepted: only with DEDUP_STORE=redis/,
  );
});

test('wake-ups and the outbox are read where they mean something, and refused elsewhere', () => {
  const wake = { WAKE_QUEUE: 'wake', WAKE_URL: 'https://f', WAKE_SERVICE_ACCOUNT: 'a@b' };
  const { wake: read, outbox } = readConfig({ ...BASE, ...wake, OUTBOX: 'on' }, 'fifo');
  assert.equal(read?.queue, 'projects/p/locations/us-central1/queues/wake');
  assert.deepEqual(outbox, { isOn: true });
  assert.throws(
    () => readConfig({ ...BASE, ...wake }, 'delay'),
    /WAKE_QUEUE is .*only for fifo and pipeline/,
  );
  const scope = { COUNTER_SCOPE: 's', ORDER_START: 'counter' };
  assert.equal(readConfig({ ...BASE, ...scope }, 'fifo').outbox.counterScope, 's');
  assert.throws(
    () => readConfig({ ...BASE, ...scope }, 'delay'),
    /COUNTER_SCOPE is "s"; accepted: only with/,
  );
});
