import assert from 'node:assert/strict';
import test from 'node:test';
import { createTokenBucket } from './token-bucket.ts';

const ROUNDING = 1e-6;

test('gives its burst at once and then one token per interval', () => {
  const bucket = createTokenBucket(10, 3, 0);
  assert.deepEqual([bucket.take(0), bucket.take(0), bucket.take(0)], [0, 0, 0]);
  assert.equal(bucket.take(0), 100);
  assert.equal(bucket.take(40), 60);
  assert.equal(bucket.take(100), 0);
  assert.equal(bucket.take(100), 100);
});

test('waiting as long as it says is always enough, also for rates without a finite fraction', () => {
  for (const rate of [0.3, 3, 7, 499, 500]) {
    const bucket = createTokenBucket(rate, 1, 0);
    let now = 0;
    assert.equal(bucket.take(now), 0);
    for (let count = 0; count < 200; count += 1) {
      const wait = bucket.take(now);
      assert.ok(wait > 0);
      now += wait;
      assert.equal(bucket.take(now), 0, `rate ${rate}, count ${count}, now ${now}`);
    }
    assert.ok(200 <= (now * rate) / 1000 + ROUNDING, `rate ${rate}: 200 tokens in ${now} ms`);
  }
});

test('never holds more than its burst, and is not emptied by a clock that goes back', () => {
  const bucket = createTokenBucket(500, 2, 1_000_000);
  assert.equal(bucket.take(500), 0);
  assert.deepEqual([bucket.take(9e9), bucket.take(9e9)], [0, 0]);
  assert.ok(bucket.take(9e9) > 0);
});
