import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFixture, START_MS, until, type Fixture } from './fixture.ts';
import { manualClock, type ManualClock } from '../manual-clock.ts';
import { turnsDuring } from '../spent.ts';

const DAY_MS = 86_400_000;

let fixture: Fixture;
let deadlineClock: ManualClock;
beforeEach(async () => {
  deadlineClock = manualClock(START_MS);
  fixture = await startFixture({ deadlineClock });
});
afterEach(() => fixture.close());

const openQueue = (settings: object = {}, queue = fixture.queue) =>
  fixture.client.createQueue({ parent: fixture.parent, queue: { name: queue, ...settings } });
const create = async (task: object = {}, queue = fixture.queue) => {
  const httpRequest = { url: fixture.target.url };
  await fixture.client.createTask({ parent: queue, task: { httpRequest, ...task } });
};
const received = (count: number): Promise<unknown> =>
  until(() => fixture.target.received.length >= count, `${count} requests`);
const settled = (): Promise<unknown> =>
  until(() => fixture.tasks.stats().inFlight === 0, 'nothing in flight');

/** What a runner does: waits for what is in flight, moves to the next time at which something is due, until nothing is left. */
async function runUntilIdle(): Promise<number> {
  for (let steps = 0; steps < 1000; steps += 1) {
    await settled();
    const { nextDueMs } = fixture.tasks.stats();
    if (nextDueMs === undefined) return steps;
    assert.ok(nextDueMs > fixture.clock.now(), 'what is due now is in flight already');
    fixture.clock.advance(nextDueMs - fixture.clock.now());
  }
  throw new Error('not idle after 1000 steps');
}

test('a clock that is moved does not end a request on the wire', async () => {
  await openQueue();
  fixture.target.answer.with = () => 'hang';
  await create({ dispatchDeadline: { seconds: 15 } });
  await received(1);
  fixture.clock.advance(30 * DAY_MS);
  await sleep(30);
  assert.equal(fixture.tasks.stats().inFlight, 1);
  fixture.target.received[0]?.response.end();
  await settled();
  assert.equal(fixture.tasks.stats().succeeded, 1);
  assert.equal(fixture.target.received.length, 1);
});

test('a request that hangs ends at its deadline while the clock is frozen, and is tried again by the clock', async () => {
  await openQueue();
  fixture.target.answer.with = (n) => (n === 0 ? 'hang' : 200);
  await create({ dispatchDeadline: { seconds: 15 } });
  await received(1);
  deadlineClock.advance(14_999);
  assert.equal(fixture.tasks.stats().inFlight, 1);
  deadlineClock.advance(1);
  await settled();
  assert.equal(fixture.tasks.stats().nextDueMs, START_MS + 100);
  assert.match(fixture.lines[0] ?? '', /no response before the dispatch deadline/);
  fixture.clock.advance(100);
  await received(2);
  assert.equal(fixture.target.received[1]?.headers['x-cloudtasks-taskpreviousresponse'], '504');
});

test('deadlines are in real time unless said otherwise', async () => {
  const { queue, parent } = fixture;
  const other = await startFixture({ deadlineClock: undefined });
  try {
    other.target.answer.with = () => 'hang';
    await other.client.createQueue({ parent, queue: { name: queue } });
    const task = { httpRequest: { url: other.target.url } };
    await other.client.createTask({ parent: queue, task });
    await until(() => other.target.received.length === 1, 'the request');
    assert.equal(other.clock.timers(), 0, 'no timer on the clock that is moved');
    other.clock.advance(DAY_MS);
    await sleep(30);
    assert.equal(other.tasks.stats().inFlight, 1);
  } finally {
    await other.close();
  }
});

test('a queue limited to 1 per second sends 100 tasks in 90 seconds of the clock, without waiting for them', async () => {
  await openQueue({ rateLimits: { maxDispatchesPerSecond: 1 } });
  const order: number[] = [];
  const at: number[] = [];
  fixture.target.answer.with = (_, { body }) => {
    order.push(Number(body.toString()));
    at.push(fixture.clock.now());
    return 200;
  };
  const scheduleTime = { seconds: START_MS / 1000 + 1 };
  const { url } = fixture.target;
  for (let n = 0; n < 100; n += 1) {
    await create({ scheduleTime, httpRequest: { url, body: Buffer.from(String(n)) } });
  }
  const turns = await turnsDuring(async () => assert.equal(await runUntilIdle(), 91));
  assert.equal(fixture.tasks.stats().succeeded, 100);
  assert.deepEqual([at[0], at.at(-1)], [START_MS + 1000, START_MS + 91_000]);
  assert.deepEqual(
    order.slice(10),
    Array.from({ length: 90 }, (_, n) => n + 10),
  );
  assert.ok(turns < 5_000, `${turns} turns`);
});

test('tasks of several queues fire in the order of their times', async () => {
  const queues = ['a', 'b', 'c'].map((id) => `${fixture.parent}/queues/${id}`);
  for (const queue of queues) await openQueue({}, queue);
  const expected: string[] = [];
  for (let n = 0; n < 30; n += 1) {
    const second = ((n * 7) % 30) + 1;
    const httpRequest = { url: `${fixture.target.url}/${second}` };
    await create({ scheduleTime: { seconds: START_MS / 1000 + second }, httpRequest }, queues[n % 3]);
    expected[second - 1] = `/${second}`;
  }
  await runUntilIdle();
  assert.deepEqual(
    fixture.target.received.map(({ url }) => url),
    expected,
  );
});

test('a chain of retries runs to its end, and then nothing is due', async () => {
  await openQueue({ retryConfig: { maxAttempts: 5, minBackoff: { seconds: 3600 } } });
  fixture.target.answer.with = () => 503;
  await create({ scheduleTime: { seconds: START_MS / 1000 + 29 * 86_400 } });
  assert.equal(await runUntilIdle(), 5);
  const { pending, inFlight, nextDueMs, givenUp } = fixture.tasks.stats();
  assert.deepEqual(
    { pending, inFlight, nextDueMs, givenUp },
    { pending: 0, inFlight: 0, nextDueMs: undefined, givenUp: 1 },
  );
});

test('a request of a queue that was deleted is in flight until it has ended', async () => {
  await openQueue();
  fixture.target.answer.with = () => 'hang';
  await create();
  await received(1);
  await fixture.client.deleteQueue({ name: fixture.queue });
  assert.deepEqual([fixture.tasks.stats().pending, fixture.tasks.stats().inFlight], [0, 1]);
  fixture.target.received[0]?.response.writeHead(500).end();
  await settled();
  assert.equal(fixture.tasks.stats().nextDueMs, undefined);
});

test('nothing is due in a paused queue, nor while the next dispatch waits for one in flight', async () => {
  await openQueue({ rateLimits: { maxConcurrentDispatches: 1 } });
  fixture.target.answer.with = () => 'hang';
  await create();
  await create();
  await received(1);
  assert.equal(fixture.tasks.stats().nextDueMs, undefined);
  fixture.target.received[0]?.response.end();
  await received(2);
  await create({ scheduleTime: { seconds: START_MS / 1000 + 60 } });
  assert.equal(fixture.tasks.stats().nextDueMs, START_MS + 60_000);
  await fixture.client.pauseQueue({ name: fixture.queue });
  assert.equal(fixture.tasks.stats().nextDueMs, undefined);
});
