/** GetTask, ListTasks, DeleteTask: what is shown, pages, what is there no more. */
import assert from 'node:assert/strict';
import {
  byName,
  createTask,
  get,
  later,
  openQueue,
  refused,
  section,
  taskName,
  type Shown,
  type TasksCase,
} from '../section.ts';
import { LIST_TASKS, METHODS, RECORDED, TASK } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const of = section('Getting, listing and deleting tasks');
const HOUR_MS = 3_600_000;
const UNKNOWN = 'Requested entity was not found.';
const GONE =
  'The task no longer exists, though a task with this name existed recently. The task either successfully completed or was deleted.';
const NO_QUEUE =
  'Queue does not exist. If you just created the queue, wait at least a minute for the queue to initialize.';

const BODY = Buffer.from([0, 1, 0xff, 0x80]);

async function one(world: TasksWorld): Promise<void> {
  await openQueue(world);
  await createTask(
    world,
    { scheduleTime: later(world, HOUR_MS), httpRequest: { url: world.target.url, body: BODY } },
    't',
  );
}
async function several(world: TasksWorld, count: number): Promise<void> {
  await openQueue(world);
  for (let n = 0; n < count; n += 1)
    await createTask(world, { scheduleTime: later(world, HOUR_MS) }, `t${n}`);
}
async function page(world: TasksWorld, request: object): Promise<{ tasks: readonly Shown[]; next: string }> {
  const reply = await world.call('ListTasks', { parent: world.queue, ...request });
  return { tasks: reply['tasks'] as readonly Shown[], next: String(reply['nextPageToken']) };
}

export const readTaskCases: readonly TasksCase[] = [
  ...(['GetTask', 'DeleteTask', 'RunTask'] as const).flatMap((rpc) => [
    of(`${rpc} answers NOT_FOUND for an unknown task`, RECORDED, async (world) => {
      await openQueue(world);
      await refused(world.call(rpc, byName(world, 'unknown')), 'NOT_FOUND', UNKNOWN);
    }),
    of(`${rpc} answers NOT_FOUND for a task of an unknown queue`, RECORDED, async (world) => {
      await refused(world.call(rpc, byName(world, 'unknown')), 'NOT_FOUND', UNKNOWN);
    }),
    of(`${rpc} answers INVALID_ARGUMENT for a badly formed name`, TASK, async (world) => {
      await refused(world.call(rpc, { name: 'tasks/t' }), 'INVALID_ARGUMENT');
    }),
  ]),
  of('GetTask answers NOT_FOUND for a task that finished recently', RECORDED, async (world) => {
    await openQueue(world);
    await createTask(world, {}, 't');
    await world.pass(0);
    await refused(world.call('GetTask', byName(world, 't')), 'NOT_FOUND', GONE);
  }),
  of('GetTask answers NOT_FOUND for a task that was deleted recently', RECORDED, async (world) => {
    await one(world);
    await world.client().deleteTask(byName(world, 't'));
    await refused(world.call('GetTask', byName(world, 't')), 'NOT_FOUND', GONE);
  }),
  of('DeleteTask answers NOT_FOUND for a task that has been executed', METHODS, async (world) => {
    await openQueue(world);
    await createTask(world, {}, 't');
    await world.pass(0);
    await refused(world.call('DeleteTask', byName(world, 't')), 'NOT_FOUND');
  }),
  of('a deleted task is not dispatched', METHODS, async (world) => {
    await one(world);
    await world.call('DeleteTask', byName(world, 't'));
    await world.pass(2 * HOUR_MS);
    assert.equal(world.target.received.length, 0);
  }),
  of('a task that is deleted while it is dispatched is not tried again', METHODS, async (world) => {
    await openQueue(world);
    world.target.answer.with = () => 'hang';
    await createTask(world, {}, 't');
    await world.pass(1_000);
    await world.call('DeleteTask', byName(world, 't'));
    await world.pass(HOUR_MS);
    assert.equal(world.target.received.length, 1);
  }),
  of('GetTask shows no body in the basic view, which is the default', TASK, async (world) => {
    await one(world);
    for (const responseView of ['BASIC', 'VIEW_UNSPECIFIED']) {
      const task = (await world.call('GetTask', { ...byName(world, 't'), responseView })) as Shown;
      assert.deepEqual([task.view, task.httpRequest?.body.length], ['BASIC', 0]);
    }
  }),
  of('GetTask shows the body in the full view, byte by byte', TASK, async (world) => {
    await one(world);
    const task = await get(world, 'GetTask', taskName(world, 't'));
    assert.deepEqual([task.view, task.httpRequest?.body], ['FULL', BODY]);
  }),
  of('CreateTask shows the body in the full view alone', METHODS, async (world) => {
    await openQueue(world);
    const task = { scheduleTime: later(world, HOUR_MS), httpRequest: { url: world.target.url, body: BODY } };
    const [basic] = await world.client().createTask({ parent: world.queue, task });
    const [full] = await world.client().createTask({ parent: world.queue, task, responseView: 'FULL' });
    assert.deepEqual([basic.httpRequest?.body?.length ?? 0, full.httpRequest?.body?.length], [0, 4]);
  }),
  of('ListTasks shows no bodies by default, and all of them in the full view', LIST_TASKS, async (world) => {
    await one(world);
    const sizes = async (responseView: string): Promise<unknown> =>
      (await page(world, { responseView })).tasks.map(({ httpRequest }) => httpRequest?.body.length);
    assert.deepEqual(
      [await sizes('VIEW_UNSPECIFIED'), await sizes('BASIC'), await sizes('FULL')],
      [[0], [0], [4]],
    );
  }),
  of('ListTasks returns every task once, page by page', LIST_TASKS, async (world) => {
    await several(world, 7);
    const names: string[] = [];
    let token = '';
    for (let pages = 0; pages < 9; pages += 1) {
      const { tasks, next } = await page(world, { pageSize: 3, pageToken: token });
      assert.ok(tasks.length <= 3, `${tasks.length} tasks on a page of 3`);
      names.push(...tasks.map(({ name }) => name));
      token = next;
      if (token === '') break;
    }
    assert.deepEqual(
      names.toSorted(),
      Array.from({ length: 7 }, (_, n) => taskName(world, `t${n}`)),
    );
  }),
  of('Google’s client iterates over all tasks', LIST_TASKS, async (world) => {
    await several(world, 5);
    let count = 0;
    for await (const task of world.client().listTasksAsync({ parent: world.queue, pageSize: 2 }))
      count += task.name ? 1 : 0;
    assert.equal(count, 5);
  }),
  of('ListTasks returns at most 1,000 tasks on a page', LIST_TASKS, async (world) => {
    await openQueue(world);
    const task = { scheduleTime: later(world, HOUR_MS), httpRequest: { url: world.target.url } };
    await Promise.all(
      Array.from({ length: 1_001 }, () => world.call('CreateTask', { parent: world.queue, task })),
    );
    for (const pageSize of [0, 1_001]) {
      const { tasks, next } = await page(world, { pageSize });
      assert.equal(tasks.length, 1_000);
      assert.notEqual(next, '');
    }
  }),
  of('ListTasks answers INVALID_ARGUMENT for a negative page size', LIST_TASKS, async (world) => {
    await openQueue(world);
    await refused(page(world, { pageSize: -1 }), 'INVALID_ARGUMENT');
  }),
  of('ListTasks answers INVALID_ARGUMENT for a page token that is none', LIST_TASKS, async (world) => {
    await one(world);
    await refused(page(world, { pageToken: 'nonsense' }), 'INVALID_ARGUMENT');
  }),
  of('ListTasks accepts a page token for two hours, and no longer', LIST_TASKS, async (world) => {
    await openQueue(world);
    for (const id of ['a', 'b']) await createTask(world, { scheduleTime: later(world, 5 * HOUR_MS) }, id);
    const { next } = await page(world, { pageSize: 1 });
    await world.pass(2 * HOUR_MS);
    assert.equal((await page(world, { pageSize: 1, pageToken: next })).tasks.length, 1);
    await world.pass(1);
    await refused(page(world, { pageSize: 1, pageToken: next }), 'INVALID_ARGUMENT');
  }),
  of('ListTasks answers NOT_FOUND for an unknown queue', RECORDED, async (world) => {
    await refused(page(world, {}), 'NOT_FOUND', NO_QUEUE);
  }),
  of('ListTasks answers INVALID_ARGUMENT for a parent that is no queue', LIST_TASKS, async (world) => {
    await refused(page(world, { parent: world.parent }), 'INVALID_ARGUMENT');
  }),
];
