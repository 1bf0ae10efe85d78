import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryTasks } from '../tasks/memory.ts';
import type { Log } from '../log.ts';
import { silent } from '../log.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { readWake, wakeTasks } from './wake.ts';

function setUp(log: Log = silent) {
  const clock = virtualClock();
  const queue = memoryTasks({ clock });
  return { clock, queue, tasks: wakeTasks(queue, { consumer: 'c', clock, log }) };
}

test('many requests for one stream and one second are one task, never before its time', async () => {
  const { clock, queue, tasks } = setUp();
  const now = Math.ceil(clock.now() / 1_000) * 1_000;
  for (const atMs of [now + 1_001, now + 1_999, now + 2_000])
    await tasks.wake({ source: 's', key: 'k' }, atMs);
  assert.deepEqual(
    queue.created.map(({ scheduleTimeMs }) => scheduleTimeMs - now),
    [2_000],
  );
  await tasks.wake({ source: 's', key: 'k' }, now + 2_001);
  await tasks.wake({ source: 's', key: 'other' }, now + 2_000);
  await tasks.wake({ source: 'another', key: 'k' }, now + 2_000);
  assert.equal(queue.created.length, 4);
  assert.deepEqual(
    queue.created.slice(2).map(({ body }) => readWake(body)),
    [
      { consumer: 'c', source: 's', key: 'other' },
      { consumer: 'c', source: 'another', key: 'k' },
    ],
  );
});

test('what is further away than a task may be comes earlier, and asks again', async () => {
  const { clock, queue, tasks } = setUp();
  await tasks.wake({ source: 's', key: 'k' }, clock.now() + 365 * 86_400_000);
  assert.equal(Math.round(((queue.created[0]?.scheduleTimeMs ?? 0) - clock.now()) / 86_400_000), 29);
});

test('a queue that refuses costs a line in the log and nothing else', async () => {
  const warnings: string[] = [];
  const { queue, tasks } = setUp({ ...silent, warn: (text) => void warnings.push(text) });
  queue.failOn(1, 'refused');
  await tasks.wake({ source: 's', key: 'k' }, 0);
  assert.deepEqual(warnings, ['in order: a wake-up could not be asked for; the sweep will do it']);
});

test('a process that must not end before the tasks are stored can wait for them', async () => {
  const clock = virtualClock();
  let stored = 0;
  const queue = {
    overheadBytes: 0,
    create: () =>
      new Promise<'created'>((resolve) => {
        clock.after(500, () => {
          stored += 1;
          resolve('created');
        });
      }),
  };
  const tasks = wakeTasks(queue, { consumer: 'c', clock, log: silent });
  await tasks.settled();
  void tasks.wake({ source: 's', key: 'k' }, 0);
  void tasks.wake({ source: 's', key: 'k' }, 1_000);
  await clock.until(tasks.settled());
  assert.equal(stored, 2);
});

test('a body that is no wake-up is refused for good', () => {
  for (const body of [
    '',
    'x',
    '[]',
    'null',
    '{"v":3,"consumer":"c","source":"s","key":"k"}',
    '{"v":1,"consumer":"c","key":"k"}',
    '{"v":2,"consumer":"c","key":"k"}',
    '{"v":2,"consumer":"c","source":"s","key":""}',
  ]) {
    assert.throws(() => readWake(Buffer.from(body)), { code: 'UNREADABLE_WAKE' }, body);
  }
});
