/** CreateTask: names and de-duplication. */
import assert from 'node:assert/strict';
import {
  byName,
  createTask,
  later,
  openQueue,
  refused,
  seconds,
  section,
  taskName,
  type TasksCase,
} from '../section.ts';
import { METHODS, QUOTAS, RECORDED, TASK } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const HOUR_MS = 3_600_000;
const EXISTS = 'Requested entity already exists';
const NO_QUEUE =
  'Queue does not exist. If you just created the queue, wait at least a minute for the queue to initialize.';
const badId = (id: string): string =>
  `Task ID "${id}" can contain only letters ([A-Za-z]), numbers ([0-9]), hyphens (-), or underscores (_). Task ID must between 1 and 500 characters.`;

const of = section('Creating tasks: names');
/** A task that is not dispatched while the case looks at it. */
const waiting = (world: TasksWorld, id?: string) =>
  createTask(world, { scheduleTime: later(world, HOUR_MS) }, id);

export const taskNameCases: readonly TasksCase[] = [
  of('makes up a name, which the response has', METHODS, async (world) => {
    await openQueue(world);
    const [{ name }] = await world
      .client()
      .createTask({ parent: world.queue, task: { httpRequest: { url: world.target.url } } });
    assert.match(name ?? '', new RegExp(`^${world.queue}/tasks/[A-Za-z0-9_-]{1,500}$`));
  }),
  of('answers NOT_FOUND for a queue that does not exist', RECORDED, async (world) => {
    await refused(createTask(world), 'NOT_FOUND', NO_QUEUE);
  }),
  of('answers INVALID_ARGUMENT for a parent that is no queue', METHODS, async (world) => {
    await refused(
      world.call('CreateTask', { parent: world.parent, task: { httpRequest: { url: 'http://a.example' } } }),
      'INVALID_ARGUMENT',
    );
  }),
  of('answers INVALID_ARGUMENT for a request without a task', METHODS, async (world) => {
    await openQueue(world);
    await refused(world.call('CreateTask', { parent: world.queue }), 'INVALID_ARGUMENT');
  }),
  of('accepts letters, digits, hyphens and underscores in a task ID', TASK, async (world) => {
    await openQueue(world);
    assert.equal((await waiting(world, 'Aa-0_9')).name, taskName(world, 'Aa-0_9'));
  }),
  of('answers INVALID_ARGUMENT for another character in a task ID', RECORDED, async (world) => {
    await openQueue(world);
    await refused(waiting(world, 'a.b'), 'INVALID_ARGUMENT', badId('a.b'));
  }),
  of('answers INVALID_ARGUMENT for an empty task ID', RECORDED, async (world) => {
    await openQueue(world);
    await refused(waiting(world, ''), 'INVALID_ARGUMENT', badId(''));
  }),
  of('accepts a task ID of 500 characters', RECORDED, async (world) => {
    await openQueue(world);
    await waiting(world, 'x'.repeat(500));
  }),
  of('refuses a task ID of 501 characters', RECORDED, async (world) => {
    await openQueue(world);
    await refused(waiting(world, 'x'.repeat(501)), 'INVALID_ARGUMENT', badId('x'.repeat(501)));
  }),
  of('answers INVALID_ARGUMENT for the name of another queue', RECORDED, async (world) => {
    await openQueue(world);
    const other = `${world.parent}/queues/another`;
    await refused(
      createTask(world, { name: `${other}/tasks/t` }),
      'INVALID_ARGUMENT',
      `The queue name from request ('${world.queue}') must be the same as the queue name in the named task ('${other}').`,
    );
  }),
  of('answers ALREADY_EXISTS for the name of a task that waits', RECORDED, async (world) => {
    await openQueue(world);
    await waiting(world, 't');
    await refused(waiting(world, 't'), 'ALREADY_EXISTS', EXISTS);
  }),
  of('answers ALREADY_EXISTS for the name of a task that was executed recently', METHODS, async (world) => {
    await openQueue(world);
    await createTask(world, {}, 't');
    await world.pass(0);
    await refused(createTask(world, {}, 't'), 'ALREADY_EXISTS', EXISTS);
  }),
  of('answers ALREADY_EXISTS for the name of a task that was deleted recently', METHODS, async (world) => {
    await openQueue(world);
    await waiting(world, 't');
    await world.call('DeleteTask', byName(world, 't'));
    await refused(waiting(world, 't'), 'ALREADY_EXISTS', EXISTS);
  }),
  of('answers ALREADY_EXISTS for the name of a task that was purged recently', METHODS, async (world) => {
    await openQueue(world);
    await waiting(world, 't');
    await world.call('PurgeQueue', { name: world.queue });
    await refused(waiting(world, 't'), 'ALREADY_EXISTS', EXISTS);
  }),
  // Other pages say up to four hours; the quotas page and the protos say about one, which is this server's default.
  of('frees the name of a task about an hour after it was executed or deleted', QUOTAS, async (world) => {
    await openQueue(world);
    await waiting(world, 't');
    await world.call('DeleteTask', byName(world, 't'));
    await world.pass(HOUR_MS - 1);
    await refused(waiting(world, 't'), 'ALREADY_EXISTS', EXISTS);
    await world.pass(1);
    await waiting(world, 't');
  }),
  of('the same task ID may be used in two queues', TASK, async (world) => {
    await openQueue(world);
    await openQueue(world, {}, 'another');
    await waiting(world, 't');
    const name = `${world.parent}/queues/another/tasks/t`;
    await world.call('CreateTask', {
      parent: `${world.parent}/queues/another`,
      task: { name, httpRequest: { url: world.target.url } },
    });
  }),
  of('ignores what is given for output only fields', TASK, async (world) => {
    await openQueue(world);
    const given = {
      createTime: seconds(1),
      dispatchCount: 5,
      responseCount: 4,
      view: 'BASIC',
      scheduleTime: later(world, 1_000),
    };
    const { createTime, dispatchCount, responseCount } = await createTask(world, given);
    assert.deepEqual([Number(createTime.seconds) * 1_000, dispatchCount, responseCount], [world.now(), 0, 0]);
  }),
];
