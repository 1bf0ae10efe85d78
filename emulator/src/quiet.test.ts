import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quiet } from './quiet.ts';

test('waits for what is under way, and for what that begins', async () => {
  let underWay = 1;
  const order: string[] = [];
  setTimeout(() => {
    underWay = 0;
    order.push('first ended');
    setImmediate(() => {
      underWay = 1;
      setTimeout(() => {
        underWay = 0;
        order.push('second ended');
      }, 2);
    });
  }, 2);
  await quiet(() => underWay);
  order.push('quiet');
  assert.deepEqual(order, ['first ended', 'second ended', 'quiet']);
});

test('gives up after its limit, and says how much is left', async () => {
  await assert.rejects(
    quiet(() => 3, 20),
    /3 requests are still under way after 20 ms/,
  );
});
