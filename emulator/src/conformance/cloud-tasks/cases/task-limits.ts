/** CreateTask: dispatch deadlines and sizes. */
import assert from 'node:assert/strict';
import { createTask, later, openQueue, refused, seconds, section, type TasksCase } from '../section.ts';
import { HTTP_REQUEST, METHODS, RECORDED, TASK } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const of = section('Creating tasks: deadlines and sizes');

const withDeadline = async (world: TasksWorld, dispatchDeadline: object, target: object = {}) => {
  await openQueue(world);
  return await createTask(world, { dispatchDeadline, scheduleTime: later(world, 1_000), ...target });
};
const APP_ENGINE = { appEngineHttpRequest: {} };
const DAY_SECONDS = 86_400;
/** Bytes of a task as stored, by a published probe of August 2026. */
const MEASURED = 1_048_569;

/** Bodies are sought for the largest task that is accepted: the rest of a task counts as well. */
async function largestBody(world: TasksWorld, cap: number, make: (body: Buffer) => object): Promise<number> {
  await openQueue(world);
  const accepts = async (bytes: number): Promise<boolean> => {
    try {
      await createTask(world, { scheduleTime: later(world, 1_000), ...make(Buffer.alloc(bytes, 'x')) });
      return true;
    } catch (error) {
      const { code, details } = error as { code?: number; details?: string };
      assert.equal(code, 3, `a task of ${bytes} bytes: ${details}`);
      assert.match(details ?? '', /Task size too large/);
      return false;
    }
  };
  let [fits, tooLarge] = [cap - 1_000, cap];
  assert.ok(await accepts(fits), `refused a body of ${fits} bytes`);
  assert.ok(!(await accepts(tooLarge)), `accepted a body of ${tooLarge} bytes`);
  while (tooLarge - fits > 1) {
    const middle = Math.floor((fits + tooLarge) / 2);
    if (await accepts(middle)) fits = middle;
    else tooLarge = middle;
  }
  return fits;
}

export const taskLimitCases: readonly TasksCase[] = [
  of('an HTTP task has 10 minutes by default', TASK, async (world) => {
    await openQueue(world);
    const { dispatchDeadline } = await createTask(world, { scheduleTime: later(world, 1_000) });
    assert.equal(dispatchDeadline.seconds, '600');
  }),
  of('accepts 15 seconds for an HTTP task', TASK, async (world) => {
    await withDeadline(world, seconds(15));
  }),
  of('refuses less than 15 seconds for an HTTP task', TASK, async (world) => {
    await refused(
      withDeadline(world, { seconds: '14', nanos: 999_000_000 }),
      'INVALID_ARGUMENT',
      /dispatchDeadline/,
    );
  }),
  of('accepts 30 minutes for an HTTP task', TASK, async (world) => {
    await withDeadline(world, seconds(1_800));
  }),
  of('refuses more than 30 minutes for an HTTP task', TASK, async (world) => {
    await refused(
      withDeadline(world, { seconds: '1800', nanos: 1_000_000 }),
      'INVALID_ARGUMENT',
      /dispatchDeadline/,
    );
  }),
  of(
    'an App Engine task has 10 minutes by default, the deadline of automatic scaling',
    TASK,
    async (world) => {
      await openQueue(world);
      const { dispatchDeadline } = await createTask(world, {
        scheduleTime: later(world, 1_000),
        ...APP_ENGINE,
      });
      assert.equal(dispatchDeadline.seconds, '600');
    },
  ),
  of('takes 0 as the default for an App Engine task', TASK, async (world) => {
    assert.equal((await withDeadline(world, seconds(0), APP_ENGINE)).dispatchDeadline.seconds, '600');
  }),
  of('accepts 15 seconds for an App Engine task', TASK, async (world) => {
    await withDeadline(world, seconds(15), APP_ENGINE);
  }),
  of('refuses less than 15 seconds for an App Engine task', TASK, async (world) => {
    await refused(withDeadline(world, seconds(14), APP_ENGINE), 'INVALID_ARGUMENT', /dispatchDeadline/);
  }),
  of('accepts 24 hours and 15 seconds for an App Engine task', TASK, async (world) => {
    await withDeadline(world, seconds(DAY_SECONDS + 15), APP_ENGINE);
  }),
  of('refuses more than 24 hours and 15 seconds for an App Engine task', TASK, async (world) => {
    await refused(
      withDeadline(world, { seconds: String(DAY_SECONDS + 15), nanos: 1_000_000 }, APP_ENGINE),
      'INVALID_ARGUMENT',
    );
  }),
  of('cuts the deadline to milliseconds', TASK, async (world) => {
    const { dispatchDeadline } = await withDeadline(world, { seconds: '20', nanos: 1_999_999 });
    assert.deepEqual(dispatchDeadline, { seconds: '20', nanos: 1_000_000 });
  }),
  // Documents say 100 KB and 1 MB; a probe of the service found 1,048,569 bytes as stored, for both kinds of target.
  of('accepts an HTTP task of about 1 MB, and nothing larger', RECORDED, async (world) => {
    const { url } = world.target;
    const bytes = await largestBody(world, MEASURED, (body) => ({ httpRequest: { url, body } }));
    assert.ok(bytes > MEASURED - 500, `the largest body has ${bytes} bytes`);
  }),
  of('accepts an App Engine task of about 1 MB, and nothing larger', RECORDED, async (world) => {
    const bytes = await largestBody(world, MEASURED, (body) => ({ appEngineHttpRequest: { body } }));
    assert.ok(bytes > MEASURED - 500, `the largest body has ${bytes} bytes`);
  }),
  of('counts headers towards the size', RECORDED, async (world) => {
    const { url } = world.target;
    const plain = await largestBody(world, MEASURED, (body) => ({ httpRequest: { url, body } }));
    const task = (headers: object) => ({
      httpRequest: { url, headers, body: Buffer.alloc(plain, 'x') },
      scheduleTime: later(world, 1_000),
    });
    await createTask(world, task({}));
    await refused(createTask(world, task({ 'X-Mine': 'a' })), 'INVALID_ARGUMENT', /Task size too large/);
  }),
  // The cap of the method's reference, as a setting of the server: a program that must be sure stays below it.
  of('accepts a task of about 100 KB, and nothing larger, where that is the cap', METHODS, async (world) => {
    const smaller = await world.other({ maxTaskBytes: 100 * 1024 });
    const { url } = smaller.target;
    const bytes = await largestBody(smaller, 100 * 1024, (body) => ({ httpRequest: { url, body } }));
    assert.ok(bytes > 100 * 1024 - 500, `the largest body has ${bytes} bytes`);
  }),
  of('accepts a URL of 2,083 characters', HTTP_REQUEST, async (world) => {
    await openQueue(world);
    const url = `${world.target.url}/`.padEnd(2_083, 'a');
    await createTask(world, { httpRequest: { url } });
  }),
  of('refuses a URL of 2,084 characters', HTTP_REQUEST, async (world) => {
    await openQueue(world);
    const url = `${world.target.url}/`.padEnd(2_084, 'a');
    await refused(createTask(world, { httpRequest: { url } }), 'INVALID_ARGUMENT', /2083/);
  }),
  of('counts the characters of a URL after encoding', HTTP_REQUEST, async (world) => {
    await openQueue(world);
    const url = `${world.target.url}/${'ü'.repeat(400)}`;
    await refused(createTask(world, { httpRequest: { url } }), 'INVALID_ARGUMENT', /2083/);
  }),
  of('accepts headers of just below 80 KB', HTTP_REQUEST, async (world) => {
    await openQueue(world);
    await createTask(world, {
      scheduleTime: later(world, 1_000),
      httpRequest: { url: world.target.url, headers: { 'X-Mine': 'a'.repeat(80 * 1024 - 7) } },
    });
  }),
  of('refuses headers of 80 KB', HTTP_REQUEST, async (world) => {
    await openQueue(world);
    const headers = { 'X-Mine': 'a'.repeat(80 * 1024 - 6) };
    await refused(
      createTask(world, { httpRequest: { url: world.target.url, headers } }),
      'INVALID_ARGUMENT',
      /80KB/,
    );
  }),
];
