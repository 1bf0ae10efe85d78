import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { JobRecord } from './decide.ts';
import { chooseWithin, limitsOf, roleLimits, type Usage } from './limits.ts';

const record = (change: Partial<JobRecord>): JobRecord => ({
  id: 1,
  role: 'r',
  kind: 'k',
  payload: null,
  key: undefined,
  limitKey: undefined,
  state: 'ready',
  priority: 5,
  runAtMs: 0,
  attempts: 0,
  crashes: 0,
  maxAttempts: 3,
  token: 0,
  owner: undefined,
  call: undefined,
  leaseUntilMs: 0,
  claimedMs: 0,
  cancelAsked: false,
  error: undefined,
  createdMs: 0,
  ...change,
});

const small = fc.integer({ min: 1, max: 4 });
const some = fc.option(small, { nil: undefined });
const scenario = fc.record({
  jobs: fc.array(
    fc.record({
      limitKey: fc.constantFrom('a', 'b', undefined),
      priority: fc.constantFrom(2, 5, 8),
      crashes: fc.constantFrom(0, 0, 0, 1),
      runAtMs: fc.nat(100_000),
    }),
    { maxLength: 12 },
  ),
  limit: fc.integer({ min: 1, max: 12 }),
  suspect: fc.boolean(),
  running: some,
  runningPerKey: some,
  starts: some,
  startsPerKey: some,
  used: fc.record({ a: fc.nat(3), b: fc.nat(3), none: fc.nat(3) }),
});

test('T35: a claim takes what the limits leave room for, and all of it that there are jobs for', () => {
  fc.assert(
    fc.property(scenario, ({ jobs, limit, suspect, running, runningPerKey, starts, startsPerKey, used }) => {
      const records = jobs.map((job, id) => record({ ...job, id } as Partial<JobRecord>));
      const usedBy = (_role: string, key?: string): number =>
        key === undefined ? used.a + used.b + used.none : key === 'a' ? used.a : used.b;
      const usage: Usage = { running: usedBy, started: (_periodMs, role, key) => usedBy(role, key) };
      const limits = {
        ...(running !== undefined && { running }),
        ...(runningPerKey !== undefined && { runningPerKey }),
        ...(starts !== undefined && { starts: { most: starts, perMs: 1_000 } }),
        ...(startsPerKey !== undefined && { startsPerKey: { most: startsPerKey, perMs: 1_000 } }),
      };
      const roles = [{ role: 'r', leaseMs: 1, limits }];
      const taken = chooseWithin(records, { roles, limit, suspect, ageingMs: 60_000 }, usage);

      const roomOf = (...mosts: readonly (number | undefined)[]) =>
        Math.min(...mosts.map((most) => most ?? Infinity));
      const ofRole = roomOf(running, starts) - usedBy('r');
      const ofKey = (key: string): number => roomOf(runningPerKey, startsPerKey) - usedBy('r', key);
      const count = (list: readonly JobRecord[], key?: string): number =>
        list.filter(({ limitKey }) => limitKey === key).length;
      const fresh = records.filter(({ crashes }) => crashes === 0);
      const suspects = taken.filter(({ crashes }) => crashes > 0).length;
      assert.ok(suspects <= (suspect ? 1 : 0));
      assert.equal(new Set(taken).size, taken.length);
      assert.ok(taken.length <= Math.min(limit, Math.max(0, ofRole)));
      for (const key of ['a', 'b']) assert.ok(count(taken, key) <= Math.max(0, ofKey(key)), key);
      // Nothing that would still fit was left.
      const isFull = taken.length >= Math.min(limit, Math.max(0, ofRole));
      for (const key of ['a', 'b', undefined]) {
        const room = key === undefined ? Infinity : Math.max(0, ofKey(key));
        assert.ok(isFull || count(taken, key) >= Math.min(count(fresh, key), room), `${key} was left`);
      }
    }),
  );
});

test('a limit that is none is refused with its path', () => {
  for (const [given, message] of [
    [{}, /^limits is an object; accepted: at least one of running/],
    [{ running: 0 }, /^limits\.running is 0; accepted: a whole number from 1/],
    [{ runningPerKey: 1.5 }, /^limits\.runningPerKey/],
    [{ starts: 5 }, /^limits\.starts/],
    [{ starts: { most: 5 } }, /^limits\.starts\.per/],
    [{ startsPerKey: { most: 5, per: '25h' } }, /^limits\.startsPerKey\.per is "25h"; accepted: at most 24h/],
    [{ runing: 1 }, /^limits\.runing is no option; accepted: running/],
  ] as const) {
    assert.throws(() => roleLimits('limits', given), { code: 'INVALID_OPTION', message });
  }
  assert.deepEqual(limitsOf({ running: 2, starts: { most: 5, per: '1m' } }), {
    running: 2,
    starts: { most: 5, perMs: 60_000 },
  });
});
