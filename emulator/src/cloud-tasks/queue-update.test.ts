import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { startFixture, START_MS, until, type Fixture } from './fixture.ts';

let fixture: Fixture;
before(async () => {
  fixture = await startFixture();
});
after(() => fixture.close());

let count = 0;
let name: string;
beforeEach(async () => {
  name = `${fixture.parent}/queues/updated-${(count += 1)}`;
  await fixture.client.createQueue({
    parent: fixture.parent,
    queue: {
      name,
      rateLimits: { maxDispatchesPerSecond: 5, maxConcurrentDispatches: 7 },
      retryConfig: {
        maxAttempts: 3,
        minBackoff: { seconds: 2 },
        maxBackoff: { seconds: 9 },
        maxDoublings: 4,
      },
    },
  });
});

const update = async (settings: object, ...paths: string[]) => {
  const [queue] = await fixture.client.updateQueue({ queue: { name, ...settings }, updateMask: { paths } });
  const [seen] = await fixture.client.getQueue({ name });
  assert.deepEqual(queue, seen);
  return queue;
};
const refusal = (code: number, text: RegExp) => (error: Error & { code?: number }) => {
  assert.equal(error.code, code, error.message);
  assert.match(error.message, text);
  return true;
};
const received = (n: number): Promise<unknown> =>
  until(() => fixture.target.received.length >= n, `${n} requests`);

test('changes the one field that the mask names and nothing else', async () => {
  const queue = await update(
    {
      rateLimits: { maxDispatchesPerSecond: 100, maxConcurrentDispatches: 1 },
      retryConfig: { maxAttempts: 9 },
    },
    'rate_limits.max_dispatches_per_second',
  );
  assert.deepEqual(
    { ...queue.rateLimits },
    { maxDispatchesPerSecond: 100, maxBurstSize: 20, maxConcurrentDispatches: 7 },
  );
  assert.equal(queue.retryConfig?.maxAttempts, 3);
});

test('changes several fields, and gives one that is named but unset its default', async () => {
  const queue = await update(
    { retryConfig: { maxAttempts: -1, minBackoff: { seconds: 1 }, maxRetryDuration: { seconds: 60 } } },
    'retry_config.max_attempts',
    'retry_config.min_backoff',
    'retry_config.max_backoff',
    'retry_config.max_retry_duration',
  );
  assert.equal(queue.retryConfig?.maxAttempts, -1);
  assert.equal(Number(queue.retryConfig?.minBackoff?.seconds), 1);
  assert.equal(Number(queue.retryConfig?.maxBackoff?.seconds), 3600);
  assert.equal(Number(queue.retryConfig?.maxRetryDuration?.seconds), 60);
  assert.equal(queue.retryConfig?.maxDoublings, 4);
  assert.equal(queue.rateLimits?.maxConcurrentDispatches, 7);
});

test('replaces a part that is named whole, and everything where there is no mask', async () => {
  const part = await update({ retryConfig: { maxAttempts: 5 } }, 'retry_config');
  assert.equal(part.retryConfig?.maxAttempts, 5);
  assert.equal(part.retryConfig?.maxDoublings, 16);
  assert.equal(part.rateLimits?.maxDispatchesPerSecond, 5);
  const all = await update({ rateLimits: { maxConcurrentDispatches: 2 } });
  assert.equal(all.rateLimits?.maxDispatchesPerSecond, 500);
  assert.equal(all.rateLimits?.maxConcurrentDispatches, 2);
  assert.equal(all.retryConfig?.maxAttempts, 100);
});

test('creates a queue that is not there, as the API reference says', async () => {
  name = `${fixture.parent}/queues/made-by-update`;
  const queue = await update(
    { rateLimits: { maxDispatchesPerSecond: 3, maxConcurrentDispatches: 4 } },
    'rate_limits.max_concurrent_dispatches',
  );
  assert.equal(queue.rateLimits?.maxDispatchesPerSecond, 500);
  assert.equal(queue.rateLimits?.maxConcurrentDispatches, 4);
  await fixture.client.deleteQueue({ name });
  await assert.rejects(update({}), refusal(status.FAILED_PRECONDITION, /existed too recently/));
});

test('refuses what it does not update, values out of range, and a mask that is none; nothing is changed', async () => {
  const [unchanged] = await fixture.client.getQueue({ name });
  const unimplemented = refusal(status.UNIMPLEMENTED, /does not update/);
  await assert.rejects(update({}, 'stackdriver_logging_config.sampling_ratio'), unimplemented);
  const invalid = (text: RegExp) => refusal(status.INVALID_ARGUMENT, text);
  for (const path of ['rateLimits', '*', 'retry_config.x']) {
    await assert.rejects(update({}, 'retry_config', path), invalid(/cannot be updated/));
  }
  await assert.rejects(
    update({ rateLimits: { maxDispatchesPerSecond: 501 } }, 'rate_limits'),
    invalid(/maxDispatchesPerSecond must be less than or equal to 500/),
  );
  await assert.rejects(
    update({ retryConfig: { minBackoff: { seconds: 10 } } }, 'retry_config.min_backoff'),
    invalid(/minBackoff must be less than or equal to RetryConfig.maxBackoff/),
  );
  await assert.rejects(fixture.client.updateQueue({ queue: { name: 'x' } }), invalid(/must be formatted/));
  assert.deepEqual((await fixture.client.getQueue({ name }))[0], unchanged);
});

test('a new rate holds for the tasks that wait, counted from the change', async () => {
  const task = { httpRequest: { url: fixture.target.url } };
  for (let n = 0; n < 14; n += 1) await fixture.client.createTask({ parent: name, task });
  await received(10);
  assert.equal(fixture.tasks.stats().nextDueMs, START_MS + 200);
  await update({ rateLimits: { maxDispatchesPerSecond: 1 } }, 'rate_limits.max_dispatches_per_second');
  assert.equal(fixture.tasks.stats().nextDueMs, START_MS + 1000);
  fixture.clock.advance(1000);
  await received(11);
  await update({ rateLimits: { maxDispatchesPerSecond: 500 } }, 'rate_limits.max_dispatches_per_second');
  fixture.clock.advance(6);
  await received(14);
});

test('more concurrent dispatches start those that waited for it, and new attempts count for the next failure', async () => {
  const from = fixture.target.received.length;
  fixture.target.answer.with = () => 'hang';
  await update({ rateLimits: { maxConcurrentDispatches: 1 } }, 'rate_limits.max_concurrent_dispatches');
  const task = { httpRequest: { url: fixture.target.url } };
  for (let n = 0; n < 2; n += 1) await fixture.client.createTask({ parent: name, task });
  await received(from + 1);
  assert.equal(fixture.tasks.stats().inFlight, 1);
  await update({ rateLimits: { maxConcurrentDispatches: 2 } }, 'rate_limits.max_concurrent_dispatches');
  await received(from + 2);
  await update({ retryConfig: { maxAttempts: 1 } }, 'retry_config.max_attempts');
  for (const { response } of fixture.target.received.slice(from)) response.writeHead(500).end();
  await until(() => fixture.tasks.stats().pending === 0, 'both deleted');
  assert.equal(fixture.tasks.stats().givenUp, 2);
});

test('another routing override holds for the tasks that wait too, and without one they have their own again', async () => {
  const create = (id: string) =>
    fixture.client.createTask({
      parent: name,
      task: {
        name: `${name}/tasks/${id}`,
        scheduleTime: { seconds: fixture.clock.now() / 1000 + 86_400 },
        appEngineHttpRequest: { appEngineRouting: { service: 'own', version: 'v1' } },
      },
    });
  const host = async (id: string): Promise<string | null | undefined> =>
    (await fixture.client.getTask({ name: `${name}/tasks/${id}` }))[0].appEngineHttpRequest?.appEngineRouting
      ?.host;
  await create('before');
  assert.equal(await host('before'), 'v1.own.demo-project.appspot.com');
  await update({ appEngineRoutingOverride: { service: 'other' } }, 'app_engine_routing_override');
  await create('after');
  for (const id of ['before', 'after']) assert.equal(await host(id), 'other.demo-project.appspot.com');
  await update({}, 'app_engine_routing_override', 'state');
  for (const id of ['before', 'after']) assert.equal(await host(id), 'v1.own.demo-project.appspot.com');
});
