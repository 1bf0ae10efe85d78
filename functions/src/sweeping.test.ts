import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silent } from 'pubsub-guarantees';
import { virtualClock } from 'pubsub-guarantees/testing';
import { runSweeps } from './sweeping.ts';

const CONFIG = { consumer: 'c', timeout: '60s' } as const;

test('all sweeps run, for the function’s own consumer, and each answers under its name', async () => {
  const clock = virtualClock();
  const consumers: string[] = [];
  const sweep = async ({ consumer }: { consumer: string }): Promise<object> => {
    consumers.push(consumer);
    return { done: consumers.length };
  };
  const answer = await runSweeps({ order: sweep, schedules: sweep, payloads: sweep }, CONFIG, clock, silent);
  assert.deepEqual(answer, { order: { done: 1 }, schedules: { done: 2 }, payloads: { done: 3 } });
  assert.deepEqual(consumers, ['c', 'c', 'c']);
  assert.equal(clock.pending(), 0);
});

test('one that fails keeps no other from its work, and is what the caller hears', async () => {
  const clock = virtualClock();
  let done = false;
  const failing = (): Promise<object> => Promise.reject(new Error('the store is down'));
  const slow = async (): Promise<object> => {
    await new Promise<void>((resolve) => clock.after(1_000, resolve));
    done = true;
    return {};
  };
  const sweeps = { schedules: failing, payloads: slow };
  await assert.rejects(clock.until(runSweeps(sweeps, CONFIG, clock, silent)), /the store is down/);
  assert.equal(done, true);
});

test('a sweep is told when the time of a delivery is over', async () => {
  const clock = virtualClock();
  const waits = ({ signal, deadline }: { signal: AbortSignal; deadline: number }): Promise<object> =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve({ deadline })));
  const answer = await clock.until(runSweeps({ order: waits }, CONFIG, clock, silent));
  assert.deepEqual(answer, { order: { deadline: 60_000 } });
  assert.equal(clock.monotonic(), 60_000);
});
