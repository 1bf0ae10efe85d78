/** Entries that cannot be put back, and those that cannot be read, do not keep the sweep from the rest. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { memoryTasks } from '../tasks/memory.ts';
import { TransientError } from '../errors.ts';
import { silent } from '../log.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { anEntry } from './contract.ts';
import { entryId } from './entry.ts';
import type { DueEntry } from './ledger.ts';
import { memoryLedger } from './memory.ts';
import { sweepSchedules } from './sweep.ts';

const SWEEP_MS = 60_000;

function world(stuck: number, good: number) {
  const clock = virtualClock(1_893_456_000_000);
  const ledger = memoryLedger({ clock });
  const tasks = memoryTasks({ clock });
  const names = new Set<string>();
  const calls: string[] = [];
  const queue = {
    ...tasks,
    async create(...given: Parameters<typeof tasks.create>) {
      const text = Buffer.from(given[0].body).toString('latin1');
      const name = /stuck \d+|good \d+/.exec(text)?.[0] ?? '';
      calls.push(name);
      if (!name.startsWith('stuck')) {
        names.add(name);
        return tasks.create(...given);
      }
      await sleep(clock, 20_000);
      throw new TransientError('TASK_QUEUE_UNAVAILABLE', 'no answer');
    },
  };
  const plant = async (name: string): Promise<void> => {
    const ref = { consumer: 'c', source: 's', key: name };
    const entry = anEntry({
      ref,
      state: 'unscheduled',
      atMs: clock.now(),
      dueTimeMs: clock.now() + 3_600_000,
    });
    const data = Buffer.from(name);
    const delayed = entry.delayed && { ...entry.delayed, message: { ...entry.delayed.message, data } };
    await ledger.change(entryId(ref), () => ({ answer: '', entry: { ...entry, delayed: delayed! } }));
  };
  const sweep = sweepSchedules(ledger, queue, { clock });
  const round = () =>
    clock.until(
      sweep({
        consumer: 'c',
        now: () => clock.now(),
        deadline: clock.monotonic() + SWEEP_MS,
        signal: new AbortController().signal,
        log: silent,
      }),
    );
  const planted = async () => {
    for (let n = 0; n < stuck; n += 1) await plant(`stuck ${n}`);
    await clock.advance(1);
    for (let n = 0; n < good; n += 1) await plant(`good ${n}`);
    await clock.advance(60_000);
  };
  return { clock, ledger, names, calls, planted, round };
}

test('forty schedules that no queue answers for do not starve two hundred that it takes', async () => {
  const { planted, round, names, calls } = world(40, 200);
  await planted();
  for (let sweep = 0; sweep < 4; sweep += 1) await round();
  assert.equal(names.size, 200, `${names.size} of 200 have a task after four sweeps`);
  const before = calls.length;
  for (let sweep = 0; sweep < 10; sweep += 1) await round();
  assert.ok(
    calls.length - before < 200,
    `${calls.length - before} calls in ten sweeps of 60 s for 40 entries`,
  );
});

test('schedules that cannot be read are looked at once in a while, and not by each sweep', async () => {
  const { clock, ledger, planted, round } = world(0, 3);
  await planted();
  const unreadable = new Map<string, number>();
  for (let n = 0; n < 250; n += 1) unreadable.set(`x${n}`, 0);
  const { due, change } = ledger;
  let looks = 0;
  Object.assign(ledger, {
    async due(...asked: Parameters<typeof due>) {
      const page = await due(...asked);
      if (asked[1] !== 0 || asked[3] !== undefined) return page;
      const strange = [...unreadable].filter(([, untilMs]) => untilMs <= clock.now());
      looks += strange.length;
      const items = strange.map(([id]): DueEntry => ({ id, version: '1', dueMs: 0 }));
      return { ...page, items: [...items, ...page.items] };
    },
    async change(...asked: Parameters<typeof change>) {
      if (unreadable.has(asked[0])) throw new TransientError('UNREADABLE_ENTRY', 'not ours');
      return change(...asked);
    },
    defer: async ({ id }: DueEntry, _consumer: string, untilMs: number) => void unreadable.set(id, untilMs),
  });
  const first = await round();
  assert.deepEqual([first.failed, first.done], [250, 3]);
  for (let sweep = 0; sweep < 5; sweep += 1) {
    await clock.advance(60_000);
    await round();
  }
  assert.equal(looks, 250);
});
