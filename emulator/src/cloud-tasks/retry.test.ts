import assert from 'node:assert/strict';
import test from 'node:test';
import { backoffMs, givesUp, type RetryConfig } from './retry.ts';

const RETRY: RetryConfig = {
  maxAttempts: 100,
  maxRetryDurationMs: 0,
  minBackoffMs: 10_000,
  maxBackoffMs: 300_000,
  maxDoublings: 3,
};

const intervals = (retry: RetryConfig, count: number): number[] =>
  Array.from({ length: count }, (_, index) => backoffMs(retry, index + 1) / 1000);

test('backs off as the example of the API reference: doubled three times, then linear, then the maximum', () => {
  assert.deepEqual(intervals(RETRY, 9), [10, 20, 40, 80, 160, 240, 300, 300, 300]);
});

test('doubles from 0.1 s to the maximum with the defaults of the service', () => {
  const retry = { ...RETRY, minBackoffMs: 100, maxBackoffMs: 3_600_000, maxDoublings: 16 };
  assert.deepEqual(intervals(retry, 5), [0.1, 0.2, 0.4, 0.8, 1.6]);
  assert.equal(backoffMs(retry, 16), 3_276_800);
  assert.equal(backoffMs(retry, 17), 3_600_000);
  assert.equal(backoffMs(retry, 100_000), 3_600_000);
});

test('never overflows with absurd doublings', () => {
  assert.equal(backoffMs({ ...RETRY, maxDoublings: 2 ** 31 - 1 }, 5000), 300_000);
});

test('ends after the last attempt', () => {
  assert.equal(givesUp({ ...RETRY, maxAttempts: 3 }, 2, 0), false);
  assert.equal(givesUp({ ...RETRY, maxAttempts: 3 }, 3, 0), true);
});

test('ends only when both the attempts and the duration are used up', () => {
  const retry = { ...RETRY, maxAttempts: 3, maxRetryDurationMs: 60_000 };
  assert.equal(givesUp(retry, 5, 59_999), false);
  assert.equal(givesUp(retry, 2, 60_000), false);
  assert.equal(givesUp(retry, 3, 60_000), true);
});

test('never ends without limits, and ends by the duration alone when attempts are unlimited', () => {
  const unlimited = { ...RETRY, maxAttempts: -1 };
  assert.equal(givesUp(unlimited, 1_000_000, 1e12), false);
  assert.equal(givesUp({ ...unlimited, maxRetryDurationMs: 60_000 }, 1, 59_999), false);
  assert.equal(givesUp({ ...unlimited, maxRetryDurationMs: 60_000 }, 1, 60_000), true);
});
