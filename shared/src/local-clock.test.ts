import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { clockFrom, followingClock, localClock } from './local-clock.ts';
import { virtualClock } from './testing/virtual-clock.ts';

test('goes on from the time that was read, and stands still while the stack’s clock does', async () => {
  const real = virtualClock();
  let stack = { nowMs: 5_000_000, frozen: false };
  const clock = followingClock(async () => stack, real);
  await clock.sync();
  await real.advance(250);
  assert.equal(clock.now(), 5_000_250);
  stack = { nowMs: 9_000_000, frozen: true };
  await clock.sync();
  await real.advance(250);
  assert.equal(clock.now(), 9_000_000);
});

test('tells whole milliseconds between two readings, for a monotonic clock that has fractions of them', async () => {
  const real = virtualClock();
  let passed = 0;
  const clock = followingClock(async () => ({ nowMs: 5_000, frozen: false }), {
    ...real,
    monotonic: () => passed,
  });
  await clock.sync();
  passed = 0.9;
  assert.equal(clock.now(), 5_000);
  passed = 1.1;
  assert.equal(clock.now(), 5_001);
});

test('measures pauses on its own clock, whatever the stack’s time does', async () => {
  const real = virtualClock();
  const clock = followingClock(async () => ({ nowMs: 0, frozen: true }), real);
  await clock.sync();
  let fired = false;
  clock.after(100, () => {
    fired = true;
  });
  await real.advance(100);
  assert.deepEqual([fired, clock.monotonic()], [true, 100]);
});

test('requests that come together share a reading, and none takes one that was sent before it came', async () => {
  const real = virtualClock();
  const sent: PromiseWithResolvers<Readonly<{ nowMs: number; frozen: boolean }>>[] = [];
  const clock = followingClock(() => {
    const reading = Promise.withResolvers<Readonly<{ nowMs: number; frozen: boolean }>>();
    sent.push(reading);
    return reading.promise;
  }, real);
  const times: number[] = [];
  const request = () => clock.sync().then(() => times.push(clock.now()));
  const first = request();
  const later = Array.from({ length: 500 }, request);
  assert.equal(sent.length, 1);
  // The stack's clock is moved while the first reading is on its way back.
  sent[0]?.resolve({ nowMs: 1_000, frozen: true });
  await first;
  assert.equal(sent.length, 2);
  sent[1]?.resolve({ nowMs: 2_000, frozen: true });
  await Promise.all(later);
  assert.equal(sent.length, 2);
  assert.deepEqual(times, [1_000, ...Array.from({ length: 500 }, () => 2_000)]);
});

test('a reading that fails is that of the requests that waited for it, and the next request reads again', async () => {
  const real = virtualClock();
  const answers = [new Error('away'), { nowMs: 7_000, frozen: true }];
  const clock = followingClock(async () => {
    const answer = answers.shift();
    if (answer instanceof Error || answer === undefined) throw answer ?? new Error('no answer left');
    return answer;
  }, real);
  const [first, second] = await Promise.allSettled([clock.sync(), clock.sync()]);
  assert.deepEqual([first?.status, second?.status], ['rejected', 'fulfilled']);
  assert.equal(clock.now(), 7_000);
});

test('asks the control API, and an answer that is none is an error that names it', async (t) => {
  let answer = '{"nowMs":1234,"frozen":true}';
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/clock' ? 200 : 404).end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clock = localClock(url);
  await clock.sync();
  assert.equal(clock.now(), 1234);
  answer = '{"nowMs":"soon"}';
  await assert.rejects(clock.sync(), { code: 'CLOCK_UNREACHABLE', message: new RegExp(url) });
  assert.equal(clock.now(), 1234);
});

test('a variable alone does not move the time: it counts beside the emulator variables only', async () => {
  const clock = clockFrom({ LOCAL_STACK_CONTROL: 'http://127.0.0.1:1' });
  await clock.sync();
  assert.ok(Math.abs(clock.now() - Date.now()) < 1_000);
  const variables = { LOCAL_STACK_CONTROL: 'nonsense', PUBSUB_EMULATOR_HOST: '127.0.0.1:1' };
  assert.throws(() => clockFrom(variables), /LOCAL_STACK_CONTROL is "nonsense"/);
});
