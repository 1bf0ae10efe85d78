import assert from 'node:assert/strict';
import { test } from 'node:test';
import { orderConfig } from './order-config.ts';

test('by default a stream waits and is blocked: nothing is skipped or acknowledged unasked', () => {
  assert.deepEqual(orderConfig({}), {
    lease: '60s',
    start: 1,
    maxAttempts: 10,
    onPoison: 'block',
    onGap: 'wait',
    gap: { timeout: '5m' },
    onUnknownStale: 'deadLetter',
    scope: 'source',
  });
});

test('each variable is read', () => {
  const environment = {
    ORDER_LEASE: '5s',
    ORDER_START: '42',
    ORDER_MAX_ATTEMPTS: '3',
    ORDER_ON_POISON: 'skip',
    ORDER_ON_GAP: 'skip',
    ORDER_GAP_TIMEOUT: '1h',
    ORDER_ON_UNKNOWN_STALE: 'ack',
    ORDER_SCOPE: 'consumer',
  };
  assert.deepEqual(orderConfig(environment), {
    lease: '5s',
    start: 42,
    maxAttempts: 3,
    onPoison: 'skip',
    onGap: 'skip',
    gap: { timeout: '1h' },
    onUnknownStale: 'ack',
    scope: 'consumer',
  });
});

test('a stream may begin at its publisher’s counter', () => {
  assert.equal(orderConfig({ ORDER_START: 'counter' }).start, 'counter');
  assert.throws(
    () => orderConfig({ ORDER_START: 'first' }),
    /ORDER_START is "first"; accepted: a whole number from 1, or counter/,
  );
});

test('a wrong value is refused by the name of its variable', () => {
  const wrong = {
    ORDER_START: '0',
    ORDER_MAX_ATTEMPTS: '1.5',
    ORDER_ON_POISON: 'halt',
    ORDER_ON_GAP: 'forever',
    ORDER_GAP_TIMEOUT: '10ms',
    ORDER_ON_UNKNOWN_STALE: 'drop',
    ORDER_SCOPE: 'topic',
  };
  for (const [variable, value] of Object.entries(wrong)) {
    assert.throws(() => orderConfig({ [variable]: value }), new RegExp(`${variable} is "?${value}`));
  }
});
