import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agreedTime, LONGEST_HOP_MS, nextStep, REST_MS, scheduleTimeFor } from './timing.ts';

const instantMs = Date.UTC(2030, 0, 1);
const DAY_MS = 86_400_000;

test('L9 (a): the agreed time is that of the slower of two clocks, and none before Pub/Sub has named one', () => {
  let ownMs = instantMs;
  const time = agreedTime({ now: () => ownMs });
  assert.equal(time.nowMs(), undefined);
  time.saw({ publishTime: new Date(instantMs + 1_000), assumedPublishTime: 'not set' });
  assert.equal(time.nowMs(), undefined, 'the arrival by the same clock is no second one');
  time.saw({ publishTime: new Date(instantMs - 5_000) });
  time.saw({ publishTime: new Date(instantMs - 9_000) });
  assert.equal(time.nowMs(), instantMs - 5_000);
  ownMs = instantMs + DAY_MS;
  assert.equal(time.nowMs(), instantMs - 5_000, 'the process’s clock alone moves nothing');
  ownMs = instantMs - DAY_MS;
  assert.equal(time.nowMs(), instantMs - DAY_MS, 'nor does Pub/Sub’s');
});

test('L9 (b): a hop that wakes seconds before the instant makes the final task and neither waits nor fires', () => {
  for (const untilInstant of [22_000, 5_000, 2_000, 1, 0, -1, -29_999, -30_000, -DAY_MS]) {
    const nowMs = instantMs - untilInstant;
    const step = nextStep({
      instantMs,
      scheduleTimeMs: instantMs - 22_000,
      etaMs: instantMs - 22_000,
      nowMs,
    });
    assert.deepEqual(step, { kind: 'reschedule', restMs: 0 }, `${untilInstant} ms before the instant`);
    assert.equal(scheduleTimeFor(instantMs, nowMs), instantMs);
  }
});

test('a final task fires at its instant and not a millisecond before', () => {
  const final = { instantMs, scheduleTimeMs: instantMs, etaMs: instantMs };
  assert.deepEqual(nextStep({ ...final, nowMs: instantMs }), { kind: 'publish' });
  assert.deepEqual(nextStep({ ...final, nowMs: instantMs - 1 }), { kind: 'wait', milliseconds: 1 });
  assert.deepEqual(nextStep({ ...final, nowMs: instantMs - REST_MS }), {
    kind: 'wait',
    milliseconds: REST_MS,
  });
});

test('a final task that seems early by more than 5 s rests for 5 s before it goes back', () => {
  const final = { instantMs, scheduleTimeMs: instantMs, etaMs: instantMs };
  assert.deepEqual(nextStep({ ...final, nowMs: instantMs - REST_MS - 1 }), {
    kind: 'reschedule',
    restMs: REST_MS,
  });
  assert.deepEqual(nextStep({ ...final, nowMs: instantMs - DAY_MS }), {
    kind: 'reschedule',
    restMs: REST_MS,
  });
});

test('a retry of a final task, whose schedule time has moved on, fires', () => {
  const late = instantMs + 90_000;
  assert.deepEqual(nextStep({ instantMs, scheduleTimeMs: instantMs, etaMs: late, nowMs: late }), {
    kind: 'publish',
  });
});

test('a final task that the queue ran ahead of its time does not fire, whatever the local clock says', () => {
  const forced = { instantMs, scheduleTimeMs: instantMs, etaMs: instantMs - 20_000 };
  assert.deepEqual(nextStep({ ...forced, nowMs: instantMs }), { kind: 'reschedule', restMs: REST_MS });
  assert.deepEqual(nextStep({ ...forced, nowMs: instantMs - 1 }), { kind: 'reschedule', restMs: REST_MS });
  for (const aheadMs of [30_000, 3_600_000, DAY_MS]) {
    assert.deepEqual(nextStep({ ...forced, nowMs: instantMs + aheadMs }), {
      kind: 'reschedule',
      restMs: REST_MS,
    });
  }
});

test('a schedule time in whole seconds, or none at all, does not make a final task a hop', () => {
  const odd = instantMs + 999;
  assert.deepEqual(nextStep({ instantMs: odd, scheduleTimeMs: odd, etaMs: instantMs, nowMs: odd }), {
    kind: 'publish',
  });
  assert.deepEqual(nextStep({ instantMs: odd, scheduleTimeMs: odd, nowMs: odd }), { kind: 'publish' });
});

test('B22: the longest hop leaves half a day to the 720 h that the service takes', () => {
  assert.equal(LONGEST_HOP_MS, 29.5 * DAY_MS);
  assert.equal(scheduleTimeFor(instantMs, instantMs - 29.5 * DAY_MS), instantMs);
  assert.equal(scheduleTimeFor(instantMs, instantMs - 29.5 * DAY_MS - 1), instantMs - 1);
  assert.equal(scheduleTimeFor(instantMs, instantMs - 90 * DAY_MS), instantMs - 60.5 * DAY_MS);
});
