/** UpdateQueue: masks, creation, what cannot be changed. */
import assert from 'node:assert/strict';
import {
  createTask,
  get,
  later,
  openQueue,
  refused,
  seconds,
  section,
  times,
  type Shown,
  type TasksCase,
} from '../section.ts';
import { JSON_MAPPING, QUEUE, RATE_LIMITS, RETRY_CONFIG, UPDATE_QUEUE } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const of = section('Updating queues');

const update = (world: TasksWorld, settings: object, ...paths: readonly string[]) =>
  world.call('UpdateQueue', {
    queue: { name: world.queue, ...settings },
    updateMask: { paths },
  }) as Promise<Shown>;

const RATES = { rateLimits: { maxDispatchesPerSecond: 2, maxConcurrentDispatches: 4 } };
const RETRIES = {
  retryConfig: {
    maxAttempts: 6,
    maxRetryDuration: seconds(60),
    minBackoff: seconds(2),
    maxBackoff: seconds(20),
    maxDoublings: 3,
  },
};

/** The fields that a mask may name, by the part of a queue that has them, with a value for each. */
const FIELDS = {
  rateLimits: { maxDispatchesPerSecond: 9, maxConcurrentDispatches: 8 },
  retryConfig: {
    maxAttempts: 3,
    maxDoublings: 5,
    maxRetryDuration: { seconds: '7', nanos: 0 },
    minBackoff: { seconds: '3', nanos: 0 },
    maxBackoff: { seconds: '40', nanos: 0 },
  },
} as const;
const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const PATHS = (['rateLimits', 'retryConfig'] as const).flatMap((part) =>
  Object.entries(FIELDS[part]).map(([field, value]) => ({
    path: snake(`${part}.${field}`),
    part,
    field,
    value,
  })),
);

export const updateQueueCases: readonly TasksCase[] = [
  of('creates a queue that does not exist', UPDATE_QUEUE, async (world) => {
    const [queue] = await world
      .client()
      .updateQueue({ queue: { name: world.queue, retryConfig: { maxAttempts: 3 } } });
    assert.equal(queue.retryConfig?.maxAttempts, 3);
    await get(world, 'GetQueue', world.queue);
  }),
  ...PATHS.map(({ path, part, field, value }) =>
    of(`changes ${path} and nothing else`, UPDATE_QUEUE, async (world) => {
      const before = await openQueue(world, { ...RATES, ...RETRIES });
      const after = await update(world, { [part]: { [field]: value } }, path);
      // What follows from the rate is picked by the service: here the burst is the same for both.
      assert.deepEqual(after, { ...before, [part]: { ...before[part], [field]: value } });
    }),
  ),
  of(
    'replaces a part that the mask names whole: what is unset in it gets its default',
    UPDATE_QUEUE,
    async (world) => {
      await openQueue(world, { ...RATES, ...RETRIES });
      const { retryConfig, rateLimits } = await update(
        world,
        { retryConfig: { maxAttempts: 5 } },
        'retry_config',
      );
      assert.deepEqual([retryConfig['maxAttempts'], retryConfig['maxDoublings']], [5, 16]);
      assert.equal(rateLimits['maxDispatchesPerSecond'], 2, 'the other part was changed as well');
    },
  ),
  of('updates all fields where the mask is empty', UPDATE_QUEUE, async (world) => {
    await openQueue(world, { ...RATES, ...RETRIES });
    const { retryConfig, rateLimits } = await update(world, { retryConfig: { maxAttempts: 5 } });
    assert.deepEqual(
      [retryConfig['maxAttempts'], retryConfig['maxDoublings'], rateLimits['maxDispatchesPerSecond']],
      [5, 16, 500],
    );
  }),
  of('changes the App Engine routing override', UPDATE_QUEUE, async (world) => {
    await openQueue(world, { ...RATES });
    const override = { service: 'worker', version: 'v2' };
    const after = await update(world, { appEngineRoutingOverride: override }, 'app_engine_routing_override');
    assert.deepEqual(
      [after.appEngineRoutingOverride?.['service'], after.appEngineRoutingOverride?.['version']],
      ['worker', 'v2'],
    );
    await createTask(world, { appEngineHttpRequest: {} });
    await world.pass(0);
    assert.deepEqual(world.routings, [override]);
  }),
  of('changes one field of the App Engine routing override', UPDATE_QUEUE, async (world) => {
    await openQueue(world, { appEngineRoutingOverride: { service: 'worker', version: 'v1' } });
    const { appEngineRoutingOverride: after } = await update(
      world,
      { appEngineRoutingOverride: { version: 'v2' } },
      'app_engine_routing_override.version',
    );
    assert.deepEqual([after?.['service'], after?.['version']], ['worker', 'v2']);
  }),
  of(
    'takes the App Engine routing override away where the mask is empty and it is unset',
    UPDATE_QUEUE,
    async (world) => {
      await openQueue(world, { appEngineRoutingOverride: { service: 'worker' } });
      assert.equal((await update(world, {})).appEngineRoutingOverride, null);
    },
  ),
  of('the routing override holds for tasks that were created before it', QUEUE, async (world) => {
    await openQueue(world);
    const appEngineHttpRequest = { appEngineRouting: { service: 'own' } };
    await createTask(world, { scheduleTime: later(world, 1_000), appEngineHttpRequest });
    await update(world, { appEngineRoutingOverride: { service: 'worker' } }, 'app_engine_routing_override');
    await world.pass(1_000);
    assert.deepEqual(world.routings, [{ service: 'worker' }]);
  }),
  of('ignores the state, which only pausing and resuming change', QUEUE, async (world) => {
    await openQueue(world);
    assert.equal((await update(world, { state: 'PAUSED' })).state, 'RUNNING');
    assert.equal((await update(world, { state: 'PAUSED' }, 'state')).state, 'RUNNING');
  }),
  of('ignores the burst size, which the service picks by the rate', RATE_LIMITS, async (world) => {
    await openQueue(world, { rateLimits: { maxDispatchesPerSecond: 500 } });
    const { rateLimits } = await update(
      world,
      { rateLimits: { maxBurstSize: 3 } },
      'rate_limits.max_burst_size',
    );
    assert.equal(rateLimits['maxBurstSize'], 100);
  }),
  of('picks another burst size with another rate', RATE_LIMITS, async (world) => {
    await openQueue(world, { rateLimits: { maxDispatchesPerSecond: 500 } });
    const { rateLimits } = await update(world, { rateLimits: { maxDispatchesPerSecond: 1 } }, 'rate_limits');
    assert.ok((rateLimits['maxBurstSize'] ?? 0) < 100, `still ${rateLimits['maxBurstSize']}`);
  }),
  of('leaves a paused queue paused', UPDATE_QUEUE, async (world) => {
    await openQueue(world);
    await world.call('PauseQueue', { name: world.queue });
    assert.equal((await update(world, { retryConfig: { maxAttempts: 2 } }, 'retry_config')).state, 'PAUSED');
  }),
  of('answers INVALID_ARGUMENT for a path that a queue does not have', JSON_MAPPING, async (world) => {
    await openQueue(world);
    await refused(update(world, {}, 'retry_config.nothing'), 'INVALID_ARGUMENT', /retry_config\.nothing/);
  }),
  of('answers INVALID_ARGUMENT for a value out of range, and changes nothing', RATE_LIMITS, async (world) => {
    const before = await openQueue(world, RATES);
    await refused(
      update(world, { rateLimits: { maxDispatchesPerSecond: 501 } }, 'rate_limits'),
      'INVALID_ARGUMENT',
    );
    assert.deepEqual(await get(world, 'GetQueue', world.queue), before);
  }),
  of('answers INVALID_ARGUMENT for a badly formed name, and for none', UPDATE_QUEUE, async (world) => {
    await refused(world.call('UpdateQueue', { queue: { name: 'q' } }), 'INVALID_ARGUMENT');
    await refused(world.call('UpdateQueue', {}), 'INVALID_ARGUMENT');
  }),
  of('new retry settings apply to the tasks that are in the queue', RETRY_CONFIG, async (world) => {
    await openQueue(world, { retryConfig: { minBackoff: seconds(10), maxDoublings: 1, maxAttempts: 10 } });
    world.target.answer.with = () => 400;
    const from = world.now();
    await createTask(world);
    await world.pass(0);
    await update(world, { retryConfig: { maxAttempts: 2 } }, 'retry_config.max_attempts');
    await world.pass(3_600_000);
    assert.deepEqual(times(world, from), [0, 10_000]);
  }),
  of('a new rate applies to the tasks that wait', RATE_LIMITS, async (world) => {
    await openQueue(world, { rateLimits: { maxDispatchesPerSecond: 0.001 } });
    for (let n = 0; n < 12; n += 1) await createTask(world);
    await world.pass(1_000);
    const burst = world.target.received.length;
    await update(
      world,
      { rateLimits: { maxDispatchesPerSecond: 1 } },
      'rate_limits.max_dispatches_per_second',
    );
    await world.pass(3_000);
    assert.deepEqual([burst, world.target.received.length], [10, 12]);
  }),
];
