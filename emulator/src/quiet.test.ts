import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quiet } from './quiet.ts';

test('waits for what is in flight, and for what that begins', async () => {
  let inFlight = 1;
  const order: string[] = [];
  setTimeout(() => {
    inFlight = 0;
    order.push('first ended');
    setImmediate(() => {
      inFlight = 1;
      setTimeout(() => {
        inFlight = 0;
        order.push('second ended');
      }, 2);
    });
  }, 2);
  await quiet(() => inFlight);
  order.push('quiet');
  assert.deepEqual(order, ['first ended', 'second ended', 'quiet']);
});

test('rejects after its limit, and says how much is left', async () => {
  await assert.rejects(
    quiet(() => 3, 20),
    /3 requests are still in flight after 20 ms/,
  );
});
