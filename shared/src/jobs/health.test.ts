import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualClock } from '../testing/index.ts';
import { judge, thresholdsOf, type Vitals } from './health.ts';
import { jobs } from './jobs.ts';
import { memoryJobs } from './memory.ts';

const GOOD: Vitals = {
  backlog: 0,
  meanBacklog: 100,
  coveredMs: 3_600_000,
  pickUpP95Ms: 5_000,
  dead: 0,
  snapshot: { ageMs: 300_000, holder: 'process 7' },
  unseen: [],
};
const codes = (change: Partial<Vitals>): readonly string[] =>
  judge({ ...GOOD, ...change }, thresholdsOf({})).problems.map(({ code }) => code);

test('a queue is behind above each threshold, and not at it', () => {
  assert.deepEqual(codes({}), []);
  assert.deepEqual(codes({ meanBacklog: 100.1 }), ['BACKLOG']);
  assert.deepEqual(codes({ pickUpP95Ms: 5_001 }), ['PICK_UP']);
  assert.deepEqual(codes({ snapshot: { ageMs: 300_001, holder: 'process 7' } }), ['OLD_SNAPSHOT']);
  assert.deepEqual(
    codes({ meanBacklog: 900, coveredMs: 1_799_999 }),
    [],
    'half of the window must be covered',
  );
  assert.deepEqual(codes({ meanBacklog: undefined, pickUpP95Ms: undefined, snapshot: undefined }), []);
});

test('health is counted over the last hour alone', async () => {
  const clock = virtualClock();
  const store = memoryJobs({ clock });
  const queue = jobs(store, { clock });
  await store.transact((tx) =>
    queue.enqueue(
      tx,
      Array.from({ length: 150 }, () => ({ role: 'r', kind: 'k', payload: 1 })),
    ),
  );
  for (let minute = 0; minute < 40; minute += 1) {
    await queue.tidy();
    await clock.advance(60_000);
  }
  const behind = await queue.health();
  assert.deepEqual([behind.ok, behind.vitals.meanBacklog, behind.problems[0]?.code], [false, 150, 'BACKLOG']);
  assert.equal((await queue.health({ backlog: 150 })).ok, true);
  await clock.advance(3_600_000);
  assert.equal((await queue.health()).ok, true);
});

test('a threshold that is none is refused', () => {
  assert.throws(() => thresholdsOf({ backlogFor: '2d' }), { code: 'INVALID_OPTION' });
  assert.throws(() => thresholdsOf({ backlog: -1 }), { code: 'INVALID_OPTION' });
});
