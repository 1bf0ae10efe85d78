/** The REST form of the API: paths, and Google’s client with `fallback: true`. */
import assert from 'node:assert/strict';
import { createTask, later, openQueue, section, taskName, type TasksCase } from '../section.ts';
import {
  CREATE_QUEUE,
  ERRORS,
  JSON_MAPPING,
  LIST_TASKS,
  METHODS,
  RUN_TASK,
  TASK,
  UPDATE_QUEUE,
} from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const of = section('REST');
const HOUR_MS = 3_600_000;

const queuePath = (world: TasksWorld, rest = ''): string => `/v2/${world.queue}${rest}`;
const post = async (world: TasksWorld, task: object) =>
  await world.http('POST', queuePath(world, '/tasks'), { task, responseView: 'FULL' });

export const restCases: readonly TasksCase[] = [
  of('Google’s client creates a queue and a task with fallback: true', METHODS, async (world) => {
    const client = await world.restClient();
    await client.createQueue({ parent: world.parent, queue: { name: world.queue } });
    const task = { httpRequest: { url: world.target.url, body: Buffer.from([0, 255]) } };
    const [created] = await client.createTask({ parent: world.queue, task });
    await world.pass(0);
    assert.ok(created.name?.startsWith(`${world.queue}/tasks/`));
    assert.deepEqual(world.target.received[0]?.body, Buffer.from([0, 255]));
  }),
  of('Google’s client gets gRPC codes of errors with fallback: true', ERRORS, async (world) => {
    const client = await world.restClient();
    await assert.rejects(client.getTask({ name: taskName(world, 't') }), (error: { code?: number }) => {
      assert.equal(error.code, 5);
      return true;
    });
  }),
  of('POST …/queues creates a queue, whose settings are the body', CREATE_QUEUE, async (world) => {
    const { status, body } = await world.http('POST', `/v2/${world.parent}/queues`, {
      name: world.queue,
      rateLimits: { maxDispatchesPerSecond: 2.5 },
      retryConfig: { maxRetryDuration: '90s' },
    });
    assert.equal(status, 200);
    assert.equal((body['rateLimits'] as Record<string, unknown>)['maxDispatchesPerSecond'], 2.5);
    assert.equal((body['retryConfig'] as Record<string, unknown>)['maxRetryDuration'], '90s');
  }),
  of('GET …/queues/Q gets a queue', METHODS, async (world) => {
    await openQueue(world);
    const { status, body } = await world.http('GET', queuePath(world));
    assert.deepEqual([status, body['name'], body['state']], [200, world.queue, 'RUNNING']);
  }),
  of('GET …/queues lists queues', METHODS, async (world) => {
    await openQueue(world);
    const { body } = await world.http('GET', `/v2/${world.parent}/queues?pageSize=5`);
    assert.equal((body['queues'] as readonly unknown[]).length, 1);
  }),
  of('PATCH …/queues/Q?updateMask=… updates a queue by a mask in camel case', UPDATE_QUEUE, async (world) => {
    await openQueue(world, { retryConfig: { maxAttempts: 7 } });
    const { body } = await world.http(
      'PATCH',
      queuePath(world, '?updateMask=rateLimits.maxConcurrentDispatches'),
      {
        rateLimits: { maxConcurrentDispatches: 4 },
      },
    );
    assert.equal((body['rateLimits'] as Record<string, unknown>)['maxConcurrentDispatches'], 4);
    assert.equal((body['retryConfig'] as Record<string, unknown>)['maxAttempts'], 7);
  }),
  ...(['pause', 'resume', 'purge'] as const).map((verb) =>
    of(`POST …/queues/Q:${verb}`, METHODS, async (world) => {
      await openQueue(world);
      const { status, body } = await world.http('POST', queuePath(world, `:${verb}`), {});
      assert.deepEqual([status, body['state']], [200, verb === 'pause' ? 'PAUSED' : 'RUNNING']);
    }),
  ),
  of('DELETE …/queues/Q deletes a queue and answers {}', METHODS, async (world) => {
    await openQueue(world);
    assert.deepEqual(await world.http('DELETE', queuePath(world)), { status: 200, body: {} });
    assert.equal((await world.http('GET', queuePath(world))).status, 404);
  }),
  of('POST …/tasks creates a task, whose body is base64', TASK, async (world) => {
    await openQueue(world);
    const { status } = await post(world, { httpRequest: { url: world.target.url, body: 'AP8=' } });
    await world.pass(0);
    assert.deepEqual([status, world.target.received[0]?.body], [200, Buffer.from([0, 255])]);
  }),
  of('a body that is not base64 is answered 400', JSON_MAPPING, async (world) => {
    await openQueue(world);
    assert.equal(
      (await post(world, { httpRequest: { url: world.target.url, body: 'not base64!' } })).status,
      400,
    );
  }),
  of(
    'GET …/tasks/T shows times in RFC 3339, durations in seconds, and no defaults',
    JSON_MAPPING,
    async (world) => {
      await openQueue(world);
      await createTask(world, { scheduleTime: later(world, HOUR_MS) }, 't');
      const { body } = await world.http('GET', queuePath(world, '/tasks/t'));
      assert.equal(body['scheduleTime'], new Date(world.now() + HOUR_MS).toISOString().replace('.000', ''));
      assert.deepEqual(
        [body['dispatchDeadline'], body['dispatchCount'], body['view']],
        ['600s', undefined, 'BASIC'],
      );
    },
  ),
  of('GET …/tasks/T?responseView=FULL shows the body', TASK, async (world) => {
    await openQueue(world);
    await createTask(
      world,
      {
        scheduleTime: later(world, HOUR_MS),
        httpRequest: { url: world.target.url, body: Buffer.from([0, 255]) },
      },
      't',
    );
    for (const query of ['responseView=FULL', 'responseView=2']) {
      const { body } = await world.http('GET', queuePath(world, `/tasks/t?${query}`));
      assert.equal((body['httpRequest'] as Record<string, unknown>)['body'], 'AP8=');
    }
  }),
  of('GET …/tasks lists tasks page by page', LIST_TASKS, async (world) => {
    await openQueue(world);
    for (const id of ['a', 'b']) await createTask(world, { scheduleTime: later(world, HOUR_MS) }, id);
    const first = await world.http('GET', queuePath(world, '/tasks?pageSize=1'));
    const token = encodeURIComponent(String(first.body['nextPageToken']));
    const second = await world.http('GET', queuePath(world, `/tasks?pageSize=1&pageToken=${token}`));
    assert.deepEqual(
      [(second.body['tasks'] as readonly unknown[]).length, second.body['nextPageToken']],
      [1, undefined],
    );
  }),
  of('POST …/tasks/T:run dispatches a task', RUN_TASK, async (world) => {
    await openQueue(world);
    await createTask(world, { scheduleTime: later(world, HOUR_MS) }, 't');
    const { status, body } = await world.http('POST', queuePath(world, '/tasks/t:run'), {});
    await world.pass(0);
    assert.deepEqual([status, body['dispatchCount'], world.target.received.length], [200, 1, 1]);
  }),
  of('DELETE …/tasks/T deletes a task and answers {}', METHODS, async (world) => {
    await openQueue(world);
    await createTask(world, { scheduleTime: later(world, HOUR_MS) }, 't');
    assert.deepEqual(await world.http('DELETE', queuePath(world, '/tasks/t')), { status: 200, body: {} });
  }),
];
