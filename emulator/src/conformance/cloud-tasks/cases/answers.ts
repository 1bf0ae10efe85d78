/** What the answers of an HTTP target mean: success, failure, timeouts, redirects, Retry-After. */
import assert from 'node:assert/strict';
import { dispatchedHttp, headersOf } from '../dispatched.ts';
import {
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
import { HTTP_REQUEST, RECORDED, TASK } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const of = section('Answers to HTTP tasks');
const DAY_MS = 86_400_000;
const each = headersOf('x-cloudtasks');

/** The first attempt times out, the second succeeds. */
async function timeout(world: TasksWorld): Promise<void> {
  world.target.answer.with = (n) => (n === 0 ? 'hang' : 200);
  await openQueue(world);
  await createTask(world, { dispatchDeadline: seconds(15) }, 't');
  await world.pass(14_999);
  assert.equal(world.target.received.length, 1, 'tried again before the deadline');
  await world.pass(1_000);
  assert.equal(world.target.received.length, 2, 'not tried again after the deadline');
}

export const answerCases: readonly TasksCase[] = [
  ...[200, 201, 204, 299].map((status) =>
    of(`${status} is success: the task is gone`, HTTP_REQUEST, async (world) => {
      world.target.answer.with = () => status;
      await dispatchedHttp(world);
      await refused(world.call('GetTask', { name: taskName(world, 't') }), 'NOT_FOUND');
      await world.pass(DAY_MS);
      assert.equal(world.target.received.length, 1);
    }),
  ),
  ...[302, 304, 400, 401, 404, 422, 429, 500, 503].map((status) =>
    of(
      `${status} is a failure: the task is tried again`,
      status === 302 ? RECORDED : HTTP_REQUEST,
      async (world) => {
        world.target.answer.with = (n) => (n === 0 ? status : 200);
        await dispatchedHttp(world);
        await world.pass(DAY_MS);
        assert.equal(world.target.received.length, 2);
      },
    ),
  ),
  // The reference says that a redirect "may be followed"; the recordings of the service show a 302 that is not.
  of('does not follow a redirect', RECORDED, async (world) => {
    world.target.answer.with = (n) => (n === 0 ? { status: 302, headers: { location: '/elsewhere' } } : 200);
    await dispatchedHttp(world, {}, '/task');
    await world.pass(DAY_MS);
    assert.deepEqual(
      world.target.received.map(({ url }) => url),
      ['/task', '/task'],
    );
  }),
  of('an attempt that has no answer by its deadline has failed', TASK, timeout),
  of(
    'a timeout counts as a retry and not as an execution, with the previous response 504',
    RECORDED,
    async (world) => {
      await timeout(world);
      assert.deepEqual(each(world, 'taskretrycount'), ['0', '1']);
      assert.deepEqual(each(world, 'taskexecutioncount'), ['0', '0']);
      assert.deepEqual(each(world, 'taskpreviousresponse'), [undefined, '504']);
    },
  ),
  of('an attempt by default ends after ten minutes', TASK, async (world) => {
    world.target.answer.with = () => 'hang';
    await dispatchedHttp(world);
    await world.pass(599_999);
    assert.equal(world.target.received.length, 1);
    await world.pass(1_000);
    assert.equal(world.target.received.length, 2);
  }),
  of('a target that refuses the connection is tried again', HTTP_REQUEST, async (world) => {
    await openQueue(world);
    await createTask(world, { httpRequest: { url: 'http://127.0.0.1:1/' } }, 't');
    await world.pass(10_000);
    const { dispatchCount, responseCount } = await get(world, 'GetTask', taskName(world, 't'));
    assert.ok(dispatchCount > 1, `${dispatchCount} attempts`);
    assert.equal(responseCount, 0);
  }),
  ...[429, 503].map((status) =>
    of(
      `waits as long as the Retry-After of a ${status} says, where that is longer than the backoff`,
      HTTP_REQUEST,
      async (world) => {
        world.target.answer.with = (n) => (n === 0 ? { status, headers: { 'retry-after': '120' } } : 200);
        const from = world.now();
        await dispatchedHttp(world);
        await world.pass(DAY_MS);
        assert.deepEqual(times(world, from), [0, 120_000]);
      },
    ),
  ),
  of('takes a date in Retry-After', HTTP_REQUEST, async (world) => {
    const at = new Date(world.now() + 300_000).toUTCString();
    world.target.answer.with = (n) => (n === 0 ? { status: 503, headers: { 'retry-after': at } } : 200);
    const from = world.now();
    await dispatchedHttp(world);
    await world.pass(DAY_MS);
    assert.deepEqual(times(world, from), [0, 300_000]);
  }),
  of('does not retry earlier than the backoff because of a Retry-After', HTTP_REQUEST, async (world) => {
    await openQueue(world, { retryConfig: { minBackoff: seconds(60) } });
    world.target.answer.with = (n) => (n === 0 ? { status: 503, headers: { 'retry-after': '1' } } : 200);
    const from = world.now();
    await createTask(world);
    await world.pass(DAY_MS);
    assert.deepEqual(times(world, from), [0, 60_000]);
  }),
];
