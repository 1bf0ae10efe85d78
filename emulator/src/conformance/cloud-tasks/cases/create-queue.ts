/** CreateQueue: names, defaults, limits. */
import assert from 'node:assert/strict';
import { openQueue, refused, seconds, section, type TasksCase } from '../section.ts';
import { CREATE_QUEUE, METHODS, QUEUE, RATE_LIMITS, RECORDED, RETRY_CONFIG } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const of = section('Creating queues');
const BAD_NAME =
  'Queue name must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>".';

const create = (world: TasksWorld, name: string) =>
  world.call('CreateQueue', { parent: world.parent, queue: { name } });
const withRates = (world: TasksWorld, rateLimits: object) => openQueue(world, { rateLimits });
const withRetry = (world: TasksWorld, retryConfig: object) => openQueue(world, { retryConfig });

export const createQueueCases: readonly TasksCase[] = [
  of('creates a queue that runs, and returns it', CREATE_QUEUE, async (world) => {
    const [queue] = await world.client().createQueue({ parent: world.parent, queue: { name: world.queue } });
    assert.deepEqual([queue.name, queue.state], [world.queue, 'RUNNING']);
    const [got] = await world.client().getQueue({ name: world.queue });
    assert.equal(got.name, world.queue);
  }),
  // The reference says that the service picks them; the values are what `gcloud tasks queues describe` shows.
  of(
    'picks the defaults: 500 per second in bursts of 100, 1,000 at once, 100 attempts, backoff 0.1 s to 1 h with 16 doublings',
    RETRY_CONFIG,
    async (world) => {
      const { rateLimits, retryConfig } = await openQueue(world);
      assert.deepEqual(
        { ...rateLimits },
        { maxDispatchesPerSecond: 500, maxBurstSize: 100, maxConcurrentDispatches: 1000 },
      );
      const { maxAttempts, maxDoublings, minBackoff, maxBackoff } = retryConfig;
      assert.deepEqual([maxAttempts, maxDoublings], [100, 16]);
      assert.deepEqual(minBackoff, { seconds: '0', nanos: 100_000_000 });
      assert.deepEqual(maxBackoff, { seconds: '3600', nanos: 0 });
    },
  ),
  of('answers ALREADY_EXISTS for a queue that exists', RECORDED, async (world) => {
    await openQueue(world);
    await refused(openQueue(world), 'ALREADY_EXISTS', 'Queue already exists');
  }),
  of('answers INVALID_ARGUMENT for a badly formed name', RECORDED, async (world) => {
    await refused(create(world, 'no-queue'), 'INVALID_ARGUMENT', BAD_NAME);
  }),
  of('accepts a queue ID of 100 characters', QUEUE, async (world) => {
    await create(world, `${world.parent}/queues/${'q'.repeat(100)}`);
  }),
  of('refuses a queue ID of 101 characters', QUEUE, async (world) => {
    await refused(create(world, `${world.parent}/queues/${'q'.repeat(101)}`), 'INVALID_ARGUMENT', BAD_NAME);
  }),
  of('accepts letters, digits and hyphens in a queue ID', QUEUE, async (world) => {
    await create(world, `${world.parent}/queues/Aa-09`);
  }),
  of('refuses an underscore in a queue ID', QUEUE, async (world) => {
    await refused(create(world, `${world.parent}/queues/a_b`), 'INVALID_ARGUMENT', BAD_NAME);
  }),
  of('refuses an empty queue ID', QUEUE, async (world) => {
    await refused(create(world, `${world.parent}/queues/`), 'INVALID_ARGUMENT', BAD_NAME);
  }),
  of('accepts colons and periods in a project ID', QUEUE, async (world) => {
    const parent = 'projects/example.com:a-1/locations/us-central1';
    await world.call('CreateQueue', { parent, queue: { name: `${parent}/queues/q` } });
  }),
  of('refuses a parent that is no location', METHODS, async (world) => {
    await refused(
      world.call('CreateQueue', { parent: 'projects/p', queue: { name: world.queue } }),
      'INVALID_ARGUMENT',
    );
  }),
  of('refuses a name that lies in another location than the parent', METHODS, async (world) => {
    const name = 'projects/demo-project/locations/europe-west1/queues/q';
    await refused(create(world, name), 'INVALID_ARGUMENT');
  }),
  of('refuses a request without a queue', METHODS, async (world) => {
    await refused(world.call('CreateQueue', { parent: world.parent }), 'INVALID_ARGUMENT');
  }),
  of('ignores what is given for output only fields', QUEUE, async (world) => {
    const given = { state: 'PAUSED', purgeTime: seconds(5), rateLimits: { maxBurstSize: 7 } };
    const { state, purgeTime, rateLimits } = await openQueue(world, given);
    assert.deepEqual([state, purgeTime, rateLimits['maxBurstSize']], ['RUNNING', null, 100]);
  }),
  of('keeps the settings that it is given', QUEUE, async (world) => {
    const rateLimits = { maxDispatchesPerSecond: 0.5, maxConcurrentDispatches: 3 };
    const retryConfig = {
      maxAttempts: 7,
      maxRetryDuration: seconds(120),
      minBackoff: seconds(2),
      maxBackoff: seconds(30),
      maxDoublings: 4,
    };
    await openQueue(world, { rateLimits, retryConfig });
    const [shown] = await world.client().getQueue({ name: world.queue });
    assert.deepEqual(
      [shown.rateLimits?.maxDispatchesPerSecond, shown.rateLimits?.maxConcurrentDispatches],
      [0.5, 3],
    );
    const { maxAttempts, maxDoublings, maxRetryDuration, minBackoff, maxBackoff } = shown.retryConfig ?? {};
    const durations = [maxRetryDuration, minBackoff, maxBackoff].map((each) => Number(each?.seconds));
    assert.deepEqual([maxAttempts, maxDoublings, durations], [7, 4, [120, 2, 30]]);
  }),
];

const limits = section('Limits of a queue');

export const queueLimitCases: readonly TasksCase[] = [
  limits('accepts 500 dispatches per second', RATE_LIMITS, async (world) => {
    await withRates(world, { maxDispatchesPerSecond: 500 });
  }),
  limits('refuses more than 500 dispatches per second', RATE_LIMITS, async (world) => {
    await refused(
      withRates(world, { maxDispatchesPerSecond: 500.1 }),
      'INVALID_ARGUMENT',
      /maxDispatchesPerSecond/,
    );
  }),
  limits('refuses a negative rate', RATE_LIMITS, async (world) => {
    await refused(withRates(world, { maxDispatchesPerSecond: -1 }), 'INVALID_ARGUMENT');
  }),
  limits('accepts 5,000 concurrent dispatches', RATE_LIMITS, async (world) => {
    await withRates(world, { maxConcurrentDispatches: 5000 });
  }),
  limits('refuses 5,001 concurrent dispatches', RATE_LIMITS, async (world) => {
    await refused(
      withRates(world, { maxConcurrentDispatches: 5001 }),
      'INVALID_ARGUMENT',
      /maxConcurrentDispatches/,
    );
  }),
  limits('refuses a negative number of concurrent dispatches', RATE_LIMITS, async (world) => {
    await refused(withRates(world, { maxConcurrentDispatches: -1 }), 'INVALID_ARGUMENT');
  }),
  limits('accepts -1 attempts, which means without limit', RETRY_CONFIG, async (world) => {
    const { retryConfig } = await withRetry(world, { maxAttempts: -1 });
    assert.equal(retryConfig['maxAttempts'], -1);
  }),
  limits('refuses -2 attempts', RETRY_CONFIG, async (world) => {
    await refused(withRetry(world, { maxAttempts: -2 }), 'INVALID_ARGUMENT', /maxAttempts/);
  }),
  limits('refuses a negative number of doublings', RETRY_CONFIG, async (world) => {
    await refused(withRetry(world, { maxDoublings: -1 }), 'INVALID_ARGUMENT', /maxDoublings/);
  }),
  limits('refuses a negative backoff', RETRY_CONFIG, async (world) => {
    await refused(withRetry(world, { minBackoff: seconds(-1) }), 'INVALID_ARGUMENT', /minBackoff/);
  }),
  limits('accepts a minimum backoff that is the maximum', RETRY_CONFIG, async (world) => {
    await withRetry(world, { minBackoff: seconds(5), maxBackoff: seconds(5) });
  }),
  limits('refuses a minimum backoff above the maximum', RETRY_CONFIG, async (world) => {
    await refused(
      withRetry(world, { minBackoff: seconds(6), maxBackoff: seconds(5) }),
      'INVALID_ARGUMENT',
      /minBackoff/,
    );
  }),
  limits('cuts the time limit for retries to whole seconds', RETRY_CONFIG, async (world) => {
    const { retryConfig } = await withRetry(world, {
      maxRetryDuration: { seconds: '9', nanos: 900_000_000 },
    });
    assert.deepEqual(retryConfig['maxRetryDuration'], { seconds: '9', nanos: 0 });
  }),
  // The reference says so of all backoffs, but the service's own default is 0.1 s: below a second nothing is cut.
  limits('cuts backoffs of a second and more to whole seconds', RETRY_CONFIG, async (world) => {
    const { retryConfig } = await withRetry(world, {
      minBackoff: { seconds: '1', nanos: 700_000_000 },
      maxBackoff: { seconds: '9', nanos: 1 },
    });
    assert.deepEqual(retryConfig['minBackoff'], { seconds: '1', nanos: 0 });
    assert.deepEqual(retryConfig['maxBackoff'], { seconds: '9', nanos: 0 });
  }),
];
