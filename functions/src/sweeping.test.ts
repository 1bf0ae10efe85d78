import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silent, type Swept } from 'pubsub-guarantees';
import { virtualClock } from 'pubsub-guarantees/testing';
import { runSweeps } from './sweeping.ts';

const swept = (due: number): Swept => ({ due, done: 0, failed: 0, isWhole: true });

const CONFIG = { consumer: 'c', timeout: '60s' } as const;

test('all sweeps run, for the function’s own consumer, and each answers under its name', async () => {
  const clock = virtualClock();
  const consumers: string[] = [];
  const sweep = async ({ consumer }: { consumer: string }): Promise<Swept> => {
    consumers.push(consumer);
    return swept(consumers.length);
  };
  const answer = await runSweeps({ order: sweep, schedules: sweep, payloads: sweep }, CONFIG, clock, silent);
  assert.deepEqual(answer, { order: swept(1), schedules: swept(2), payloads: swept(3) });
  assert.deepEqual(consumers, ['c', 'c', 'c']);
  assert.equal(clock.pending(), 0);
});

test('a sweep that fails keeps no other from its work, and its error is the answer', async () => {
  const clock = virtualClock();
  let done = false;
  const failing = (): Promise<Swept> => Promise.reject(new Error('the store is down'));
  const slow = async (): Promise<Swept> => {
    await new Promise<void>((resolve) => clock.after(1_000, resolve));
    done = true;
    return swept(0);
  };
  const sweeps = { schedules: failing, payloads: slow };
  await assert.rejects(clock.until(runSweeps(sweeps, CONFIG, clock, silent)), /the store is down/);
  assert.equal(done, true);
});

test('the signal of a sweep aborts when the time of a delivery is over', async () => {
  const clock = virtualClock();
  const waits = ({ signal, deadline }: { signal: AbortSignal; deadline: number }): Promise<Swept> =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve(swept(deadline))));
  const answer = await clock.until(runSweeps({ order: waits }, CONFIG, clock, silent));
  assert.deepEqual(answer, { order: swept(60_000) });
  assert.equal(clock.monotonic(), 60_000);
});
