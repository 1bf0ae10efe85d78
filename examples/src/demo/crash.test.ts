import assert from 'node:assert/strict';
import { test } from 'node:test';
import { virtualClock } from 'pubsub-guarantees/testing';
import { crashAt } from './crash.ts';

function fixture(start: () => Promise<void> = async () => {}) {
  const calls: string[] = [];
  const functions = {
    kill: async () => void calls.push('kill'),
    start: async () => {
      calls.push('start');
      await start();
    },
  };
  return { calls, functions, clock: virtualClock(), stop: new AbortController() };
}

test('kills once when enough is published, and says when the functions serve again', async () => {
  const { calls, functions, clock, stop } = fixture();
  const plan = crashAt(2, functions, clock, stop.signal);
  plan.onPublished(1);
  assert.deepEqual([calls.length, plan.state], [0, 'up']);
  plan.onPublished(2);
  assert.equal(plan.state, 'killed');
  plan.onPublished(3);
  await plan.done;
  assert.deepEqual(calls, ['kill', 'start']);
  assert.deepEqual([plan.state, plan.facts], ['up again', { killedAfter: 2, backAfterMs: 0 }]);
});

test('has nothing to do for a count of 0', async () => {
  const { calls, functions, clock, stop } = fixture();
  const plan = crashAt(0, functions, clock, stop.signal);
  plan.onPublished(1);
  await plan.done;
  assert.deepEqual(calls, []);
  assert.notEqual(plan.servingSinceMs, undefined);
});

test('does not begin after an interruption', async () => {
  const { calls, functions, clock, stop } = fixture();
  const plan = crashAt(1, functions, clock, stop.signal);
  stop.abort();
  plan.onPublished(1);
  await plan.done;
  assert.deepEqual(calls, []);
});

test('functions that do not start again fail the run', async () => {
  const { functions, clock, stop } = fixture(() => Promise.reject(new Error('port is taken')));
  const plan = crashAt(1, functions, clock, stop.signal);
  plan.onPublished(1);
  await assert.rejects(plan.done, /port is taken/);
});
