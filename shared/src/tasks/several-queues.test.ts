import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TransientError } from '../errors.ts';
import { hashOf } from '../hash.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { memoryTasks } from './memory.ts';
import { severalQueues } from './several-queues.ts';
import type { CreateLimits, Task, TaskQueue } from './task-queue.ts';
import { refusal } from '../testing/refusal.ts';

const queueName = (id: number): string => `projects/p/locations/l/queues/q${id}`;
const task = (n: number): Task => ({ name: hashOf(String(n)), scheduleTimeMs: 0, body: Buffer.from('x') });

/** Where each of `count` tasks goes. */
async function choices(ids: readonly number[], count: number): Promise<readonly number[]> {
  const chosen: number[] = [];
  const queues = ids.map((id) => ({
    name: queueName(id),
    queue: {
      overheadBytes: id,
      create: async () => {
        chosen.push(id);
        return 'created' as const;
      },
    },
  }));
  const queue = severalQueues(queues);
  for (let n = 0; n < count; n += 1) await queue.create(task(n));
  return chosen;
}

test('a name always goes to the same queue, in whatever order the queues are listed', async () => {
  assert.deepEqual(await choices([1, 2, 3, 4], 200), await choices([3, 1, 4, 2], 200));
});

test('the queues share the tasks evenly', async () => {
  const chosen = await choices([1, 2, 3, 4], 4_000);
  for (const id of [1, 2, 3, 4]) {
    const share = chosen.filter((one) => one === id).length;
    assert.ok(share > 880 && share < 1_120, `queue ${id} has ${share} of 4,000`);
  }
});

test('a queue that is added takes its share, and moves nothing between the others', async () => {
  const before = await choices([1, 2, 3], 2_000);
  const after = await choices([1, 2, 3, 4], 2_000);
  const moved = after.filter((id, n) => id !== before[n]);
  assert.ok(moved.every((id) => id === 4));
  assert.ok(moved.length > 400 && moved.length < 600, `${moved.length} of 2,000 moved`);
});

test('a queue that is removed leaves its own tasks to the others, and moves no other', async () => {
  const before = await choices([1, 2, 3], 1_000);
  const after = await choices([1, 3], 1_000);
  for (const [n, id] of before.entries()) if (id !== 2) assert.equal(after[n], id);
});

test('B21: a reply that is lost leads to the same queue again, and one task', async () => {
  const clock = virtualClock();
  const queues = [1, 2, 3].map((id) => ({ name: queueName(id), queue: memoryTasks({ clock }) }));
  const queue = severalQueues(queues);
  for (const { queue: each } of queues) each.failOn(1, 'reply lost');
  for (let n = 0; n < 30; n += 1) {
    await queue.create(task(n)).catch((error: unknown) => assert.ok(error instanceof TransientError));
    assert.equal(await queue.create(task(n)), 'exists');
  }
  assert.equal(
    queues.reduce((sum, { queue: each }) => sum + each.created.length, 0),
    30,
  );
});

test('a queue that is down is not replaced by another, because the task may be in it', async () => {
  const clock = virtualClock();
  const queues = [1, 2].map((id) => ({ name: queueName(id), queue: memoryTasks({ clock }) }));
  const queue = severalQueues(queues);
  for (const { queue: each } of queues) each.failOn(1, 'refused');
  await assert.rejects(queue.create(task(1)), TransientError);
  assert.equal(
    queues.reduce((sum, { queue: each }) => sum + each.calls(), 0),
    1,
  );
});

test('the largest overhead counts, and the limits of the call are handed on', async () => {
  const seen: (CreateLimits | undefined)[] = [];
  const one = (overheadBytes: number): TaskQueue => ({
    overheadBytes,
    async create(_task, limits) {
      seen.push(limits);
      return 'created';
    },
  });
  const queue = severalQueues([
    { name: 'a', queue: one(300) },
    { name: 'b', queue: one(700) },
  ]);
  assert.equal(queue.overheadBytes, 700);
  const limits = { deadline: 5, signal: new AbortController().signal };
  await queue.create(task(1), limits);
  assert.deepEqual(seen, [limits]);
});

test('no queue, and a name that comes twice, are refused at the start', () => {
  const queue = memoryTasks({ clock: virtualClock() });
  assert.throws(() => severalQueues([]), refusal('queues'));
  const twice = [
    { name: 'a', queue },
    { name: 'a', queue },
  ];
  assert.throws(
    () => severalQueues(twice),
    refusal('queues[1].name', /"a" again; accepted: each name once$/),
  );
  assert.equal(severalQueues([{ name: 'a', queue }]), queue);
});
