/** GetQueue, DeleteQueue, PauseQueue, ResumeQueue, PurgeQueue. */
import assert from 'node:assert/strict';
import {
  byName,
  createTask,
  get,
  later,
  openQueue,
  refused,
  seconds,
  section,
  type TasksCase,
} from '../section.ts';
import { CREATE_QUEUE, DELETE_QUEUE, METHODS, QUEUE, QUOTAS, RECORDED } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const NO_QUEUE =
  'Queue does not exist. If you just created the queue, wait at least a minute for the queue to initialize.';
const GONE = 'Requested entity was not found.';
const TOO_RECENT = 'The queue cannot be created because a queue with this name existed too recently.';
const DAY_MS = 86_400_000;

const remove = (world: TasksWorld) => world.call('DeleteQueue', { name: world.queue });
async function openAndRemove(world: TasksWorld): Promise<void> {
  await openQueue(world);
  await remove(world);
}

const life = section('Getting, deleting, pausing and purging queues');
const METHODS_OF_A_QUEUE = ['GetQueue', 'PauseQueue', 'ResumeQueue', 'PurgeQueue'] as const;

export const queueLifeCases: readonly TasksCase[] = [
  ...METHODS_OF_A_QUEUE.flatMap((rpc) => [
    life(`${rpc} answers NOT_FOUND for an unknown queue`, RECORDED, async (world) => {
      await refused(world.call(rpc, { name: world.queue }), 'NOT_FOUND', NO_QUEUE);
    }),
    life(`${rpc} answers NOT_FOUND for a deleted queue`, RECORDED, async (world) => {
      await openAndRemove(world);
      await refused(world.call(rpc, { name: world.queue }), 'NOT_FOUND', NO_QUEUE);
    }),
    life(`${rpc} answers INVALID_ARGUMENT for a badly formed name`, QUEUE, async (world) => {
      await refused(
        world.call(rpc, { name: 'queues/q' }),
        'INVALID_ARGUMENT',
        /Queue name must be formatted/,
      );
    }),
  ]),
  life('DeleteQueue answers NOT_FOUND for an unknown queue', RECORDED, async (world) => {
    await refused(remove(world), 'NOT_FOUND', GONE);
  }),
  life('DeleteQueue answers NOT_FOUND the second time', RECORDED, async (world) => {
    await openAndRemove(world);
    await refused(remove(world), 'NOT_FOUND', GONE);
  }),
  life('DeleteQueue answers INVALID_ARGUMENT for a badly formed name', QUEUE, async (world) => {
    await refused(world.call('DeleteQueue', { name: 'q' }), 'INVALID_ARGUMENT');
  }),
  life(
    'deletes a queue even if it has tasks in it, which are then never dispatched',
    DELETE_QUEUE,
    async (world) => {
      await openQueue(world);
      await createTask(world, { scheduleTime: later(world, 1_000) }, 't');
      await remove(world);
      await world.pass(5_000);
      assert.equal(world.target.received.length, 0, 'a task of a deleted queue was dispatched');
      await refused(world.call('GetTask', byName(world, 't')), 'NOT_FOUND');
    },
  ),
  life(
    'answers FAILED_PRECONDITION for the name of a queue that was deleted recently',
    RECORDED,
    async (world) => {
      await openAndRemove(world);
      await refused(openQueue(world), 'FAILED_PRECONDITION', TOO_RECENT);
    },
  ),
  // Newer pages of the REST reference say up to three days; the quotas page and the protos say seven.
  life('frees the name of a deleted queue after seven days', QUOTAS, async (world) => {
    await openAndRemove(world);
    await world.pass(7 * DAY_MS - 1);
    await refused(openQueue(world), 'FAILED_PRECONDITION', TOO_RECENT);
    await world.pass(1);
    await openQueue(world);
  }),
  life('UpdateQueue does not bring back a queue that was deleted recently', RECORDED, async (world) => {
    await openAndRemove(world);
    await refused(
      world.call('UpdateQueue', { queue: { name: world.queue } }),
      'FAILED_PRECONDITION',
      TOO_RECENT,
    );
  }),
  life('refuses tasks for a deleted queue', RECORDED, async (world) => {
    await openAndRemove(world);
    await refused(createTask(world), 'NOT_FOUND', NO_QUEUE);
  }),
  life('a paused queue dispatches nothing, and takes tasks all the same', METHODS, async (world) => {
    await openQueue(world);
    const [paused] = await world.client().pauseQueue({ name: world.queue });
    assert.equal(paused.state, 'PAUSED');
    await createTask(world);
    await world.pass(DAY_MS);
    assert.equal(world.target.received.length, 0, 'a paused queue dispatched a task');
  }),
  life('a resumed queue dispatches what has become due', METHODS, async (world) => {
    await openQueue(world);
    await world.call('PauseQueue', { name: world.queue });
    await createTask(world);
    const [resumed] = await world.client().resumeQueue({ name: world.queue });
    assert.equal(resumed.state, 'RUNNING');
    await world.pass(0);
    assert.equal(world.target.received.length, 1, 'the task was not dispatched after the queue was resumed');
  }),
  life('a queue keeps its state when it is paused or resumed twice', METHODS, async (world) => {
    await openQueue(world);
    for (const [rpc, state] of [
      ['PauseQueue', 'PAUSED'],
      ['PauseQueue', 'PAUSED'],
      ['ResumeQueue', 'RUNNING'],
      ['ResumeQueue', 'RUNNING'],
    ] as const) {
      assert.equal((await world.call(rpc, { name: world.queue }))['state'], state);
    }
  }),
  life('a purge deletes every task that was created before it', METHODS, async (world) => {
    await openQueue(world);
    for (const id of ['a', 'b']) await createTask(world, { scheduleTime: later(world, 1_000) }, id);
    await world.client().purgeQueue({ name: world.queue });
    const { tasks } = await world.call('ListTasks', { parent: world.queue });
    assert.deepEqual(tasks, []);
    await world.pass(5_000);
    assert.equal(world.target.received.length, 0, 'a purged task was dispatched');
  }),
  life('a purge leaves what is created after it', METHODS, async (world) => {
    await openQueue(world);
    await world.call('PurgeQueue', { name: world.queue });
    await createTask(world);
    await world.pass(0);
    assert.equal(world.target.received.length, 1);
  }),
  life('the time of the last purge is unset at first, and then shown', QUEUE, async (world) => {
    assert.equal((await openQueue(world)).purgeTime, null);
    await world.pass(61_000);
    await world.call('PurgeQueue', { name: world.queue });
    const { purgeTime } = await get(world, 'GetQueue', world.queue);
    assert.equal(Number(purgeTime?.seconds) * 1_000, world.now());
  }),
  life('deletes a task that is 31 days old, dispatched or not', CREATE_QUEUE, async (world) => {
    await openQueue(world, {
      retryConfig: { maxAttempts: -1, minBackoff: seconds(43_200), maxBackoff: seconds(43_200) },
    });
    world.target.answer.with = () => 500;
    await createTask(world, {}, 't');
    await world.pass(31 * DAY_MS - 2 * 3_600_000);
    assert.ok((await get(world, 'GetTask', `${world.queue}/tasks/t`)).dispatchCount > 60);
    await world.pass(3 * 3_600_000);
    await refused(world.call('GetTask', byName(world, 't')), 'NOT_FOUND');
  }),
  life('deletes a task that is 31 days old from a paused queue', CREATE_QUEUE, async (world) => {
    await openQueue(world);
    await world.call('PauseQueue', { name: world.queue });
    await createTask(world, {}, 't');
    await world.pass(31 * DAY_MS - 1);
    await get(world, 'GetTask', `${world.queue}/tasks/t`);
    await world.pass(1);
    await refused(world.call('GetTask', byName(world, 't')), 'NOT_FOUND');
  }),
];
