/** RunTask, which asks for no limits. */
import assert from 'node:assert/strict';
import {
  byName,
  createTask,
  later,
  openQueue,
  refused,
  seconds,
  section,
  times,
  type Shown,
  type TasksCase,
} from '../section.ts';
import { METHODS, QUOTAS, RUN_TASK } from '../sources.ts';

const HOUR_MS = 3_600_000;
const of = section('Running tasks by hand');

export const runTaskCases: readonly TasksCase[] = [
  of('dispatches a task before its schedule time', RUN_TASK, async (world) => {
    await openQueue(world);
    await createTask(world, { scheduleTime: later(world, 10 * HOUR_MS) }, 't');
    await world.client().runTask(byName(world, 't'));
    await world.pass(0);
    assert.equal(world.target.received.length, 1);
  }),
  of('dispatches a task of a paused queue', RUN_TASK, async (world) => {
    await openQueue(world);
    await world.call('PauseQueue', { name: world.queue });
    await createTask(world, {}, 't');
    await world.call('RunTask', byName(world, 't'));
    await world.pass(0);
    assert.equal(world.target.received.length, 1);
  }),
  of('dispatches a task although the rate is used up', RUN_TASK, async (world) => {
    await openQueue(world, { rateLimits: { maxDispatchesPerSecond: 0.001 } });
    for (let n = 0; n < 10; n += 1) await createTask(world);
    await createTask(world, {}, 't');
    await world.pass(0);
    await world.call('RunTask', byName(world, 't'));
    await world.pass(0);
    assert.equal(world.target.received.length, 11);
  }),
  of('dispatches a task that is running already', RUN_TASK, async (world) => {
    await openQueue(world);
    world.target.answer.with = () => 'hang';
    await createTask(world, {}, 't');
    await world.pass(0);
    await world.call('RunTask', byName(world, 't'));
    await world.pass(0);
    assert.equal(world.target.received.length, 2);
  }),
  of('returns the task as dispatched, in the basic view by default', METHODS, async (world) => {
    await openQueue(world);
    await createTask(
      world,
      { scheduleTime: later(world, HOUR_MS), httpRequest: { url: world.target.url, body: Buffer.from('a') } },
      't',
    );
    const basic = (await world.call('RunTask', byName(world, 't'))) as Shown;
    assert.deepEqual(
      [basic.dispatchCount, basic.responseCount, basic.view, basic.httpRequest?.body.length],
      [1, 0, 'BASIC', 0],
    );
  }),
  of('deletes the task when it succeeds', RUN_TASK, async (world) => {
    await openQueue(world);
    await createTask(world, { scheduleTime: later(world, HOUR_MS) }, 't');
    await world.call('RunTask', byName(world, 't'));
    await world.pass(2 * HOUR_MS);
    assert.equal(world.target.received.length, 1);
  }),
  of(
    'schedules the task anew when it fails: the time of RunTask and the backoff',
    RUN_TASK,
    async (world) => {
      await openQueue(world, { retryConfig: { minBackoff: seconds(100) } });
      world.target.answer.with = (n) => (n === 0 ? 500 : 200);
      await createTask(world, { scheduleTime: later(world, 10 * HOUR_MS) }, 't');
      const from = world.now();
      await world.call('RunTask', byName(world, 't'));
      await world.pass(20 * HOUR_MS);
      assert.deepEqual(times(world, from), [0, 100_000]);
    },
  ),
  of(
    'counts the backoff from the time of RunTask, however long the attempt took',
    RUN_TASK,
    async (world) => {
      await openQueue(world, { retryConfig: { minBackoff: seconds(100) } });
      world.target.answer.with = (n) => (n === 0 ? 'hang' : 200);
      const scheduleTime = later(world, 10 * HOUR_MS);
      await createTask(world, { scheduleTime, dispatchDeadline: seconds(60) }, 't');
      const from = world.now();
      await world.call('RunTask', byName(world, 't'));
      await world.pass(HOUR_MS);
      assert.deepEqual(times(world, from), [0, 100_000]);
    },
  ),
  of('sends the target the schedule time that the task had', QUOTAS, async (world) => {
    await openQueue(world);
    await createTask(world, { scheduleTime: later(world, HOUR_MS) }, 't');
    await world.call('RunTask', byName(world, 't'));
    await world.pass(0);
    const eta = world.target.received[0]?.headers['x-cloudtasks-tasketa'];
    assert.equal(Number(eta) * 1_000, world.now() + HOUR_MS);
  }),
  of('answers NOT_FOUND for a task that has succeeded', RUN_TASK, async (world) => {
    await openQueue(world);
    await createTask(world, {}, 't');
    await world.pass(0);
    await refused(world.call('RunTask', byName(world, 't')), 'NOT_FOUND');
  }),
  of('answers NOT_FOUND for a task of a queue that is paused and purged', RUN_TASK, async (world) => {
    await openQueue(world);
    await world.call('PauseQueue', { name: world.queue });
    await createTask(world, {}, 't');
    await world.call('PurgeQueue', { name: world.queue });
    await refused(world.call('RunTask', byName(world, 't')), 'NOT_FOUND');
    assert.equal(world.target.received.length, 0);
  }),
];
