import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { startFixture, START_MS, type Fixture } from './fixture.ts';
import { startCloudTasks } from './index.ts';
import { manualClock } from '../manual-clock.ts';

const HOUR_MS = 3_600_000;
const UNKNOWN_QUEUE =
  'Queue does not exist. If you just created the queue, wait at least a minute for the queue to initialize.';

let fixture: Fixture;
before(async () => {
  fixture = await startFixture();
});
after(() => fixture.close());

const nameOf = (id: string): string => `${fixture.parent}/queues/${id}`;
const create = (id: string, settings: object = {}) =>
  fixture.client.createQueue({ parent: fixture.parent, queue: { name: nameOf(id), ...settings } });

/** Rejects with this code, and this text or one that holds it. */
function refusal(code: number, text: string | RegExp) {
  return (error: Error & { code?: number; details?: string }) => {
    assert.equal(error.code, code, error.message);
    if (typeof text === 'string') assert.equal(error.details, text);
    else assert.match(error.details ?? '', text);
    return true;
  };
}

test('creates a queue with the defaults of the service', async () => {
  const [queue] = await create('defaults');
  assert.equal(queue.name, nameOf('defaults'));
  assert.equal(queue.state, 'RUNNING');
  assert.deepEqual(
    { ...queue.rateLimits },
    {
      maxDispatchesPerSecond: 500,
      maxBurstSize: 100,
      maxConcurrentDispatches: 1000,
    },
  );
  const retry = queue.retryConfig;
  assert.equal(retry?.maxAttempts, 100);
  assert.equal(retry?.maxDoublings, 16);
  assert.equal(retry?.minBackoff?.nanos, 100_000_000);
  assert.equal(Number(retry?.maxBackoff?.seconds), 3600);
  assert.equal(retry?.maxRetryDuration, null);
});

test('keeps what is set, unlimited attempts among it, and shows it again', async () => {
  await create('settings', {
    rateLimits: { maxDispatchesPerSecond: 1, maxConcurrentDispatches: 5 },
    retryConfig: {
      maxAttempts: -1,
      maxRetryDuration: { seconds: 90 },
      minBackoff: { seconds: 2 },
      maxBackoff: { seconds: 5 },
      maxDoublings: 1,
    },
    appEngineRoutingOverride: { service: 'republisher' },
  });
  const [queue] = await fixture.client.getQueue({ name: nameOf('settings') });
  assert.deepEqual(
    { ...queue.rateLimits },
    {
      maxDispatchesPerSecond: 1,
      maxBurstSize: 10,
      maxConcurrentDispatches: 5,
    },
  );
  assert.equal(queue.retryConfig?.maxAttempts, -1);
  assert.equal(Number(queue.retryConfig?.maxRetryDuration?.seconds), 90);
  assert.equal(Number(queue.retryConfig?.minBackoff?.seconds), 2);
  assert.equal(Number(queue.retryConfig?.maxBackoff?.seconds), 5);
  assert.equal(queue.retryConfig?.maxDoublings, 1);
  assert.equal(queue.appEngineRoutingOverride?.service, 'republisher');
});

test('answers the recorded errors for a queue that exists or is badly named', async () => {
  await create('twice');
  await assert.rejects(create('twice'), refusal(status.ALREADY_EXISTS, 'Queue already exists'));
  const badName = refusal(
    status.INVALID_ARGUMENT,
    'Queue name must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>".',
  );
  for (const id of ['', 'under_score', 'a/b', 'ü', 'x'.repeat(101)])
    await assert.rejects(create(id), badName);
  await create('x'.repeat(100));
});

test('answers the recorded errors for an unknown queue', async () => {
  const { client } = fixture;
  const name = nameOf('unknown');
  const unknown = refusal(status.NOT_FOUND, UNKNOWN_QUEUE);
  await assert.rejects(client.getQueue({ name }), unknown);
  await assert.rejects(client.purgeQueue({ name }), unknown);
  await assert.rejects(client.pauseQueue({ name }), unknown);
  await assert.rejects(client.resumeQueue({ name }), unknown);
  await assert.rejects(client.listTasks({ parent: name }), unknown);
  const task = { httpRequest: { url: fixture.target.url } };
  await assert.rejects(client.createTask({ parent: name, task }), unknown);
  await assert.rejects(
    client.deleteQueue({ name }),
    refusal(status.NOT_FOUND, 'Requested entity was not found.'),
  );
});

test('remembers the name of a deleted queue for seven days', async () => {
  const { client, clock } = fixture;
  await create('gone');
  await client.deleteQueue({ name: nameOf('gone') });
  await assert.rejects(client.getQueue({ name: nameOf('gone') }), refusal(status.NOT_FOUND, UNKNOWN_QUEUE));
  clock.advance(168 * HOUR_MS - 1);
  await assert.rejects(
    create('gone'),
    refusal(
      status.FAILED_PRECONDITION,
      'The queue cannot be created because a queue with this name existed too recently.',
    ),
  );
  clock.advance(1);
  await create('gone');
});

test('lists the queues of one location in order, page by page', async () => {
  const parent = 'projects/other/locations/europe-west1';
  for (const id of ['c', 'a', 'e', 'b', 'd']) {
    await fixture.client.createQueue({ parent, queue: { name: `${parent}/queues/${id}` } });
  }
  const seen: string[][] = [];
  let pageToken = '';
  do {
    const [queues, , reply] = await fixture.client.listQueues(
      { parent, pageSize: 2, pageToken },
      { autoPaginate: false },
    );
    seen.push(queues.map((queue) => (queue.name ?? '').slice(-1)));
    pageToken = reply?.nextPageToken ?? '';
  } while (pageToken !== '' && seen.length < 9);
  assert.deepEqual(seen, [['a', 'b'], ['c', 'd'], ['e']]);
  await assert.rejects(
    fixture.client.listQueues({ parent, pageToken: 'junk' }),
    refusal(status.INVALID_ARGUMENT, /page token/),
  );
  await fixture.client.pauseQueue({ name: `${parent}/queues/d` });
  const [paused] = await fixture.client.listQueues({ parent, filter: 'state: PAUSED' });
  assert.deepEqual(
    paused.map((queue) => queue.name),
    [`${parent}/queues/d`],
  );
});

test('refuses settings outside the limits of the service, naming the field', async () => {
  const refused: readonly (readonly [object, RegExp])[] = [
    [{ rateLimits: { maxDispatchesPerSecond: 501 } }, /^RateLimits.maxDispatchesPerSecond must be less/],
    [{ rateLimits: { maxDispatchesPerSecond: -1 } }, /^RateLimits.maxDispatchesPerSecond cannot be negative/],
    [{ rateLimits: { maxConcurrentDispatches: 5001 } }, /^RateLimits.maxConcurrentDispatches must be less/],
    [{ retryConfig: { maxAttempts: -2 } }, /^RetryConfig.maxAttempts must be/],
    [{ retryConfig: { maxDoublings: -1 } }, /^RetryConfig.maxDoublings cannot be/],
    [{ retryConfig: { minBackoff: { seconds: -1 } } }, /minBackoff/],
    [
      { retryConfig: { minBackoff: { seconds: 10 }, maxBackoff: { seconds: 5 } } },
      /^RetryConfig.minBackoff must be less/,
    ],
  ];
  for (const [settings, text] of refused) {
    await assert.rejects(create('refused', settings), refusal(status.INVALID_ARGUMENT, text));
  }
});

test('answers UNIMPLEMENTED for what it does not do, instead of ignoring it', async () => {
  const unimplemented = refusal(status.UNIMPLEMENTED, /./);
  await assert.rejects(create('logs', { stackdriverLoggingConfig: { samplingRatio: 1 } }), unimplemented);
});

test('purging deletes all tasks, remembers their names and notes the time', async () => {
  const { client, clock, target } = fixture;
  await create('purged');
  const task = {
    name: `${nameOf('purged')}/tasks/one`,
    scheduleTime: { seconds: clock.now() / 1000 + 60 },
    httpRequest: { url: target.url },
  };
  await client.createTask({ parent: nameOf('purged'), task });
  const [queue] = await client.purgeQueue({ name: nameOf('purged') });
  assert.equal(Number(queue.purgeTime?.seconds), clock.now() / 1000);
  assert.deepEqual((await client.listTasks({ parent: nameOf('purged') }))[0], []);
  await assert.rejects(
    client.createTask({ parent: nameOf('purged'), task }),
    refusal(status.ALREADY_EXISTS, 'Requested entity already exists'),
  );
  clock.advance(120_000);
  assert.equal(target.received.length, 0);
});

test('refuses options out of their range and names a port that is taken', async () => {
  const clock = manualClock(START_MS);
  await assert.rejects(startCloudTasks({ clock, rememberTaskNamesForMs: 4 * HOUR_MS + 1 }), RangeError);
  await assert.rejects(startCloudTasks({ clock, maxTaskBytes: 0 }), RangeError);
  await assert.rejects(
    startCloudTasks({ clock, port: fixture.tasks.port }),
    /port \d+ on 127\.0\.0\.1 is taken/,
  );
});
