import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkRecurrences, dueOf, keyOf, type Recurrence } from './recurrence.ts';

const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2030, 0, 1);
const hour = (hours: number): number => START_MS + hours * HOUR_MS;
const BASE: Recurrence = { cron: '0 * * * *', role: 'r', kind: 'k', payload: 1 };
const checked = (change: Partial<Recurrence> = {}) => {
  const [one] = checkRecurrences('recurring', { nightly: { ...BASE, ...change } });
  assert.ok(one !== undefined);
  return one;
};
/** Hours at which jobs are made, for one that was decided up to the start and is looked at then. */
const made = (change: Partial<Recurrence>, nowMs: number): readonly number[] | undefined =>
  dueOf(checked(change), START_MS, nowMs)?.dueTimes.map((at) => (at - START_MS) / HOUR_MS);

test('a due time that is seen in time is made by each policy, and none is made before it', () => {
  for (const missed of ['skip', 'one', 'all'] as const) {
    assert.equal(made({ missed }, hour(1) - 1), undefined);
    assert.deepEqual(made({ missed }, hour(1)), [1]);
    assert.deepEqual(made({ missed }, hour(1) + 59_999), [1]);
  }
});

test('of missed due times none is made, the newest, or the newest of them up to the limit', () => {
  const late = hour(5) + 60_000;
  assert.deepEqual(made({ missed: 'skip' }, late), []);
  assert.deepEqual(made({}, late), [5], 'one is the default');
  assert.deepEqual(made({ missed: 'all' }, late), [1, 2, 3, 4, 5]);
  assert.deepEqual(made({ missed: 'all', missedLimit: 2 }, late), [4, 5]);
});

test('where one is on time, it is made, and of the missed ones those that the policy says beside it', () => {
  assert.deepEqual(made({ missed: 'skip' }, hour(5)), [5]);
  assert.deepEqual(made({ missed: 'one' }, hour(5)), [5]);
  assert.deepEqual(made({ missed: 'all', missedLimit: 2 }, hour(5)), [3, 4, 5]);
});

test('all due times of a minute are on time, for an expression with seconds', () => {
  for (const missed of ['skip', 'one'] as const) {
    const due = dueOf(checked({ missed, cron: '*/20 * * * * *' }), START_MS, START_MS + 59_999);
    assert.deepEqual(
      due?.dueTimes.map((at) => at - START_MS),
      [20_000, 40_000],
    );
  }
});

test('all is decided up to the newest due time, also where none is made', () => {
  assert.deepEqual(dueOf(checked({ missed: 'skip' }), START_MS, hour(5) + 90_000), {
    toMs: hour(5),
    dueTimes: [],
  });
});

test('a due time of more than 7 days ago is made by no policy', () => {
  const monthly = { cron: '0 0 2 * *', missed: 'all' } as const;
  assert.deepEqual(made(monthly, hour(24 * 8) - 1), [24]);
  assert.deepEqual(made(monthly, hour(24 * 8)), []);
});

test('the key of a job is its recurrence and the due time, in whatever time zone', () => {
  const key = keyOf(checked({ timeZone: 'Asia/Tokyo' }).id, hour(1));
  assert.equal(key, 'recurring r nightly 2030-01-01T01:00:00.000Z');
  assert.notEqual(checked({ timeZone: 'Asia/Tokyo' }).id.cron, checked().id.cron);
});

test('a payload may depend on the due time', () => {
  const one = checked({
    payload: (at) => ({ day: at.toISOString().slice(0, 10) }),
    priority: 2,
    maxAttempts: 7,
  });
  const job = { role: 'r', kind: 'k', payload: { day: '2030-01-01' }, priority: 2, maxAttempts: 7 };
  assert.deepEqual(one.jobAt(START_MS), job);
});

test('what is no recurrence is refused at the start, with its path', () => {
  const throwing = (): never => {
    throw new Error('no day');
  };
  for (const [change, message] of [
    [{ cron: '0 0 30 2 *' }, /^recurring\.nightly\.cron is "0 0 30 2 \*"/],
    [{ cron: undefined }, /^recurring\.nightly\.cron/],
    [{ timeZone: 'CET+1' }, /^recurring\.nightly\.timeZone/],
    [{ missed: 'some' }, /^recurring\.nightly\.missed is "some"; accepted: skip, one, all/],
    [{ missedLimit: 1_001 }, /^recurring\.nightly\.missedLimit/],
    [{ role: 'no role' }, /^recurring\.nightly\.role/],
    [{ payload: undefined }, /^recurring\.nightly\.payload/],
    [
      { payload: 'x'.repeat(9_000) },
      /^recurring\.nightly\.payload is no payload; accepted: JSON of at most 8192/,
    ],
    [{ payload: throwing }, /no day/],
    [{ priority: 10 }, /^recurring\.nightly\.priority/],
    [{ tz: 'UTC' }, /^recurring\.nightly\.tz is no option/],
  ] as const) {
    const given = { nightly: { ...BASE, ...change } };
    assert.throws(() => checkRecurrences('recurring', given), { code: 'INVALID_OPTION', message });
  }
  assert.throws(() => checkRecurrences('recurring', { 'a b': BASE }), { code: 'INVALID_OPTION' });
  assert.throws(() => checkRecurrences('recurring', [BASE]), { code: 'INVALID_OPTION' });
});
