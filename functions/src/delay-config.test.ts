import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError } from 'pubsub-guarantees';
import { delayConfig } from './delay-config.ts';

const BASE = { TARGET_TOPIC: 'out', SOURCE_TOPIC: 'source', TASKS_LOCATION: 'us-central1' };
const read = (variables: Record<string, string>) =>
  delayConfig({ ...BASE, ...variables }, 'p', 'TARGET_TOPIC');
const full = (id: string): string => `projects/p/locations/us-central1/queues/${id}`;

test('one queue, as it always was, and several: by ID or by full name', () => {
  assert.deepEqual(read({ DELAY_QUEUE: 'a' }).queues, [full('a')]);
  assert.deepEqual(read({ DELAY_QUEUES: 'a' }).queues, [full('a')]);
  const elsewhere = 'projects/q/locations/europe-west1/queues/c';
  assert.deepEqual(read({ DELAY_QUEUES: `a, b ,${elsewhere}` }).queues, [full('a'), full('b'), elsewhere]);
  assert.deepEqual(read({ DELAY_QUEUES: elsewhere, TASKS_LOCATION: '' }).queues, [elsewhere]);
  assert.deepEqual(read({ DELAY_QUEUES: ' ', DELAY_QUEUE: 'a' }).queues, [full('a')]);
});

test('the ledger keeps what has a key unless all is asked for or nothing; the payload store is on', () => {
  const { ledger, payloads } = read({ DELAY_QUEUE: 'a' });
  assert.deepEqual([ledger, payloads], ['keys', true]);
  for (const value of ['keys', 'all', 'off'] as const) {
    assert.equal(read({ DELAY_QUEUE: 'a', DELAY_LEDGER: value }).ledger, value);
  }
  assert.equal(read({ DELAY_QUEUE: 'a', DELAY_PAYLOADS: 'off' }).payloads, false);
});

const REFUSED: readonly (readonly [what: string, variables: Record<string, string>, says: RegExp])[] = [
  ['no queue', {}, /^DELAY_QUEUE is not set; accepted: .*DELAY_QUEUES/],
  ['both', { DELAY_QUEUE: 'a', DELAY_QUEUES: 'b,c' }, /^DELAY_QUEUE is "a"; accepted: not together/],
  ['one of them twice', { DELAY_QUEUES: 'a,b,a' }, /^DELAY_QUEUES is "a,b,a"; accepted: each queue once/],
  [
    'one of them twice in two forms',
    { DELAY_QUEUES: `a,${full('a')}` },
    /^DELAY_QUEUES is .* each queue once/,
  ],
  ['an empty one', { DELAY_QUEUES: 'a,,b' }, /^DELAY_QUEUES is ""; accepted: a queue ID/],
  ['one that is none', { DELAY_QUEUES: 'a,b/c' }, /^DELAY_QUEUES is "b\/c"; accepted: a queue ID/],
  ['spaces for commas', { DELAY_QUEUES: 'a b' }, /^DELAY_QUEUES is "a b"; accepted: a queue ID/],
  ['an ID without its location', { DELAY_QUEUES: 'a', TASKS_LOCATION: '' }, /^TASKS_LOCATION is not set/],
  [
    'a ledger that is none',
    { DELAY_QUEUE: 'a', DELAY_LEDGER: 'on' },
    /^DELAY_LEDGER is "on"; accepted: keys or all or off/,
  ],
  [
    'another word for no',
    { DELAY_QUEUE: 'a', DELAY_PAYLOADS: 'no' },
    /^DELAY_PAYLOADS is "no"; accepted: on or off/,
  ],
];
for (const [what, variables, says] of REFUSED) {
  test(`refuses ${what}, naming the variable`, () => {
    assert.throws(
      () => read(variables),
      (error) => error instanceof ConfigError && says.test(error.message),
    );
  });
}
