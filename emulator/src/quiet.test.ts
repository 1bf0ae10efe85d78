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

/** Ten milliseconds pass from look to look. */
function slowly(): () => number {
  let now = 0;
  return () => (now += 10);
}

test('rejects when nothing is answered for its limit, and says how much is left', async () => {
  await assert.rejects(
    quiet(() => 3, 200, slowly()),
    /^Error: 3 requests are still in flight after 220 ms$/,
  );
});

test('waits longer than its limit for many that are answered one after the other', async () => {
  let looks = 0;
  // One at every tenth look, which is half of the limit.
  await quiet(() => Math.max(20 - Math.floor((looks += 1) / 10), 0), 200, slowly());
  assert.ok(looks * 10 > 5 * 200, `${looks} looks`);
});

test('comes to an end where each answer causes another request', async () => {
  let looks = 0;
  await assert.rejects(
    quiet(() => 1 + ((looks += 1) % 2), 200, slowly()),
    /^Error: [12] requests are still in flight after 2010 ms$/,
  );
});

test('a look that comes late because this process got no time is no silence', async () => {
  let [looks, now] = [0, 0];
  await quiet(
    () => ((looks += 1) < 5 ? 1 : 0),
    1_000,
    () => (now += 10_000),
  );
  assert.ok(looks > 5);
});
