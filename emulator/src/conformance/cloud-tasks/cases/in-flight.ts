/** What becomes of attempts that are in flight while their queue or task changes. */
import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
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
import { METHODS, RATE_LIMITS, RETRY_CONFIG, TASK } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const of = section('While attempts are in flight');
const HOUR_MS = 3_600_000;

/** A task whose first attempt hangs until its deadline of 15 s, and whose others succeed. */
async function hanging(world: TasksWorld, settings: object = {}): Promise<void> {
  await openQueue(world, settings);
  world.target.answer.with = (n) => (n === 0 ? 'hang' : 200);
  await createTask(world, { dispatchDeadline: seconds(15) }, 't');
  await world.pass(1_000);
  assert.equal(world.target.received.length, 1, 'the task was not dispatched');
}
const received = ({ target }: TasksWorld): number => target.received.length;

export const inFlightCases: readonly TasksCase[] = [
  of(
    'the request is cancelled when its deadline has passed, and the target sees that',
    TASK,
    async (world) => {
      await hanging(world, { retryConfig: { minBackoff: seconds(100) } });
      assert.equal(world.target.hanging(), 1);
      await world.pass(15_000);
      for (let round = 0; round < 24_000 && world.target.hanging() > 0; round += 1) await wait(5);
      assert.equal(world.target.hanging(), 0, 'the request is still open');
    },
  ),
  of('a paused queue does not try a failed task again until it is resumed', METHODS, async (world) => {
    await hanging(world);
    await world.call('PauseQueue', { name: world.queue });
    await world.pass(HOUR_MS);
    assert.equal(received(world), 1, 'tried again while the queue was paused');
    await world.call('ResumeQueue', { name: world.queue });
    await world.pass(0);
    assert.equal(received(world), 2, 'not tried again after the queue was resumed');
  }),
  of('an attempt that succeeds while its queue is paused ends the task', METHODS, async (world) => {
    await openQueue(world);
    await world.call('PauseQueue', { name: world.queue });
    await createTask(world, {}, 't');
    await world.call('RunTask', byName(world, 't'));
    await world.pass(0);
    await refused(world.call('GetTask', byName(world, 't')), 'NOT_FOUND');
    await world.call('ResumeQueue', { name: world.queue });
    await world.pass(HOUR_MS);
    assert.equal(received(world), 1);
  }),
  of('a task that is purged while it is dispatched is not tried again', METHODS, async (world) => {
    await hanging(world);
    await world.call('PurgeQueue', { name: world.queue });
    await world.pass(HOUR_MS);
    assert.equal(received(world), 1);
  }),
  of('a task whose queue is deleted while it is dispatched is not tried again', METHODS, async (world) => {
    await hanging(world);
    await world.call('DeleteQueue', { name: world.queue });
    await world.pass(HOUR_MS);
    assert.equal(received(world), 1);
  }),
  of('more dispatches at once, once they are allowed, go out at once', RATE_LIMITS, async (world) => {
    await openQueue(world, { rateLimits: { maxConcurrentDispatches: 1 } });
    world.target.answer.with = () => 'hang';
    for (let n = 0; n < 4; n += 1) await createTask(world);
    await world.pass(1_000);
    assert.equal(received(world), 1);
    const queue = { name: world.queue, rateLimits: { maxConcurrentDispatches: 3 } };
    const paths = ['rate_limits.max_concurrent_dispatches'];
    await world.call('UpdateQueue', { queue, updateMask: { paths } });
    await world.pass(1_000);
    assert.equal(received(world), 3);
  }),
  of('fewer attempts, once they are set, end a task at its next failure', RETRY_CONFIG, async (world) => {
    await openQueue(world, { retryConfig: { minBackoff: seconds(60), maxAttempts: 50 } });
    world.target.answer.with = () => 500;
    await createTask(world, {}, 't');
    await world.pass(0);
    const queue = { name: world.queue, retryConfig: { maxAttempts: 2 } };
    await world.call('UpdateQueue', { queue, updateMask: { paths: ['retry_config.max_attempts'] } });
    await world.pass(HOUR_MS);
    assert.equal(received(world), 2);
    await refused(world.call('GetTask', byName(world, 't')), 'NOT_FOUND');
  }),
  of('an attempt that hangs holds its place: the next task waits for its end', RATE_LIMITS, async (world) => {
    await openQueue(world, {
      rateLimits: { maxConcurrentDispatches: 1 },
      retryConfig: { minBackoff: seconds(600) },
    });
    world.target.answer.with = (n) => (n === 0 ? 'hang' : 200);
    const from = world.now();
    await createTask(world, { dispatchDeadline: seconds(20) }, 'a');
    await createTask(world, {}, 'b');
    await world.pass(60_000);
    assert.deepEqual(times(world, from), [0, 20_000]);
  }),
  of('while it runs, the last attempt has been dispatched and has no response', TASK, async (world) => {
    await openQueue(world, { retryConfig: { minBackoff: seconds(10), maxBackoff: seconds(10) } });
    world.target.answer.with = (n) => (n === 0 ? 500 : 'hang');
    await createTask(world, {}, 't');
    await world.pass(11_000);
    const { lastAttempt, dispatchCount, responseCount } = await get(world, 'GetTask', taskName(world, 't'));
    assert.deepEqual([dispatchCount, responseCount, lastAttempt?.responseTime], [2, 1, null]);
    assert.equal(Number(lastAttempt?.dispatchTime?.seconds) * 1_000, world.now() - 1_000);
  }),
];
