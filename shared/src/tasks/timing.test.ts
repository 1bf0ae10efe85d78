import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agreedTime, LONGEST_HOP_MS, nextStep, REST_MS, scheduleTimeFor } from './timing.ts';

const dueTimeMs = Date.UTC(2030, 0, 1);
const DAY_MS = 86_400_000;

test('L9 (a): the agreed time is that of the slower of two clocks, and none before Pub/Sub has named one', () => {
  let ownMs = dueTimeMs;
  const time = agreedTime({ now: () => ownMs });
  assert.equal(time.nowMs(), undefined);
  time.saw({ publishTime: new Date(dueTimeMs + 1_000), assumedPublishTime: 'not set' });
  assert.equal(time.nowMs(), undefined, 'the arrival by the same clock is no second one');
  time.saw({ publishTime: new Date(dueTimeMs - 5_000) });
  time.saw({ publishTime: new Date(dueTimeMs - 9_000) });
  assert.equal(time.nowMs(), dueTimeMs - 5_000);
  ownMs = dueTimeMs + DAY_MS;
  assert.equal(time.nowMs(), dueTimeMs - 5_000, 'the process’s clock alone moves nothing');
  ownMs = dueTimeMs - DAY_MS;
  assert.equal(time.nowMs(), dueTimeMs - DAY_MS, 'nor does Pub/Sub’s');
});

test('L9 (b): a hop that wakes seconds before the due time makes the final task and neither waits nor fires', () => {
  for (const untilDueMs of [22_000, 5_000, 2_000, 1, 0, -1, -29_999, -30_000, -DAY_MS]) {
    const nowMs = dueTimeMs - untilDueMs;
    const step = nextStep({
      dueTimeMs,
      scheduleTimeMs: dueTimeMs - 22_000,
      etaMs: dueTimeMs - 22_000,
      nowMs,
    });
    assert.deepEqual(step, { kind: 'reschedule', restMs: 0 }, `${untilDueMs} ms before the due time`);
    assert.equal(scheduleTimeFor(dueTimeMs, nowMs), dueTimeMs);
  }
});

test('a final task fires at its due time and not a millisecond before', () => {
  const final = { dueTimeMs, scheduleTimeMs: dueTimeMs, etaMs: dueTimeMs };
  assert.deepEqual(nextStep({ ...final, nowMs: dueTimeMs }), { kind: 'publish' });
  assert.deepEqual(nextStep({ ...final, nowMs: dueTimeMs - 1 }), { kind: 'wait', milliseconds: 1 });
  assert.deepEqual(nextStep({ ...final, nowMs: dueTimeMs - REST_MS }), {
    kind: 'wait',
    milliseconds: REST_MS,
  });
});

test('a final task that seems early by more than 5 s rests for 5 s before it goes back', () => {
  const final = { dueTimeMs, scheduleTimeMs: dueTimeMs, etaMs: dueTimeMs };
  assert.deepEqual(nextStep({ ...final, nowMs: dueTimeMs - REST_MS - 1 }), {
    kind: 'reschedule',
    restMs: REST_MS,
  });
  assert.deepEqual(nextStep({ ...final, nowMs: dueTimeMs - DAY_MS }), {
    kind: 'reschedule',
    restMs: REST_MS,
  });
});

test('a retry of a final task, whose schedule time has moved on, fires', () => {
  const late = dueTimeMs + 90_000;
  assert.deepEqual(nextStep({ dueTimeMs, scheduleTimeMs: dueTimeMs, etaMs: late, nowMs: late }), {
    kind: 'publish',
  });
});

test('a final task that the queue ran ahead of its time does not fire, whatever the local clock says', () => {
  const forced = { dueTimeMs, scheduleTimeMs: dueTimeMs, etaMs: dueTimeMs - 20_000 };
  assert.deepEqual(nextStep({ ...forced, nowMs: dueTimeMs }), { kind: 'reschedule', restMs: REST_MS });
  assert.deepEqual(nextStep({ ...forced, nowMs: dueTimeMs - 1 }), { kind: 'reschedule', restMs: REST_MS });
  for (const aheadMs of [30_000, 3_600_000, DAY_MS]) {
    assert.deepEqual(nextStep({ ...forced, nowMs: dueTimeMs + aheadMs }), {
      kind: 'reschedule',
      restMs: REST_MS,
    });
  }
});

test('a schedule time in whole seconds, or none at all, does not make a final task a hop', () => {
  const odd = dueTimeMs + 999;
  assert.deepEqual(nextStep({ dueTimeMs: odd, scheduleTimeMs: odd, etaMs: dueTimeMs, nowMs: odd }), {
    kind: 'publish',
  });
  assert.deepEqual(nextStep({ dueTimeMs: odd, scheduleTimeMs: odd, nowMs: odd }), { kind: 'publish' });
});

test('B22: the longest hop leaves half a day to the 720 h that the service takes', () => {
  assert.equal(LONGEST_HOP_MS, 29.5 * DAY_MS);
  assert.equal(scheduleTimeFor(dueTimeMs, dueTimeMs - 29.5 * DAY_MS), dueTimeMs);
  assert.equal(scheduleTimeFor(dueTimeMs, dueTimeMs - 29.5 * DAY_MS - 1), dueTimeMs - 1);
  assert.equal(scheduleTimeFor(dueTimeMs, dueTimeMs - 90 * DAY_MS), dueTimeMs - 60.5 * DAY_MS);
});
