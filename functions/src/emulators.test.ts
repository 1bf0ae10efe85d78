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
const VARIABLES = ['PUBSUB_EMULATOR_HOST', 'FIRESTORE_EMULATOR_HOST', 'CLOUD_TASKS_EMULATOR_HOST'];
const NAMES = ['dedup', 'delay', 'fifo', 'pipeline'];

const NO_ADDRESSES = [
  'something',
  'localhost',
  '::1:21000',
  '::1',
  '[::1]',
  'h:0',
  'h:99999',
  'h:',
  ':8085',
  'http://127.0.0.1:8085',
  '127.0.0.1:8085/',
  ' 127.0.0.1:8085',
  ' ',
  'a b:8085',
  '127.0.0.1:8085,127.0.0.1:8086',
];

for (const variable of VARIABLES) {
  test(`${variable} with an address that no client can use does not start, whatever the function`, () => {
    for (const name of NAMES) {
      for (const value of NO_ADDRESSES) {
        assert.throws(
          () => readConfig({ ...BASE, [variable]: value }, name),
          (error: Error) => {
            assert.equal(error.name, 'ConfigError');
            assert.ok(
              error.message.startsWith(`${variable} is ${JSON.stringify(value)}; accepted: host:port`),
            );
            return true;
          },
          `${name} ${value}`,
        );
      }
    }
  });

  test(`${variable} on a deployed instance does not start, and says that it is one`, () => {
    for (const mark of ['K_SERVICE', 'K_REVISION', 'GAE_INSTANCE', 'GAE_DEPLOYMENT_ID', 'GAE_VERSION']) {
      const environment = { ...BASE, [variable]: '127.0.0.1:8085', [mark]: 'orders' };
      assert.throws(() => readConfig(environment, 'pipeline'), {
        name: 'ConfigError',
        message: `${variable} is "127.0.0.1:8085"; accepted: not set on a deployed instance, which this is (${mark} is "orders")`,
      });
    }
  });
}

test('addresses of emulators are taken as they are, IPv6 in brackets too, and empty ones are none', () => {
  const good = [
    '127.0.0.1:8085',
    'localhost:8085',
    '[::1]:8085',
    'pubsub_1.test-net:1',
    '[::ffff:127.0.0.1]:65535',
  ];
  for (const value of good) {
    const set = Object.fromEntries(VARIABLES.map((variable) => [variable, value]));
    const { emulators } = readConfig({ ...BASE, ...set }, 'pipeline');
    assert.deepEqual(emulators, { pubsub: value, firestore: value, tasks: value });
  }
  const empty = Object.fromEntries(VARIABLES.map((variable) => [variable, '']));
  assert.deepEqual(readConfig({ ...BASE, ...empty, K_SERVICE: 'orders' }, 'delay').emulators, {});
});
