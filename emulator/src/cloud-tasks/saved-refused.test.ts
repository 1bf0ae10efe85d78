import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '../manual-clock.ts';
import { startCloudTasks } from './index.ts';

const PARENT = 'projects/p/locations/l/queues';
const QUEUE = `${PARENT}/q`;
const NAME = `${QUEUE}/tasks/t`;
const TIME = '2030-01-01T00:00:00Z';
const httpRequest = { url: 'http://127.0.0.1:1/none' };
const queue = (fields: object) => ({ queues: [{ name: QUEUE, ...fields }] });
const task = (fields: object) =>
  queue({
    tasks: [{ name: NAME, scheduleTime: '2030-01-03T00:00:00Z', createTime: TIME, httpRequest, ...fields }],
  });
const PLACE = 'tasks.queues[0].tasks[0]';

const REFUSED: readonly (readonly [saved: unknown, says: string | RegExp])[] = [
  ['x', 'tasks is "x"; accepted: an object'],
  [{ queue: [] }, 'tasks.queue is not known; accepted: queues, rememberedQueueNames'],
  [{ queues: [{}] }, 'tasks.queues[0].name is missing; accepted: a string'],
  [
    { queues: [{ name: 'q' }] },
    'tasks.queues[0].name is refused: Queue name must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>".',
  ],
  [
    { queues: [{ name: QUEUE }, { name: QUEUE }] },
    `tasks.queues[1].name is "${QUEUE}"; accepted: each one once`,
  ],
  [queue({ state: 'DISABLED' }), 'tasks.queues[0].state is "DISABLED"; accepted: RUNNING, PAUSED'],
  [
    queue({ rateLimits: { maxDispatchesPerSecond: 501 } }),
    'tasks.queues[0] is refused: RateLimits.maxDispatchesPerSecond must be less than or equal to 500.',
  ],
  [
    queue({ rateLimits: { maxBurstSize: 5 } }),
    'tasks.queues[0].rateLimits.maxBurstSize is not known; accepted: maxDispatchesPerSecond, maxConcurrentDispatches',
  ],
  [
    queue({ retryConfig: { minBackoff: 5 } }),
    'tasks.queues[0].retryConfig.minBackoff is 5; accepted: a duration in seconds as in 10s or 0.5s',
  ],
  [
    task({ name: `${PARENT}/other/tasks/t` }),
    `${PLACE}.name is "${PARENT}/other/tasks/t"; accepted: the name of a task of ${QUEUE}`,
  ],
  [
    task({ scheduleTime: undefined }),
    `${PLACE}.scheduleTime is missing; accepted: a time as in 2030-01-31T23:59:59.123Z`,
  ],
  [
    task({ dispatchCount: 1.5 }),
    `${PLACE}.dispatchCount is 1.5; accepted: a whole number from 0 to 2147483647`,
  ],
  [
    task({ dispatchDeadline: '1s' }),
    `${PLACE} is refused: Task.dispatchDeadline must be between [15s, 30m].`,
  ],
  [
    task({ httpRequest: undefined }),
    `${PLACE} is refused: The task needs a target: set httpRequest or appEngineHttpRequest.`,
  ],
  [
    task({ appEngineHttpRequest: {} }),
    `${PLACE} has httpRequest and appEngineHttpRequest; accepted: one of them`,
  ],
  [
    task({ httpRequest: undefined, appEngineHttpRequest: {} }),
    `${PLACE} is refused: AppEngineHttpRequest: this server was started without an App Engine application.`,
  ],
  [
    task({ httpRequest: { ...httpRequest, oidcToken: { serviceAccountEmail: 'a@b' } } }),
    /^tasks\.queues\[0\]\.tasks\[0\] is refused: HttpRequest\.oidcToken: this server was started without an identity/,
  ],
  [
    task({ httpRequest: { ...httpRequest, httpMethod: 'TRACE' } }),
    /^tasks\.queues\[0\]\.tasks\[0\] is refused: The HTTP method "TRACE" is not one of/,
  ],
  [
    task({ httpRequest: { ...httpRequest, body: '%' } }),
    `${PLACE}.httpRequest.body is "%"; accepted: base64`,
  ],
  [
    task({ lastAttempt: { scheduleTime: TIME, dispatchTime: 5 } }),
    `${PLACE}.lastAttempt.dispatchTime is 5; accepted: a time as in 2030-01-31T23:59:59.123Z`,
  ],
  [
    queue({ rememberedTaskNames: [{ name: 'x', until: TIME }] }),
    /^tasks\.queues\[0\]\.rememberedTaskNames\[0\]\.name is refused: Task name must be formatted/,
  ],
  [
    { ...queue({}), rememberedQueueNames: [{ name: QUEUE, until: TIME }] },
    `tasks.rememberedQueueNames[0].name is "${QUEUE}"; accepted: a name that nothing has now`,
  ],
  [
    { rememberedQueueNames: [{ name: QUEUE }] },
    'tasks.rememberedQueueNames[0].until is missing; accepted: a time as in 2030-01-31T23:59:59.123Z',
  ],
];

test('refuses with one line that names the place what it could not have saved, and changes nothing', async (t) => {
  const clock = manualClock(Date.parse(TIME));
  const server = await startCloudTasks({ clock });
  t.after(server.close);
  server.load(task({ dispatchCount: 3 }));
  const before = server.save();
  assert.equal(clock.timers(), 1);
  for (const [saved, says] of REFUSED) {
    assert.throws(() => server.load(saved), { name: 'SavedError', message: says });
    assert.deepEqual(server.save(), before);
  }
  assert.equal(clock.timers(), 1);
});
