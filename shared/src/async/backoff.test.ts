import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualClock } from '../testing/index.ts';
import { pauseAfter, retryMomentary } from './backoff.ts';

test('a pause doubles with each failure, up to the longest, however many there are', () => {
  const growth = { minMs: 100, maxMs: 1_000 };
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5, 1e9].map((failures) => pauseAfter(failures, growth)),
    [100, 100, 200, 400, 800, 1_000, 1_000],
  );
  assert.equal(pauseAfter(1e9, { minMs: 0, maxMs: 1_000 }), 0);
});

test('what fails for the moment is called again until the time is over, anything else once', async () => {
  const clock = virtualClock();
  const began = clock.monotonic();
  const times: number[] = [];
  const how = { until: began + 2_000, signal: undefined, isMomentary: () => true, random: () => 1 };
  const failing = async (): Promise<never> => {
    times.push(clock.monotonic() - began);
    throw new Error(`failure ${times.length}`);
  };
  await assert.rejects(clock.until(retryMomentary(clock, how, failing)), /failure 4/);
  assert.deepEqual(times, [0, 200, 600, 1_400]);
  const permanent = { ...how, until: clock.monotonic() + 2_000, isMomentary: () => false };
  await assert.rejects(clock.until(retryMomentary(clock, permanent, failing)), /failure 5/);
});

test('a caller that is gone is not tried for again', async () => {
  const clock = virtualClock();
  const gone = new AbortController();
  let calls = 0;
  const how = { until: Infinity, signal: gone.signal, isMomentary: () => true, random: () => 0 };
  const trying = retryMomentary(clock, how, async () => {
    calls += 1;
    throw new Error('busy');
  });
  gone.abort();
  await assert.rejects(clock.until(trying), /busy/);
  assert.equal(calls, 1);
});
