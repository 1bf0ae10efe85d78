import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFixture, START_MS, until, type Fixture, type Received } from './fixture.ts';

const DAY_MS = 24 * 3_600_000;
/** Below the default deadline of a dispatch: a request that should not be there is not cut off by the jump. */
const MINUTES_MS = 300_000;
const APP_ENGINE_AGENT = 'AppEngine-Google; (+http://code.google.com/appengine)';

let fixture: Fixture;
beforeEach(async () => {
  fixture = await startFixture();
});
afterEach(() => fixture.close());

const openQueue = (settings: object = {}) =>
  fixture.client.createQueue({ parent: fixture.parent, queue: { name: fixture.queue, ...settings } });
const create = async (task: object): Promise<string> => {
  const [created] = await fixture.client.createTask({ parent: fixture.queue, task });
  return created.name ?? '';
};
const http = (request: object = {}) => ({ httpRequest: { url: `${fixture.target.url}/task`, ...request } });
const appEngine = (request: object = {}) => ({ appEngineHttpRequest: { relativeUri: '/task', ...request } });
const received = (count: number): Promise<unknown> =>
  until(() => fixture.target.received.length >= count, `${count} requests`);
const nothingInFlight = (): Promise<unknown> =>
  until(() => fixture.tasks.stats().inFlight === 0, 'nothing in flight');
const done = (): Promise<unknown> =>
  until(() => fixture.tasks.stats().pending === 0 && fixture.tasks.stats().inFlight === 0, 'all tasks done');
/** Gives a request that should not be there the time to arrive. */
const settle = (): Promise<void> => sleep(30);

/** Creates a task, answers its attempts with the statuses in turn, moves the clock over every backoff, and returns the requests. */
async function attempts(
  task: object,
  statuses: readonly (number | 'hang')[],
  deadlineMs: number,
): Promise<readonly Received[]> {
  fixture.target.answer.with = (n) => statuses[n] ?? 200;
  await create(task);
  for (const [n, status] of statuses.entries()) {
    await received(n + 1);
    if (status === 'hang') fixture.clock.advance(deadlineMs);
    await nothingInFlight();
    // No further: a jump beyond the deadline of the next attempt would end that too.
    fixture.clock.advance((fixture.tasks.stats().nextDueMs ?? fixture.clock.now()) - fixture.clock.now());
  }
  await done();
  return fixture.target.received;
}

const column = (requests: readonly Received[], header: string): (string | undefined)[] =>
  requests.map(({ headers }) => headers[header]?.toString());

test('B39: every answer but 2xx is tried again, and attempts are counted as recorded, against an HTTP target', async () => {
  await openQueue();
  const named = { name: `${fixture.queue}/tasks/counted`, ...http() };
  const requests = await attempts(named, [503, 404, 429, 500, 302, 200], 0);
  assert.deepEqual(column(requests, 'x-cloudtasks-taskretrycount'), ['0', '1', '2', '3', '4', '5']);
  assert.deepEqual(column(requests, 'x-cloudtasks-taskexecutioncount'), ['0', '0', '1', '2', '2', '3']);
  const previous = [undefined, '503', '404', '429', '500', '302'];
  assert.deepEqual(column(requests, 'x-cloudtasks-taskpreviousresponse'), previous);
  assert.deepEqual(column(requests, 'x-cloudtasks-taskretryreason'), [undefined, '', '', '', '', '']);
  for (const { headers, url } of requests) {
    assert.equal(url, '/task', 'a redirect is not followed');
    assert.equal(headers['user-agent'], 'Google-Cloud-Tasks');
    assert.equal(headers['x-cloudtasks-queuename'], 'delay-queue');
    assert.equal(headers['x-cloudtasks-taskname'], 'counted');
  }
});

test('B39: every answer but 2xx is tried again, and attempts are counted as recorded, against an App Engine target', async () => {
  await openQueue();
  const requests = await attempts(appEngine(), [503, 404, 429, 500, 302, 200], 0);
  assert.deepEqual(column(requests, 'x-appengine-taskretrycount'), ['0', '1', '2', '3', '4', '5']);
  assert.deepEqual(column(requests, 'x-appengine-taskexecutioncount'), ['0', '1', '2', '3', '4', '5']);
  const previous = [undefined, '503', '404', '429', '500', '302'];
  assert.deepEqual(column(requests, 'x-appengine-taskpreviousresponse'), previous);
  const reason = 'App Error';
  assert.deepEqual(column(requests, 'x-appengine-taskretryreason'), [undefined, ...Array(5).fill(reason)]);
  for (const { headers } of requests) {
    assert.equal(headers['user-agent'], APP_ENGINE_AGENT);
    assert.equal(headers['x-appengine-queuename'], 'delay-queue');
    assert.ok(!Object.keys(headers).some((header) => header.startsWith('x-cloudtasks-')));
  }
});

test('treats a response that does not come before the deadline as recorded', async () => {
  await openQueue();
  const [first, second] = await attempts(
    { ...http(), dispatchDeadline: { seconds: 15 } },
    ['hang', 200],
    15_000,
  );
  await until(() => first?.response.closed === true, 'the request that timed out is cut off');
  assert.equal(second?.headers['x-cloudtasks-taskretrycount'], '1');
  assert.equal(second?.headers['x-cloudtasks-taskexecutioncount'], '0');
  assert.equal(second?.headers['x-cloudtasks-taskpreviousresponse'], '504');

  fixture.target.answer.with = (n) => (n === 2 ? 'hang' : 200);
  await create({ ...appEngine(), dispatchDeadline: { seconds: 15 } });
  await received(3);
  fixture.clock.advance(14_999);
  await settle();
  assert.equal(fixture.tasks.stats().inFlight, 1, 'not before the deadline');
  fixture.clock.advance(1);
  await nothingInFlight();
  fixture.clock.advance(100);
  await received(4);
  const last = fixture.target.received[3];
  assert.equal(last?.headers['x-appengine-taskretrycount'], '1');
  assert.equal(last?.headers['x-appengine-taskexecutioncount'], '0');
  assert.equal(last?.headers['x-appengine-taskpreviousresponse'], '0');
  assert.equal(last?.headers['x-appengine-taskretryreason'], 'Instance Unavailable');
});

test('any 2xx is success and the task is gone', async () => {
  await openQueue();
  for (const [n, status] of [200, 201, 202, 204, 299].entries()) {
    fixture.target.answer.with = () => status;
    await create(http());
    await received(n + 1);
    await done();
  }
  fixture.clock.advance(MINUTES_MS);
  await settle();
  assert.equal(fixture.target.received.length, 5);
  assert.equal(fixture.tasks.stats().succeeded, 5);
});

test('remembers the name of a task that ran, for an hour', async () => {
  await openQueue();
  const named = { name: `${fixture.queue}/tasks/ran`, ...http() };
  await create(named);
  await done();
  fixture.clock.advance(3_599_999);
  await assert.rejects(create(named), { code: 6, details: 'Requested entity already exists' });
  fixture.clock.advance(1);
  await create(named);
  await received(2);
});

test('dispatches at the schedule time by the clock, not a millisecond before, also 29 days ahead', async () => {
  await openQueue();
  const seconds = START_MS / 1000 + 29 * 86_400;
  await create({ ...http(), scheduleTime: { seconds, nanos: 250_000_001 } });
  fixture.clock.advance(29 * DAY_MS + 250);
  await settle();
  assert.equal(fixture.target.received.length, 0, 'a nanosecond too early');
  fixture.clock.advance(1);
  await received(1);
  const [request] = fixture.target.received;
  assert.equal(request?.headers['x-cloudtasks-tasketa'], `${seconds}.250000`);
});

test('dispatches in the order of the schedule times, whatever the order of creation', async () => {
  await openQueue({ rateLimits: { maxConcurrentDispatches: 1 } });
  for (const second of [3, 1, 2]) {
    const body = Buffer.from(String(second));
    await create({ ...http({ body }), scheduleTime: { seconds: START_MS / 1000 + second } });
  }
  assert.equal(fixture.tasks.stats().nextDueMs, START_MS + 1000);
  fixture.clock.advance(10_000);
  await received(3);
  assert.deepEqual(
    fixture.target.received.map(({ body }) => body.toString()),
    ['1', '2', '3'],
  );
});

test('B39: backs off by the retry settings and deletes the task after its last attempt, with a log line', async () => {
  await openQueue({
    retryConfig: {
      maxAttempts: 5,
      minBackoff: { seconds: 10 },
      maxBackoff: { seconds: 60 },
      maxDoublings: 1,
    },
  });
  fixture.target.answer.with = () => 422;
  const name = await create(http());
  for (const [n, seconds] of [10, 20, 40, 60].entries()) {
    await received(n + 1);
    await nothingInFlight();
    fixture.clock.advance(seconds * 1000 - 1);
    await settle();
    assert.equal(fixture.target.received.length, n + 1, `attempt ${n + 2} before its backoff`);
    fixture.clock.advance(1);
  }
  await received(5);
  await done();
  assert.match(
    fixture.lines.at(-1) ?? '',
    /failed for the last time: HTTP status code 422 at attempt 5; it is deleted/,
  );
  await assert.rejects(fixture.client.getTask({ name }), { code: 5, details: /no longer exists/ });
  fixture.clock.advance(MINUTES_MS);
  await settle();
  assert.equal(fixture.target.received.length, 5);
  assert.equal(fixture.tasks.stats().givenUp, 1);
});

test('shows the attempts of a task', async () => {
  await openQueue();
  fixture.target.answer.with = () => 404;
  const name = await create(http());
  await received(1);
  await nothingInFlight();
  const [task] = await fixture.client.getTask({ name });
  assert.equal(task.dispatchCount, 1);
  assert.equal(task.responseCount, 1);
  assert.equal(Number(task.firstAttempt?.dispatchTime?.seconds), START_MS / 1000);
  assert.equal(task.lastAttempt?.responseStatus?.code, 5);
  assert.equal(task.lastAttempt?.responseStatus?.message, 'HTTP status code 404');
  assert.equal(task.scheduleTime?.nanos, 100_000_000, 'the time of the retry');
});

test('deletes a task that is 31 days old, in spite of unlimited attempts', async () => {
  const twoDays = { seconds: 2 * 86_400 };
  await openQueue({ retryConfig: { maxAttempts: -1, minBackoff: twoDays, maxBackoff: twoDays } });
  fixture.target.answer.with = () => 500;
  await create({ ...http(), scheduleTime: { seconds: START_MS / 1000 + 30 * 86_400 } });
  fixture.clock.advance(30 * DAY_MS);
  await received(1);
  await nothingInFlight();
  fixture.clock.advance(DAY_MS - 1);
  assert.equal(fixture.tasks.stats().pending, 1);
  fixture.clock.advance(1);
  assert.equal(fixture.tasks.stats().pending, 0);
  assert.match(fixture.lines.at(-1) ?? '', /is 31 days old; it is deleted/);
});

test('keeps to the rate: a burst, then one dispatch per interval', async () => {
  await openQueue({ rateLimits: { maxDispatchesPerSecond: 2 } });
  await Promise.all(Array.from({ length: 14 }, () => create(http())));
  await received(10);
  for (const expected of [11, 12, 13, 14]) {
    fixture.clock.advance(499);
    await settle();
    assert.equal(fixture.target.received.length, expected - 1);
    fixture.clock.advance(1);
    await received(expected);
  }
});

test('keeps to the number of concurrent dispatches', async () => {
  await openQueue({ rateLimits: { maxConcurrentDispatches: 3 } });
  fixture.target.answer.with = () => 'hang';
  await Promise.all(Array.from({ length: 8 }, () => create(http())));
  for (const [answered, request] of [3, 4, 5, 6, 7, 8, 8, 8].entries()) {
    await received(request);
    await settle();
    assert.equal(fixture.target.received.length, request);
    fixture.target.received[answered]?.response.end();
  }
  await done();
});

test('does not dispatch from a paused queue, and dispatches what is due when it is resumed', async () => {
  await openQueue();
  const [paused] = await fixture.client.pauseQueue({ name: fixture.queue });
  assert.equal(paused.state, 'PAUSED');
  await create(http());
  fixture.clock.advance(MINUTES_MS);
  await settle();
  assert.equal(fixture.target.received.length, 0);
  const [resumed] = await fixture.client.resumeQueue({ name: fixture.queue });
  assert.equal(resumed.state, 'RUNNING');
  await received(1);
});

test('runs a task at once on demand, in a paused queue too, and retries it from then', async () => {
  await openQueue();
  await fixture.client.pauseQueue({ name: fixture.queue });
  fixture.target.answer.with = (n) => (n < 2 ? 500 : 200);
  const name = await create({ ...http(), scheduleTime: { seconds: START_MS / 1000 + 3600 } });
  const [running] = await fixture.client.runTask({ name });
  assert.equal(running.dispatchCount, 1);
  await received(1);
  await nothingInFlight();
  const [failed] = await fixture.client.getTask({ name });
  assert.equal(failed.scheduleTime?.nanos, 100_000_000);
  await Promise.all([fixture.client.runTask({ name }), fixture.client.runTask({ name })]);
  await done();
  assert.equal(fixture.target.received.length, 3);
  await assert.rejects(fixture.client.runTask({ name }), { code: 5 });
});

test('a task that is deleted while it is dispatched is not tried again', async () => {
  await openQueue();
  fixture.target.answer.with = () => 'hang';
  const name = await create(http());
  await received(1);
  await fixture.client.deleteTask({ name });
  fixture.target.received[0]?.response.writeHead(500).end();
  await nothingInFlight();
  fixture.clock.advance(MINUTES_MS);
  await settle();
  assert.equal(fixture.target.received.length, 1);
});

test('a deleted queue dispatches nothing any more', async () => {
  await openQueue();
  await create({ ...http(), scheduleTime: { seconds: START_MS / 1000 + 1 } });
  await fixture.client.deleteQueue({ name: fixture.queue });
  assert.equal(fixture.clock.timers(), 0);
  fixture.clock.advance(MINUTES_MS);
  await settle();
  assert.equal(fixture.target.received.length, 0);
});
