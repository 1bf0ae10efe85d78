import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CloudTasksClient } from '@google-cloud/tasks';
import { PermanentError, TransientError } from '../errors.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { type CloudTasksOptions, cloudTasksQueue } from './cloud-tasks.ts';
import { refusal } from '../testing/refusal.ts';

const QUEUE = 'projects/p/locations/l/queues/q';
const TASK = { name: 'a-name', scheduleTimeMs: Date.UTC(2030, 0, 2), body: Buffer.from('x') };
const code = (value: number): Error => Object.assign(new Error('said so'), { code: value });

/** A queue whose n-th call is answered by the n-th of `answers`, the last of them over and over. */
function queueOf(answers: readonly (Error | 'ok' | 'hangs')[], options: Partial<CloudTasksOptions> = {}) {
  const clock = virtualClock();
  const calls: { atMs: number; timeout: number }[] = [];
  const createTask = async (_request: object, { timeout }: { timeout: number }): Promise<unknown> => {
    const answer = answers[Math.min(calls.length, answers.length - 1)];
    calls.push({ atMs: clock.monotonic(), timeout });
    if (answer === 'hangs') return new Promise(() => {});
    if (answer === 'ok') return [{}];
    throw answer;
  };
  const client = { createTask } as unknown as CloudTasksClient;
  const base = { queue: QUEUE, target: { appEngine: {} }, clock, random: () => 1 };
  return { clock, calls, queue: cloudTasksQueue(client, { ...base, ...options }) };
}

const pauses = (calls: readonly { atMs: number }[]): readonly number[] =>
  calls.slice(1).map(({ atMs }, n) => atMs - (calls[n]?.atMs ?? 0));

test('a queue over its rate, or not reachable, is called again until it takes the task', async () => {
  const { clock, calls, queue } = queueOf([code(8), code(14), code(8), 'ok']);
  assert.equal(await clock.until(queue.create(TASK)), 'created');
  assert.deepEqual(pauses(calls), [200, 400, 800]);
});

test('B21: the first reply was lost, and the repeat finds the task: that is success', async () => {
  const { clock, queue } = queueOf([code(14), code(6)]);
  assert.equal(await clock.until(queue.create(TASK)), 'exists');
});

test('the pauses grow to five seconds and half of each is chance', async () => {
  const { clock, calls, queue } = queueOf([code(14)], { retryTimeout: '60s', random: () => 0 });
  await assert.rejects(clock.until(queue.create(TASK)), { code: 'TASK_QUEUE_UNAVAILABLE' });
  assert.deepEqual(pauses(calls).slice(0, 7), [100, 200, 400, 800, 1_600, 2_500, 2_500]);
});

test('repeats end after 20 s, and the error of the last call is the answer', async () => {
  const { clock, calls, queue } = queueOf([code(8), code(14)]);
  await assert.rejects(clock.until(queue.create(TASK)), (error) => {
    assert.ok(error instanceof TransientError);
    assert.match(error.message, /is not reachable/);
    return true;
  });
  assert.ok(clock.monotonic() <= 20_000);
  assert.ok((calls.at(-1)?.atMs ?? 0) > 14_000);
});

test('a delivery that ends sooner is answered before its deadline, also by a call that hangs', async () => {
  for (const answers of [[code(14)], [code(14), code(14), 'hangs'], ['hangs']] as const) {
    const { clock, calls, queue } = queueOf(answers);
    await assert.rejects(clock.until(queue.create(TASK, { deadline: 5_000 })), TransientError);
    assert.ok(clock.monotonic() <= 4_000, `answered at ${clock.monotonic()}`);
    for (const { atMs, timeout } of calls) assert.ok(atMs + timeout <= 4_000);
  }
});

test('a delivery whose time is nearly over gets one short call', async () => {
  const { clock, calls, queue } = queueOf([code(14), 'ok']);
  await assert.rejects(clock.until(queue.create(TASK, { deadline: 200 })), TransientError);
  assert.deepEqual(calls, [{ atMs: 0, timeout: 500 }]);
});

test('a delivery that is aborted is not kept waiting', async () => {
  const { clock, calls, queue } = queueOf([code(14)]);
  const over = new AbortController();
  const failed = assert.rejects(queue.create(TASK, { signal: over.signal }), TransientError);
  await clock.advance(100);
  over.abort();
  await clock.advance(0);
  await failed;
  assert.equal(clock.monotonic(), 100);
  assert.equal(calls.length, 1);
});

test('nothing else is repeated: not what can never succeed, not the deployment, not a call that hung', async () => {
  for (const [value, kind] of [
    [3, PermanentError],
    [4, TransientError],
    [5, TransientError],
    [7, TransientError],
    [9, TransientError],
    [13, TransientError],
  ] as const) {
    const { clock, calls, queue } = queueOf([code(value)]);
    await assert.rejects(clock.until(queue.create(TASK)), kind);
    assert.equal(calls.length, 1, `code ${value}`);
  }
  const { clock, calls, queue } = queueOf(['hangs']);
  await assert.rejects(clock.until(queue.create(TASK)), { code: 'TIMED_OUT' });
  assert.equal(calls.length, 1);
});

test('repeats can be switched off, and is checked when the queue is made', async () => {
  const { clock, calls, queue } = queueOf([code(14), 'ok'], { retryTimeout: '0s' });
  await assert.rejects(clock.until(queue.create(TASK)), TransientError);
  assert.deepEqual(calls, [{ atMs: 0, timeout: 10_000 }]);
  const wrong = { retryTimeout: 'long' } as unknown as Partial<CloudTasksOptions>;
  assert.throws(() => queueOf(['ok'], wrong), refusal('retryTimeout'));
});
