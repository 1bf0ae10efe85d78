import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RealTimers, systemClock } from './clock.ts';

/** Timers of a process that is kept from work at times: it fires what is due when it works again. */
function heldUp(): RealTimers &
  Readonly<{ works(milliseconds: number): void; isKept(milliseconds: number): void }> {
  let now = 0;
  const pending = new Set<Readonly<{ dueMs: number; callback: () => void }>>();
  return {
    monotonic: () => now,
    set(milliseconds, callback) {
      const timer = { dueMs: now + milliseconds, callback };
      pending.add(timer);
      return () => pending.delete(timer);
    },
    works(milliseconds) {
      const end = now + milliseconds;
      for (;;) {
        const [next] = [...pending].toSorted((one, other) => one.dueMs - other.dueMs);
        if (next === undefined || next.dueMs > end) break;
        pending.delete(next);
        now = Math.max(now, next.dueMs);
        next.callback();
      }
      now = end;
    },
    isKept: (milliseconds) => void (now += milliseconds),
  };
}

test('a timer that is due while its process works fires at its time', () => {
  const timers = heldUp();
  const fired: number[] = [];
  systemClock(timers).after(1_000, () => fired.push(timers.monotonic()));
  timers.works(5_000);
  assert.deepEqual(fired, [1_000]);
});

test('one that was due while its process got no time waits as long again, a second at most', () => {
  for (const [keptMs, moreMs] of [
    [1_600, 600],
    [10_000, 1_000],
    [8 * 3_600_000, 1_000],
  ] as const) {
    const timers = heldUp();
    const fired: number[] = [];
    systemClock(timers).after(1_000, () => fired.push(timers.monotonic()));
    timers.isKept(keptMs);
    timers.works(5_000);
    assert.deepEqual(fired, [keptMs + moreMs], `kept for ${keptMs} ms`);
  }
});

test('a process that is late again and again comes to an end after three times', () => {
  const timers = heldUp();
  let fired = 0;
  systemClock(timers).after(1_000, () => (fired += 1));
  const seen: number[] = [];
  for (let turn = 0; turn < 4; turn += 1) {
    timers.isKept(3_000);
    timers.works(0);
    seen.push(fired);
  }
  assert.deepEqual(seen, [0, 0, 0, 1]);
});

test('what is to happen at once does, and a little late is not late', () => {
  const timers = heldUp();
  const fired: string[] = [];
  const clock = systemClock(timers);
  clock.after(0, () => fired.push('at once'));
  clock.after(1_000, () => fired.push('due'));
  timers.isKept(1_100);
  timers.works(0);
  assert.deepEqual(fired, ['at once', 'due']);
});

test('a timer is cancelled at any time, also while it waits once more', () => {
  const timers = heldUp();
  const clock = systemClock(timers);
  const fail = (): never => assert.fail('it was cancelled');
  const [first, second] = [clock.after(1_000, fail), clock.after(1_000, fail)];
  first();
  timers.isKept(3_000);
  timers.works(10);
  second();
  timers.works(10_000);
});

test('a timer of sixty days is exact, although Node’s own hold 24.8', () => {
  const timers = heldUp();
  const fired: number[] = [];
  const daysMs = 60 * 86_400_000;
  systemClock(timers).after(daysMs, () => fired.push(timers.monotonic()));
  timers.works(2 * daysMs);
  assert.deepEqual(fired, [daysMs]);
});
