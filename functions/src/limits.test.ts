import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError, toMilliseconds } from 'pubsub-guarantees';
import { readConfig } from './config.ts';
import { claimCall, type LimitName, orderCall, orderTransaction, RELATIONS } from './limits.ts';

const BASE = {
  GOOGLE_CLOUD_PROJECT: 'p',
  TARGET_TOPIC: 'out',
  DEAD_LETTER_TOPIC: 'dead',
  SOURCE_TOPIC: 'source',
  DELAY_QUEUE: 'later',
  TASKS_LOCATION: 'us-central1',
};

type Case = Readonly<{
  relation: `${LimitName} < ${LimitName}`;
  name: string;
  /** Just what does not fit, and what it says. */
  refused: Record<string, string>;
  says: string;
  /** Just what fits. */
  accepted: Record<string, string>;
}>;

/** One for each relation between settings; those about calls hold for every lease, and are tested below. */
const CASES: readonly Case[] = [
  {
    relation: 'least time for what once runs < HANDLER_TIMEOUT',
    name: 'dedup',
    refused: { HANDLER_TIMEOUT: '9s' },
    says: 'HANDLER_TIMEOUT is "9s"; accepted: at least 2 times the least time for what once runs (5s), because ',
    accepted: { HANDLER_TIMEOUT: '10s' },
  },
  {
    relation: 'least time for what once runs < ORDER_LEASE',
    name: 'pipeline',
    refused: { ORDER_LEASE: '5s' },
    says: 'ORDER_LEASE is "5s"; accepted: at least 2 times the least time for what once runs (5s), because ',
    accepted: { ORDER_LEASE: '10s' },
  },
  {
    relation: 'longest publish < HANDLER_TIMEOUT',
    name: 'fifo',
    refused: { HANDLER_TIMEOUT: '9999ms' },
    says: 'HANDLER_TIMEOUT is "9999ms"; accepted: at least the longest publish (10s), because ',
    accepted: { HANDLER_TIMEOUT: '10s' },
  },
  {
    relation: 'HANDLER_TIMEOUT < longest ack deadline',
    name: 'delay',
    refused: { HANDLER_TIMEOUT: '601s' },
    says: 'HANDLER_TIMEOUT is "601s"; accepted: at most the longest ack deadline (600s), because ',
    accepted: { HANDLER_TIMEOUT: '600s' },
  },
  {
    relation: 'HANDLER_TIMEOUT < FUNCTION_TIMEOUT',
    name: 'delay',
    refused: { HANDLER_TIMEOUT: '30s', FUNCTION_TIMEOUT: '30s' },
    says: 'HANDLER_TIMEOUT is "30s"; accepted: less than FUNCTION_TIMEOUT (30s), because ',
    accepted: { HANDLER_TIMEOUT: '30s', FUNCTION_TIMEOUT: '31s' },
  },
  {
    relation: 'HANDLER_TIMEOUT < DEDUP_RETENTION',
    name: 'dedup',
    refused: { HANDLER_TIMEOUT: '60s', DEDUP_RETENTION: '119s' },
    says: 'HANDLER_TIMEOUT is "60s"; accepted: at most half of DEDUP_RETENTION (119s), because ',
    accepted: { HANDLER_TIMEOUT: '60s', DEDUP_RETENTION: '2m' },
  },
  {
    relation: 'DEDUP_LEASE < DEDUP_RETENTION',
    name: 'pipeline',
    refused: { DEDUP_LEASE: '8d' },
    says: 'DEDUP_LEASE is "8d"; accepted: less than DEDUP_RETENTION (8d), because ',
    accepted: { DEDUP_LEASE: '7d' },
  },
  {
    relation: 'HANDLER_TIMEOUT < ORDER_GAP_TIMEOUT',
    name: 'fifo',
    refused: { ORDER_ON_GAP: 'skip', ORDER_GAP_TIMEOUT: '59s' },
    says: 'HANDLER_TIMEOUT is "60s"; accepted: at most ORDER_GAP_TIMEOUT (59s), because ',
    accepted: { ORDER_ON_GAP: 'skip', ORDER_GAP_TIMEOUT: '60s' },
  },
];

for (const { relation, name, refused, says, accepted } of CASES) {
  test(`does not start where this does not hold: ${relation}`, () => {
    assert.throws(
      () => readConfig({ ...BASE, ...refused }, name),
      (error: Error) => {
        assert.ok(error instanceof ConfigError);
        assert.deepEqual([error.code, error.option?.path], ['INVALID_OPTION', says.split(' ')[0]]);
        assert.ok(error.message.startsWith(says), error.message);
        return true;
      },
    );
    readConfig({ ...BASE, ...accepted }, name);
  });
}

const CALLS = [
  'longest call for a claim < DEDUP_LEASE',
  'longest call for a stream < ORDER_LEASE',
  'longest transaction for a stream < ORDER_LEASE',
];

test('each relation of the table has a test here', () => {
  const named = RELATIONS.map(({ small, large }) => `${small} < ${large}`);
  const tested: readonly string[] = [...CASES.map(({ relation }) => relation), ...CALLS];
  assert.deepEqual(named.toSorted(), tested.toSorted());
});

test('calls of a store end while the lease that they are about holds, however short it is', () => {
  for (const lease of ['1s', '2s', '10s', '30s', '1h'] as const) {
    const leaseMs = toMilliseconds(lease);
    assert.ok(toMilliseconds(claimCall(lease)) * 2 <= leaseMs, lease);
    assert.ok(toMilliseconds(orderCall(lease)) * 2 <= leaseMs, lease);
    assert.ok(toMilliseconds(orderTransaction(lease)) <= leaseMs, lease);
    readConfig({ ...BASE, DEDUP_LEASE: lease }, 'dedup');
    readConfig({ ...BASE, ORDER_LEASE: lease }, 'fifo');
  }
  assert.deepEqual([claimCall('1h'), orderCall('1h'), orderTransaction('1h')], ['5s', '10s', '20s']);
});

test('a relation is not judged for a function that does not have it', () => {
  readConfig({ ...BASE, ORDER_LEASE: '1s' }, 'fifo');
  readConfig({ ...BASE, ORDER_LEASE: '1s', ORDER_ON_GAP: 'skip', ORDER_GAP_TIMEOUT: '1s' }, 'dedup');
  readConfig({ ...BASE, DEDUP_RETENTION: '2s', DEDUP_LEASE: '3s' }, 'delay');
  readConfig({ ...BASE, ORDER_GAP_TIMEOUT: '1s' }, 'fifo');
});
