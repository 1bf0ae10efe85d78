import assert from 'node:assert/strict';
import test from 'node:test';
import { sleep } from '../clock.ts';
import { virtualClock } from './virtual-clock.ts';

test('does not advance until it is moved', async () => {
  const clock = virtualClock(1_000);
  let fired = false;
  clock.after(10, () => {
    fired = true;
  });
  await clock.advance(9);
  assert.deepEqual([clock.now(), clock.monotonic(), fired], [1_009, 9, false]);
  await clock.advance(1);
  assert.deepEqual([clock.now(), fired, clock.pending()], [1_010, true, 0]);
});

test('fires in order of time, then of making, and reads the time of each', async () => {
  const clock = virtualClock(0);
  const fired: string[] = [];
  const set = (name: string, at: number): unknown =>
    clock.after(at, () => fired.push(`${name}@${clock.now()}`));
  set('b', 20);
  set('a', 10);
  set('c', 20);
  set('now', -5);
  await clock.advance(100);
  assert.deepEqual(fired, ['now@0', 'a@10', 'b@20', 'c@20']);
  assert.equal(clock.now(), 100);
});

test('never calls back inside after(), not even for zero', async () => {
  const clock = virtualClock();
  let fired = false;
  clock.after(0, () => {
    fired = true;
  });
  assert.equal(fired, false);
  await clock.advance(0);
  assert.equal(fired, true);
});

test('finishes what follows from a timer before the next one fires', async () => {
  const clock = virtualClock(0);
  const steps: string[] = [];
  const chain = async (): Promise<void> => {
    for (let step = 0; step < 5; step += 1) await Promise.resolve();
    steps.push('chain of the first');
    clock.after(5, () => steps.push('made on the way'));
  };
  clock.after(10, () => void chain());
  clock.after(20, () => steps.push('second'));
  await clock.advance(30);
  assert.deepEqual(steps, ['chain of the first', 'made on the way', 'second']);
});

test('a cancelled timer does not fire, and cancelling twice is harmless', async () => {
  const clock = virtualClock();
  let fired = 0;
  const cancel = clock.after(5, () => (fired += 1));
  cancel();
  cancel();
  await clock.advance(10);
  assert.equal(fired, 0);
});

test('until() moves as far as the promise needs, and passes a rejection on', async () => {
  const clock = virtualClock(0);
  assert.equal(await clock.until(sleep(clock, 500).then(() => 'done')), 'done');
  assert.equal(clock.monotonic(), 500);
  await assert.rejects(clock.until(sleep(clock, 5).then(() => Promise.reject(new Error('no')))), /no/);
});

test('until() fails rather than hanging when no timer can help', async () => {
  const clock = virtualClock(0);
  await assert.rejects(clock.until(new Promise(() => {})), /no timer is left/);
  await assert.rejects(clock.until(sleep(clock, 7_200_000), 1_000), /no timer is left/);
});

test('runToIdle() runs repeating work up to its limit', async () => {
  const clock = virtualClock(0);
  let ticks = 0;
  const tick = (): void => {
    ticks += 1;
    clock.after(1_000, tick);
  };
  clock.after(1_000, tick);
  await clock.runToIdle(10_000);
  assert.equal(ticks, 10);
});

test('sleep ends when its signal is aborted, and leaves no timer', async () => {
  const clock = virtualClock(0);
  const controller = new AbortController();
  const asleep = sleep(clock, 1_000, controller.signal);
  controller.abort();
  await asleep;
  assert.equal(clock.pending(), 0);
  await sleep(clock, 1_000, controller.signal);
});
