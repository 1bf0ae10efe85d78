import assert from 'node:assert/strict';
import test from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../clock.ts';
import { START_MS } from './fixture.ts';
import type { HttpSender } from './http-sender.ts';
import { manualClock, type ManualClock } from '../manual-clock.ts';
import { parseQueueConfig } from './queue-config.ts';
import { createRememberedNames } from './remembered-names.ts';
import { createQueue, type Queue } from './queue.ts';
import { createTask, type Task } from './task.ts';

const HOUR_MS = 3_600_000;
const NAME = 'projects/p/locations/l/queues/q';

type Started<C> = Readonly<{ clock: C; queue: Queue }>;

const start = (send: HttpSender['send'], retryConfig: object = {}): Started<ManualClock> =>
  startOn(manualClock(START_MS), send, retryConfig);

function startOn<C extends Clock>(clock: C, send: HttpSender['send'], retryConfig: object = {}): Started<C> {
  const config = parseQueueConfig({
    name: NAME,
    appEngineRoutingOverride: null,
    rateLimits: null,
    retryConfig: {
      maxAttempts: 0,
      maxRetryDuration: null,
      minBackoff: null,
      maxBackoff: null,
      maxDoublings: 0,
      ...retryConfig,
    },
    stackdriverLoggingConfig: null,
  });
  const sender = { send, close: () => undefined };
  const queue = createQueue(
    { clock, sender, appEngine: undefined, identity: undefined, onWire: new Set(), log: () => undefined },
    config,
    createRememberedNames(clock, HOUR_MS),
  );
  return { clock, queue };
}

/** A clock that shows the new time before any timer has fired, as real time does to a process that was held up. */
function leapingClock(): Clock & Readonly<{ leap(milliseconds: number): void }> {
  let now = START_MS;
  let timers: { atMs: number; callback: () => void }[] = [];
  return {
    now: () => now,
    after(milliseconds, callback) {
      const timer = { atMs: now + Math.max(milliseconds, 0), callback };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    leap(milliseconds) {
      now += milliseconds;
      const late = timers.filter(({ atMs }) => atMs <= now).sort((a, b) => a.atMs - b.atMs);
      timers = timers.filter(({ atMs }) => atMs > now);
      for (const { callback } of late) callback();
    },
  };
}

function taskAt(scheduleMs: number, sequence: number, now: number): Task {
  const message = {
    name: '',
    httpRequest: { url: 'http://h/', httpMethod: 'POST', headers: {}, body: Buffer.alloc(0) },
    scheduleTime: { seconds: String(Math.floor(scheduleMs / 1000)), nanos: (scheduleMs % 1000) * 1e6 },
    dispatchDeadline: null,
  };
  return createTask(message, `${NAME}/tasks/${sequence}`, sequence, now, {
    appEngine: false,
    oidcTokens: false,
    routingOverride: undefined,
  });
}

test('100,000 waiting tasks need one timer, and leave on time and within the rate', async () => {
  const sent: number[] = [];
  let early = 0;
  const { clock, queue } = start(({ headers }, done) => {
    if (Number(headers['X-CloudTasks-TaskETA']) * 1000 > clock.now()) early += 1;
    sent.push(clock.now());
    queueMicrotask(() => done({ kind: 'response', status: 200 }));
  });
  const count = 100_000;
  for (let index = 0; index < count; index += 1) {
    // Spread over 1,000 seconds in an order unlike that of creation: 100 a second, a fifth of the rate.
    queue.add(taskAt(START_MS + 1000 + ((index * 7919) % count) * 10, index, clock.now()));
    queue.pump();
    if (index % 10_000 === 0) assert.equal(clock.timers(), 1);
  }
  assert.equal(clock.timers(), 1);
  assert.equal(queue.stats().nextDueMs, START_MS + 1000);
  for (let second = 0; second <= 1001 && queue.tasks.size > 0; second += 1) {
    clock.advance(1000);
    await turn();
  }
  assert.equal(queue.tasks.size, 0);
  assert.equal(early, 0);
  assert.deepEqual(
    [sent.length, sent[0], sent.at(-1)],
    [count, START_MS + 1000, START_MS + 1000 + (count - 1) * 10],
  );
  assert.equal(clock.timers(), 0);
});

test('a clock that leaps past many schedule times dispatches the tasks in the order of their times', async () => {
  const sent: number[] = [];
  const { clock, queue } = startOn(leapingClock(), ({ headers }, done) => {
    sent.push(Number(headers['X-CloudTasks-TaskETA']));
    queueMicrotask(() => done({ kind: 'response', status: 200 }));
  });
  for (let index = 0; index < 500; index += 1) {
    queue.add(taskAt(START_MS + 1000 + ((index * 131) % 500) * 10, index, clock.now()));
    queue.pump();
  }
  // An hour later at once: a burst of 100, and then by the rate.
  clock.leap(HOUR_MS);
  await turn();
  assert.equal(sent.length, 100);
  assert.equal(queue.stats().nextDueMs, START_MS + HOUR_MS + 2);
  for (let step = 0; step < 400; step += 1) {
    clock.leap(2);
    await turn();
  }
  assert.equal(sent.length, 500);
  assert.deepEqual(
    sent,
    sent.toSorted((a, b) => a - b),
  );
});

test('a timer that fires too early only sets the next one', () => {
  let sent = 0;
  const { clock, queue } = start(() => {
    sent += 1;
  });
  queue.add(taskAt(START_MS + 1000, 1, clock.now()));
  queue.pump();
  clock.advance(999);
  queue.pump();
  assert.deepEqual([sent, clock.timers()], [0, 1]);
  clock.advance(1);
  assert.equal(sent, 1);
});

test('retries without limit where the attempts are unlimited', async () => {
  let sent = 0;
  const { clock, queue } = start(
    (_, done) => {
      sent += 1;
      queueMicrotask(() => done({ kind: 'response', status: 500 }));
    },
    { maxAttempts: -1, maxBackoff: { seconds: '1', nanos: 0 } },
  );
  queue.add(taskAt(START_MS, 1, clock.now()));
  queue.pump();
  for (let attempt = 1; attempt <= 500; attempt += 1) {
    await turn();
    clock.advance(1000);
  }
  assert.equal(queue.tasks.size, 1);
  assert.ok(sent > 500);
});

test('stops at the hundredth attempt by default', async () => {
  let sent = 0;
  const { clock, queue } = start((_, done) => {
    sent += 1;
    queueMicrotask(() => done({ kind: 'timeout' }));
  });
  queue.add(taskAt(START_MS, 1, clock.now()));
  queue.pump();
  for (let attempt = 1; attempt <= 150; attempt += 1) {
    await turn();
    clock.advance(HOUR_MS);
  }
  assert.deepEqual([sent, queue.tasks.size, queue.stats().givenUp], [100, 0, 1]);
  assert.equal(queue.remembered.has(`${NAME}/tasks/1`), false, 'forgotten after an hour');
});

test('with a duration it retries until both the duration and the attempts are used up', async () => {
  let sent = 0;
  const { clock, queue } = start(
    (_, done) => {
      sent += 1;
      queueMicrotask(() => done({ kind: 'unreachable', error: 'no' }));
    },
    {
      maxAttempts: 2,
      maxRetryDuration: { seconds: '60', nanos: 0 },
      minBackoff: { seconds: '10', nanos: 0 },
      maxBackoff: { seconds: '10', nanos: 0 },
    },
  );
  queue.add(taskAt(START_MS, 1, clock.now()));
  queue.pump();
  for (let attempt = 1; attempt <= 20; attempt += 1) {
    await turn();
    clock.advance(10_000);
  }
  assert.equal(sent, 7, 'at 0, 10, … 60 seconds');
});

test('a task that runs twice at once on demand is retried once, and ends with the first success', async () => {
  const finish: ((status: number) => void)[] = [];
  const { clock, queue } = start((_, done) => finish.push((status) => done({ kind: 'response', status })));
  const task = taskAt(START_MS + HOUR_MS, 1, clock.now());
  queue.add(task);
  queue.run(task);
  queue.run(task);
  finish[0]?.(500);
  assert.equal(queue.stats().nextDueMs, undefined, 'the other attempt is still out');
  finish[1]?.(500);
  assert.equal(queue.stats().nextDueMs, START_MS + 200, 'the second backoff');
  clock.advance(1000);
  assert.equal(finish.length, 3);
  queue.run(task);
  finish[2]?.(200);
  assert.equal(queue.tasks.size, 0);
  finish[3]?.(500);
  clock.advance(HOUR_MS);
  await turn();
  assert.deepEqual([finish.length, queue.stats().inFlight, clock.timers()], [4, 0, 0]);
});

test('after close nothing is dispatched and late outcomes are ignored', async () => {
  const waiting: (() => void)[] = [];
  const { clock, queue } = start((_, done) => waiting.push(() => done({ kind: 'response', status: 500 })));
  queue.add(taskAt(START_MS, 1, clock.now()));
  queue.add(taskAt(START_MS + 1000, 2, clock.now()));
  queue.pump();
  queue.close();
  for (const finish of waiting) finish();
  await turn();
  clock.advance(HOUR_MS);
  assert.deepEqual([waiting.length, clock.timers()], [1, 0]);
});
