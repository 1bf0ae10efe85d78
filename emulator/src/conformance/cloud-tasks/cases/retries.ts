/** When a failed task is tried again, and when it is deleted. */
import assert from 'node:assert/strict';
import {
  byName,
  createTask,
  get,
  openQueue,
  refused,
  seconds,
  section,
  taskName,
  times,
  type TasksCase,
} from '../section.ts';
import { QUEUE, RETRY_CONFIG, RETRYING, TASK } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const of = section('Retries');
const DAY_MS = 86_400_000;

/** The seconds at which a task that always fails is attempted, from the first attempt on. */
async function attempts(world: TasksWorld, retryConfig: object, milliseconds = DAY_MS): Promise<number[]> {
  await openQueue(world, { retryConfig });
  world.target.answer.with = () => 400;
  const from = world.now();
  await createTask(world, {}, 't');
  await world.pass(milliseconds);
  return times(world, from).map((ms) => ms / 1_000);
}
/** The waits between them. */
const waits = (at: readonly number[]): number[] => at.slice(1).map((second, n) => second - (at[n] ?? 0));
const gone = (world: TasksWorld) => refused(world.call('GetTask', byName(world, 't')), 'NOT_FOUND');

export const retryCases: readonly TasksCase[] = [
  of(
    'backs off by 10, 20, 40, 80, 160, 240, 300, 300 s with 10 s, 300 s and 3 doublings',
    RETRY_CONFIG,
    async (world) => {
      const at = await attempts(world, {
        minBackoff: seconds(10),
        maxBackoff: seconds(300),
        maxDoublings: 3,
        maxAttempts: 9,
      });
      assert.deepEqual(waits(at), [10, 20, 40, 80, 160, 240, 300, 300]);
    },
  ),
  of('doubles the default of 0.1 s', RETRY_CONFIG, async (world) => {
    const at = await attempts(world, { maxAttempts: 6 });
    assert.deepEqual(waits(at.map((second) => second * 1_000)).map(Math.round), [100, 200, 400, 800, 1_600]);
  }),
  of('never waits longer than the maximum backoff', RETRY_CONFIG, async (world) => {
    const at = await attempts(world, {
      minBackoff: seconds(1),
      maxBackoff: seconds(5),
      maxDoublings: 16,
      maxAttempts: 8,
    });
    assert.deepEqual(waits(at), [1, 2, 4, 5, 5, 5, 5]);
  }),
  of('waits the same where minimum and maximum are the same', RETRY_CONFIG, async (world) => {
    const at = await attempts(world, { minBackoff: seconds(7), maxBackoff: seconds(7), maxAttempts: 4 });
    assert.deepEqual(waits(at), [7, 7, 7]);
  }),
  of('makes as many attempts as are set, and then deletes the task', RETRY_CONFIG, async (world) => {
    assert.equal((await attempts(world, { maxAttempts: 5 })).length, 5);
    await gone(world);
  }),
  of('makes one attempt where one is set', RETRY_CONFIG, async (world) => {
    assert.equal((await attempts(world, { maxAttempts: 1 })).length, 1);
    await gone(world);
  }),
  of('makes 100 attempts by default', RETRY_CONFIG, async (world) => {
    assert.equal((await attempts(world, {}, 10 * DAY_MS)).length, 100);
    await gone(world);
  }),
  of(
    'a task whose attempts are used up is not dispatched by RunTask: NOT_FOUND',
    RETRY_CONFIG,
    async (world) => {
      await attempts(world, { maxAttempts: 2 });
      await refused(world.call('RunTask', byName(world, 't')), 'NOT_FOUND');
    },
  ),
  of('goes on without limit where attempts are unlimited', RETRY_CONFIG, async (world) => {
    const at = await attempts(
      world,
      { maxAttempts: -1, minBackoff: seconds(6 * 3_600), maxBackoff: seconds(6 * 3_600) },
      28 * DAY_MS,
    );
    assert.equal(at.length, 113);
    await get(world, 'GetTask', taskName(world, 't'));
  }),
  of('goes on after the attempts until the time limit has passed as well', RETRY_CONFIG, async (world) => {
    const at = await attempts(world, {
      maxAttempts: 2,
      maxRetryDuration: seconds(45),
      minBackoff: seconds(10),
      maxBackoff: seconds(10),
    });
    assert.deepEqual(at, [0, 10, 20, 30, 40, 50]);
    await gone(world);
  }),
  of('goes on after the time limit until the attempts are used up as well', RETRY_CONFIG, async (world) => {
    const at = await attempts(world, {
      maxAttempts: 6,
      maxRetryDuration: seconds(15),
      minBackoff: seconds(10),
      maxBackoff: seconds(10),
    });
    assert.equal(at.length, 6);
    await gone(world);
  }),
  of('a time limit alone decides where attempts are unlimited', RETRYING, async (world) => {
    const at = await attempts(world, {
      maxAttempts: -1,
      maxRetryDuration: seconds(35),
      minBackoff: seconds(10),
      maxBackoff: seconds(10),
    });
    assert.deepEqual(at, [0, 10, 20, 30, 40]);
    await gone(world);
  }),
  of('the name of a task whose attempts have ended cannot be used again at once', TASK, async (world) => {
    await attempts(world, { maxAttempts: 2 }, 60_000);
    await refused(createTask(world, {}, 't'), 'ALREADY_EXISTS');
  }),
  of('a success ends the retries', RETRY_CONFIG, async (world) => {
    await openQueue(world);
    world.target.answer.with = (n) => (n < 2 ? 500 : 200);
    await createTask(world, {}, 't');
    await world.pass(DAY_MS);
    assert.equal(world.target.received.length, 3);
    await gone(world);
  }),
  of('a task shows the schedule time of its next attempt', TASK, async (world) => {
    await attempts(world, { minBackoff: seconds(30) }, 0);
    const { scheduleTime } = await get(world, 'GetTask', taskName(world, 't'));
    assert.equal(Number(scheduleTime.seconds) * 1_000, world.now() + 30_000);
  }),
  of('a task counts its dispatches and responses', TASK, async (world) => {
    await attempts(world, { minBackoff: seconds(10) }, 15_000);
    const { dispatchCount, responseCount } = await get(world, 'GetTask', taskName(world, 't'));
    assert.deepEqual([dispatchCount, responseCount], [2, 2]);
  }),
  of('a dispatch without a response counts as a dispatch alone', TASK, async (world) => {
    await openQueue(world);
    world.target.answer.with = () => 'hang';
    await createTask(world, {}, 't');
    await world.pass(1_000);
    const { dispatchCount, responseCount, lastAttempt } = await get(world, 'GetTask', taskName(world, 't'));
    assert.deepEqual([dispatchCount, responseCount, lastAttempt?.responseTime], [1, 0, null]);
  }),
  of('shows the time of the first attempt alone, and all of the last', TASK, async (world) => {
    await attempts(world, { minBackoff: seconds(10) }, 15_000);
    const { firstAttempt, lastAttempt } = await get(world, 'GetTask', taskName(world, 't'));
    assert.deepEqual(
      [firstAttempt?.scheduleTime, firstAttempt?.responseTime, firstAttempt?.responseStatus],
      [null, null, null],
    );
    assert.equal(Number(firstAttempt?.dispatchTime?.seconds) * 1_000, world.now() - 15_000);
    assert.equal(Number(lastAttempt?.dispatchTime?.seconds) * 1_000, world.now() - 5_000);
    assert.ok(lastAttempt?.responseTime !== null);
    assert.equal(lastAttempt?.responseStatus?.code, 3, '400 is INVALID_ARGUMENT');
  }),
  of('a timeout shows as DEADLINE_EXCEEDED', TASK, async (world) => {
    await openQueue(world, { retryConfig: { minBackoff: seconds(100) } });
    world.target.answer.with = () => 'hang';
    await createTask(world, { dispatchDeadline: seconds(15) }, 't');
    await world.pass(16_000);
    const { lastAttempt } = await get(world, 'GetTask', taskName(world, 't'));
    assert.equal(lastAttempt?.responseStatus?.code, 4);
  }),
  of('the limits of the queue apply to every task alike', QUEUE, async (world) => {
    await openQueue(world, { retryConfig: { maxAttempts: 2 } });
    world.target.answer.with = () => 500;
    for (const id of ['a', 'b', 'c']) await createTask(world, {}, id);
    await world.pass(DAY_MS);
    assert.equal(world.target.received.length, 6);
  }),
];
