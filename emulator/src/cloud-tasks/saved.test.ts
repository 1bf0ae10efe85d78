import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { identity } from '../identity.ts';
import { manualClock } from '../manual-clock.ts';
import { startFixture, START_MS, until, type Fixture } from './fixture.ts';

const HOUR = 3_600_000;
/** As through a file. */
const filed = (saved: object): object => JSON.parse(JSON.stringify(saved)) as object;
const clockAt = (now = START_MS) => manualClock(now);

async function fixtureOf(t: TestContext, now = START_MS): Promise<Fixture> {
  const clock = clockAt(now);
  const fixture = await startFixture({ clock, identity: identity(clock) });
  t.after(fixture.close);
  return fixture;
}

const openQueue = ({ client, parent, queue }: Fixture, settings: object = {}) =>
  client.createQueue({ parent, queue: { name: queue, ...settings } });
const get = async ({ client }: Fixture, name: string) =>
  (await client.getTask({ name, responseView: 'FULL' }))[0];
const arrived = ({ target }: Fixture, count: number) =>
  until(() => target.received.length >= count, `${count} requests`);
const quiet = ({ tasks }: Fixture) => until(() => tasks.stats().inFlight === 0, 'nothing in flight');

async function create({ client, queue, target }: Fixture, id: string, rest: object = {}): Promise<string> {
  const name = `${queue}/tasks/${id}`;
  const httpRequest = { url: `${target.url}/${id}` };
  await client.createTask({ parent: queue, task: { name, httpRequest, ...rest } });
  return name;
}

test('a fresh server has queues and tasks as they were, and the real client sees no difference', async (t) => {
  const first = await fixtureOf(t);
  const { client, clock, queue, parent, target, tasks } = first;
  await openQueue(first, {
    appEngineRoutingOverride: { service: 'worker' },
    rateLimits: { maxDispatchesPerSecond: 7.5, maxConcurrentDispatches: 3 },
    retryConfig: {
      maxAttempts: -1,
      maxRetryDuration: { seconds: 500 },
      minBackoff: { seconds: 0, nanos: 250_000_000 },
      maxBackoff: { seconds: 90 },
      maxDoublings: 2,
    },
  });
  const plain = `${parent}/queues/plain`;
  await client.createQueue({ parent, queue: { name: plain } });
  await client.purgeQueue({ name: plain });
  await client.pauseQueue({ name: plain });
  const scheduleTime = { seconds: START_MS / 1000 + 60, nanos: 123_456_789 };
  const late = await create(first, 'late', {
    scheduleTime,
    dispatchDeadline: { seconds: 77 },
    httpRequest: {
      url: `${target.url}/late?a=b`,
      httpMethod: 'PUT',
      headers: { 'X-Own': 'x', 'content-type': 'text/plain' },
      body: Buffer.from([0, 255]),
      oidcToken: { serviceAccountEmail: 'a@p.iam.gserviceaccount.com', audience: 'them' },
    },
  });
  const appEngine = { scheduleTime, httpRequest: null };
  const own = await create(first, 'own', {
    ...appEngine,
    appEngineHttpRequest: {
      relativeUri: '/own',
      headers: { 'User-Agent': 'mine' },
      body: Buffer.from('x'),
      appEngineRouting: { version: 'v2' },
    },
  });
  const bare = await create(first, 'bare', { ...appEngine, appEngineHttpRequest: { httpMethod: 'GET' } });
  target.answer.with = () => 404;
  const failing = await create(first, 'failing');
  await arrived(first, 1);
  await quiet(first);
  const saved = tasks.save();

  const second = await fixtureOf(t, clock.now());
  second.tasks.load(filed(saved));
  for (const name of [queue, plain]) {
    const [before, after] = await Promise.all(
      [first, second].map((each) => each.client.getQueue({ name }).then(([found]) => found)),
    );
    assert.deepEqual(after, before);
  }
  for (const name of [late, own, bare, failing]) {
    assert.deepEqual(await get(second, name), await get(first, name), name);
  }
  const listed = async (each: Fixture) =>
    (await each.client.listTasks({ parent: queue }))[0].map(({ name }) => name);
  assert.deepEqual(await listed(second), [late, own, bare, failing]);
  assert.deepEqual(second.tasks.save(), filed(saved));

  // The second attempt counts the first, and a new task comes after those that were loaded.
  second.clock.advance(250);
  await arrived(first, 2);
  await quiet(second);
  const { headers } = target.received[1]!;
  assert.equal(headers['x-cloudtasks-taskretrycount'], '1');
  assert.equal(headers['x-cloudtasks-taskexecutioncount'], '1');
  assert.equal(headers['x-cloudtasks-taskpreviousresponse'], '404');
  await create(second, 'new', { scheduleTime });
  assert.equal((await listed(second)).length, 5);
  assert.match(String((await listed(second)).at(-1)), /new$/);
});

test('names of tasks that are done and of deleted queues stay taken for as long as they would have been', async (t) => {
  const first = await fixtureOf(t);
  await openQueue(first);
  const done = await create(first, 'done');
  await arrived(first, 1);
  await quiet(first);
  const gone = `${first.parent}/queues/gone`;
  const goneQueue = { parent: first.parent, queue: { name: gone } };
  await first.client.createQueue(goneQueue);
  await first.client.deleteQueue({ name: gone });

  const second = await fixtureOf(t, START_MS + HOUR / 2);
  second.tasks.load(filed(first.tasks.save()));
  await assert.rejects(create(second, 'done'), { code: 6 });
  await assert.rejects(get(second, done), { code: 5, message: /existed recently/ });
  await assert.rejects(second.client.createQueue(goneQueue), { code: 9 });
  second.clock.advance(HOUR / 2);
  await create(second, 'done');
  second.clock.advance(7 * 24 * HOUR);
  await second.client.createQueue(goneQueue);
});

test('an overdue task is dispatched at once, another at its time, and a paused queue waits', async (t) => {
  const first = await fixtureOf(t);
  await openQueue(first);
  const at = (seconds: number) => ({ scheduleTime: { seconds: START_MS / 1000 + seconds } });
  await create(first, 'soon', at(60));
  await create(first, 'later', at(600));
  const saved = filed(first.tasks.save());
  await first.client.pauseQueue({ name: first.queue });
  const paused = filed(first.tasks.save());

  const second = await fixtureOf(t, START_MS + 120_000);
  const paths = () => first.target.received.map(({ url }) => url);
  second.tasks.load(paused);
  await sleep(30);
  assert.deepEqual(paths(), []);
  second.tasks.load(saved);
  await arrived(first, 1);
  second.clock.advance(479_999);
  await sleep(30);
  assert.deepEqual(paths(), ['/soon']);
  second.clock.advance(1);
  await arrived(first, 2);
  assert.deepEqual(paths(), ['/soon', '/later']);
});

test('what was in flight is dropped without settling anything, and due again at once, once more than allowed', async (t) => {
  const fixture = await fixtureOf(t);
  const { target, tasks, client, clock } = fixture;
  await openQueue(fixture, { retryConfig: { maxAttempts: 1 } });
  target.answer.with = (n) => (n < 2 ? 'hang' : 200);
  const name = await create(fixture, 'hangs');
  const forced = await create(fixture, 'forced', { scheduleTime: { seconds: START_MS / 1000 + 3600 } });
  await client.runTask({ name: forced });
  await arrived(fixture, 2);
  const saved = filed(tasks.save());
  tasks.load({});
  assert.deepEqual([clock.timers(), tasks.stats().inFlight, tasks.stats().queues], [0, 0, 0]);
  // The answer of the dropped one, if it could still be given, would be a success.
  for (const { response } of target.received) response.writeHead(200).end();
  await sleep(30);
  assert.equal(tasks.stats().succeeded, 0);

  tasks.load(saved);
  const [{ dispatchCount, responseCount }] = await client.getTask({ name });
  assert.deepEqual([dispatchCount, responseCount], [2, 0]);
  await arrived(fixture, 4);
  await until(() => tasks.stats().pending === 0, 'both are done');
  const last = target.received.slice(2);
  assert.deepEqual(last.map(({ url }) => url).toSorted(), ['/forced', '/hangs']);
  assert.deepEqual(
    last.map(({ headers }) => headers['x-cloudtasks-taskretrycount']),
    ['1', '1'],
  );
  assert.deepEqual(fixture.lines, []);
});

test('a task that was loaded ends at 31 days of age, and none is dispatched before its time', async (t) => {
  const first = await fixtureOf(t);
  await openQueue(first);
  await first.client.pauseQueue({ name: first.queue });
  await create(first, 'old');
  const second = await fixtureOf(t, START_MS + 31 * 24 * HOUR - 1);
  second.tasks.load(filed(first.tasks.save()));
  assert.equal(second.tasks.stats().pending, 1);
  second.clock.advance(1);
  assert.deepEqual((await second.client.listTasks({ parent: second.queue }))[0], []);
});

test('a name that was remembered for longer elsewhere does not keep shorter ones in the saved state', async (t) => {
  const first = await fixtureOf(t);
  const { queue, clock, tasks, target } = first;
  const later = new Date(START_MS + 4 * HOUR).toISOString();
  tasks.load({
    queues: [{ name: queue, rememberedTaskNames: [{ name: `${queue}/tasks/long`, until: later }] }],
  });
  await create(first, 't');
  await arrived(first, 1);
  await quiet(first);
  clock.advance(2 * HOUR);
  // Free again, and used again.
  await create(first, 't', { scheduleTime: { seconds: (START_MS + 3 * HOUR) / 1000 } });
  const second = await fixtureOf(t, clock.now());
  second.tasks.load(filed(tasks.save()));
  second.clock.advance(HOUR);
  await until(() => target.received.length === 2, 'the second task of the name');
});
