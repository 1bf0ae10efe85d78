import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { virtualClock } from '../testing/index.ts';
import { budget, inTime, unlessAborted, withSignal } from './time-limit.ts';

test('work under a signal that is aborted already is not begun', async () => {
  const over = new AbortController();
  over.abort(new Error('lease lost'));
  let runs = 0;
  const work = async (): Promise<string> => {
    runs += 1;
    return 'done';
  };
  await assert.rejects(unlessAborted(over.signal, work), /lease lost/);
  assert.equal(runs, 0);
});

test('work ends with the signal, and otherwise as it ends', async () => {
  const over = new AbortController();
  assert.equal(await unlessAborted(over.signal, async () => 'done'), 'done');
  const never = unlessAborted(over.signal, () => new Promise(() => {}));
  over.abort(new Error('lease lost'));
  await assert.rejects(never, /lease lost/);
});

test('a budget is one for all its calls: what comes when it is used up is not begun', async () => {
  const clock = virtualClock();
  const within = budget(clock, 100, () => new Error('too slow'));
  await clock.until(within(() => sleep(clock, 60)));
  await assert.rejects(clock.until(within(() => sleep(clock, 60))), /too slow/);
  let calls = 0;
  const third = within(async () => {
    calls += 1;
  });
  await assert.rejects(third, /too slow/);
  assert.equal(calls, 0);
});

test('a limited signal is aborted in time, and what works under it is waited for', async () => {
  const clock = virtualClock();
  const work = withSignal(clock, 50, new AbortController().signal, async (limited) => {
    await sleep(clock, 200, limited);
    return [limited.aborted, clock.monotonic()];
  });
  assert.deepEqual(await clock.until(work), [true, clock.monotonic()]);
});

test('what is not there in time is undefined', async () => {
  const clock = virtualClock();
  const { signal } = new AbortController();
  const answer = (afterMs: number) => sleep(clock, afterMs).then(() => 'answer');
  assert.equal(await clock.until(inTime(clock, 100, signal, answer(50))), 'answer');
  assert.equal(await clock.until(inTime(clock, 100, signal, answer(150))), undefined);
  assert.equal(await clock.until(inTime(clock, 100, AbortSignal.abort(), answer(50))), undefined);
});
