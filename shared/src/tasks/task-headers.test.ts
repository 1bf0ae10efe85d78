import assert from 'node:assert/strict';
import { test } from 'node:test';
import { taskHeaders } from './task-headers.ts';

test('reads the schedule time and the retry count of either kind of target', () => {
  const read = { etaMs: 1_900_000_000_123, retryCount: 2 };
  assert.deepEqual(
    taskHeaders({ 'x-appengine-tasketa': '1900000000.1234', 'x-appengine-taskretrycount': '2' }),
    read,
  );
  assert.deepEqual(
    taskHeaders({ 'x-cloudtasks-tasketa': '1900000000.1234', 'x-cloudtasks-taskretrycount': '2' }),
    read,
  );
  assert.deepEqual(taskHeaders({ 'x-appengine-tasketa': '1900000000' }), { etaMs: 1_900_000_000_000 });
});

test('what cannot be read counts as absent', () => {
  for (const value of ['', 'soon', '-1', '1e9', 'NaN', 'Infinity', '1,5', ' 5', '9'.repeat(40)]) {
    assert.deepEqual(taskHeaders({ 'x-appengine-tasketa': value, 'x-appengine-taskretrycount': value }), {});
  }
  assert.deepEqual(taskHeaders({ 'x-appengine-tasketa': ['1', '2'] }), {});
  assert.deepEqual(taskHeaders({}), {});
});
