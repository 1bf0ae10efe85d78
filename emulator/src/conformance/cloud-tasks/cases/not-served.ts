/** What the service does and the embedded server does not: it says so, and keeps nothing that it would not honour. */
import assert from 'node:assert/strict';
import { createTask, get, openQueue, refusedHere, type TasksCase } from '../section.ts';
import { HTTP_REQUEST, METHODS, QUEUE } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const EMAIL = 'invoker@demo-project.iam.gserviceaccount.com';

const logged = { stackdriverLoggingConfig: { samplingRatio: 0.5 } };

/** The error of the attempt, once the queue is known to be as it was. */
async function unchanged(world: TasksWorld, attempt: () => Promise<unknown>): Promise<void> {
  const before = await get(world, 'GetQueue', world.queue);
  const ended = await attempt().then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.deepEqual(await get(world, 'GetQueue', world.queue), before, 'the queue was changed');
  const { tasks } = await world.call('ListTasks', { parent: world.queue });
  assert.deepEqual(tasks, [], 'a task was kept');
  if (ended !== undefined) throw ended;
}

export const notServedCases: readonly TasksCase[] = [
  refusedHere(
    'A queue that logs to Cloud Logging: this server refuses it, and makes none',
    QUEUE,
    async (world) => {
      try {
        await openQueue(world, logged);
      } finally {
        const { queues } = await world.call('ListQueues', { parent: world.parent });
        assert.deepEqual(queues, []);
      }
    },
    /stackdriver/,
  ),
  refusedHere(
    'An update of what a queue logs: this server refuses it, and changes nothing',
    QUEUE,
    async (world) => {
      await openQueue(world);
      const paths = ['stackdriver_logging_config.sampling_ratio', 'rate_limits.max_dispatches_per_second'];
      const queue = { name: world.queue, ...logged, rateLimits: { maxDispatchesPerSecond: 1 } };
      await unchanged(world, () => world.call('UpdateQueue', { queue, updateMask: { paths } }));
    },
    /stackdriver/,
  ),
  refusedHere('The locations of a project: this server refuses to list them', METHODS, async (world) => {
    for await (const _ of world.client().listLocationsAsync({ name: 'projects/demo-project' })) return;
  }),
  // Only Google can issue access tokens to its APIs: the embedded server refuses what it could only forge.
  refusedHere(
    'A task with an OAuth token: this server refuses it, and keeps none',
    HTTP_REQUEST,
    async (world) => {
      await openQueue(world);
      const oauthToken = { serviceAccountEmail: EMAIL };
      await unchanged(world, () => createTask(world, { httpRequest: { url: world.target.url, oauthToken } }));
    },
    /oauthToken/,
  ),
];
