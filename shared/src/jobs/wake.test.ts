import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualClock } from '../testing/index.ts';
import { coalesced } from './wake.ts';

test('a burst of wake-ups is two calls: the first at once, the last after the pause; each role has its own', async () => {
  const clock = virtualClock();
  const sent: [string, number][] = [];
  const wake = coalesced(clock, 100, async (role) => void sent.push([role, clock.monotonic()]));
  await wake('a');
  const last = Array.from({ length: 50 }, () => wake('a'));
  await wake('b');
  await clock.advance(99);
  assert.deepEqual(sent, [
    ['a', 0],
    ['b', 0],
  ]);
  await clock.advance(1);
  await Promise.all(last);
  assert.deepEqual(sent.at(-1), ['a', 100]);
  assert.equal(sent.length, 3);
  for (let round = 0; round < 1_000; round += 1) {
    void wake('a');
    await clock.advance(1);
  }
  await clock.advance(100);
  assert.ok(sent.length <= 3 + 11, `${sent.length} calls in 1.1 s`);
});

test('a wake-up that fails is left to the poll, and the next one is sent', async () => {
  const clock = virtualClock();
  let calls = 0;
  const wake = coalesced(clock, 100, async () => {
    calls += 1;
    throw new Error('away');
  });
  await wake('a');
  const next = wake('a');
  await clock.advance(100);
  await next;
  assert.equal(calls, 2);
});
