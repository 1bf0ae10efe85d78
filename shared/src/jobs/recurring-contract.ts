/**
 * The rows of the contract about recurring jobs: one job for each due time, whatever processes decide at once.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../clock.ts';
import { silent } from '../log.ts';
import type { JobKit, JobsUnderTest } from './contract-kit.ts';
import type { JobStore, RecurrenceId } from './job-store.ts';
import { checkRecurrences, keyOf, type Recurrence, RECURRENCE_RULES } from './recurrence.ts';
import { recurringJobs } from './recurring.ts';

const HOUR_MS = 3_600_000;

export function recurringContract<Tx>(opened: () => JobsUnderTest<Tx>, kit: JobKit): void {
  const { roleOf, enqueue, claim } = kit;
  const idOf = (role = roleOf()): RecurrenceId => ({ role, name: 'nightly', cron: '0 3 * * * UTC' });
  const madeMs = async (id: RecurrenceId): Promise<number> => {
    const [made] = (await opened().store.recurrences([id])).madeMs;
    assert.ok(made !== undefined);
    return made;
  };
  const jobOf = ({ role }: RecurrenceId, key: string) => ({
    role,
    kind: 'k',
    payload: key,
    key: `${role} ${key}`,
  });
  const payloads = async (role: string): Promise<readonly unknown[]> =>
    (await claim(role, { limit: 100 })).map(({ payload }) => payload);
  /** Looks as a worker does that has just started. */
  const pass = (recurrence: Recurrence, store: JobStore<Tx> = opened().store) =>
    recurringJobs(RECURRENCE_RULES, store, checkRecurrences('recurring', { hourly: recurrence }), {
      clock: systemClock(),
      log: silent,
    }).pass();

  test('a recurrence begins at the time of the store, and every process gets the same', async () => {
    const ids = [idOf(), idOf(), { ...idOf(), cron: '@daily UTC' }];
    const first = await opened().store.recurrences(ids);
    assert.equal(first.madeMs.length, 3);
    for (const made of first.madeMs) assert.ok(made !== undefined && made <= first.nowMs + 1);
    const second = await opened().another().recurrences(ids.toReversed());
    assert.deepEqual(second.madeMs.toReversed(), first.madeMs);
    assert.ok(second.nowMs >= first.nowMs);
    assert.deepEqual((await opened().store.recurrences([])).madeMs, []);
  });

  test('T33: of processes that decide about one due time at once one makes its jobs', async () => {
    for (let round = 0; round < 5; round += 1) {
      const id = idOf();
      const fromMs = await madeMs(id);
      const toMs = fromMs + 1_000;
      const answers = await Promise.all(
        Array.from({ length: 4 }, (_, n) =>
          opened()
            .another()
            .recur({ id, fromMs, toMs, jobs: [jobOf(id, `${n}`)] }),
        ),
      );
      const winners = [...answers.entries()].filter(([, isMade]) => isMade).map(([n]) => `${n}`);
      assert.equal(winners.length, 1);
      assert.deepEqual([await payloads(id.role), await madeMs(id)], [winners, toMs]);
    }
  });

  test('a due time whose key is taken counts as made', async () => {
    const id = idOf();
    const fromMs = await madeMs(id);
    await enqueue({ ...jobOf(id, 'early'), payload: 'by hand' });
    const jobs = [jobOf(id, 'early'), jobOf(id, 'new')];
    assert.equal(await opened().store.recur({ id, fromMs, toMs: fromMs + 1, jobs }), true);
    assert.deepEqual(await payloads(id.role), ['by hand', 'new']);
    assert.equal(await opened().store.recur({ id, fromMs: fromMs + 1, toMs: fromMs + 2, jobs: [] }), true);
    assert.equal(await madeMs(id), fromMs + 2);
  });

  test('what is no job leaves a due time undecided', async () => {
    const id = idOf();
    const fromMs = await madeMs(id);
    const jobs = [jobOf(id, 'good'), { ...jobOf(id, 'large'), payload: 'x'.repeat(9_000) }];
    await assert.rejects(opened().store.recur({ id, fromMs, toMs: fromMs + 1, jobs }), {
      code: 'LIMIT_EXCEEDED',
    });
    assert.deepEqual([await payloads(id.role), await madeMs(id)], [[], fromMs]);
  });

  test('T34: missed due times are made as the policy says, once, whatever number of processes look', async () => {
    const { nowMs } = await opened().store.recurrences([]);
    // Half an hour from now at the earliest: none is on time while this test runs.
    const minute = (new Date(nowMs).getUTCMinutes() + 30) % 60;
    const recurrence = { cron: `${minute} * * * *`, kind: 'k', payload: (at: Date) => at.getTime() };
    const roles = { skip: roleOf(), one: roleOf(), all: roleOf() };
    const entries = Object.entries(roles) as [keyof typeof roles, string][];
    const all = entries.map(([missed, role]) => ({ ...recurrence, missed, role }));
    for (const one of all) await pass(one);
    await opened().age(3 * HOUR_MS);
    await Promise.all(all.flatMap((one) => [pass(one), pass(one, opened().another())]));
    const made = await payloads(roles.all);
    assert.equal(made.length, 3);
    const times = made.map(Number).toSorted((one, other) => one - other);
    assert.deepEqual(
      times.map((at) => new Date(at).getUTCMinutes()),
      [minute, minute, minute],
    );
    assert.deepEqual([times[1]! - times[0]!, times[2]! - times[1]!], [HOUR_MS, HOUR_MS]);
    assert.deepEqual([await payloads(roles.one), await payloads(roles.skip)], [[times[2]], []]);
    for (const one of all) assert.equal((await pass(one)).size, 0);
  });

  test('T33: a store that has forgotten up to where a recurrence is decided makes no due time twice', async () => {
    const role = roleOf();
    const id = { role, name: 'hourly', cron: 'x' };
    const key = keyOf(id, Date.UTC(2030, 0));
    const fromMs = await madeMs(id);
    const jobs = [{ role, kind: 'k', payload: 1, key }];
    assert.equal(await opened().store.recur({ id, fromMs, toMs: fromMs + 1, jobs }), true);
    const other = { ...id, cron: 'y' };
    const again = await madeMs(other);
    assert.equal(await opened().store.recur({ id: other, fromMs: again, toMs: again + 1, jobs }), true);
    assert.deepEqual(await payloads(role), [1]);
  });
}
