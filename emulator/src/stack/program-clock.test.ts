import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { dateAt, programClock, readStackTime, type ReadTime } from './program-clock.ts';

/** A monotonic clock that a test moves. */
function monotonicClock() {
  let passed = 0;
  return { monotonic: () => passed, pass: (milliseconds: number) => void (passed += milliseconds) };
}

test('goes on from the time that was read, and is frozen while the stack’s clock is', async () => {
  const { monotonic, pass } = monotonicClock();
  let stack = { nowMs: 5_000_000, frozen: false };
  const clock = programClock(async () => stack, monotonic);
  assert.equal(clock.now(), undefined);
  await clock.sync();
  pass(250);
  assert.equal(clock.now(), 5_000_250);
  stack = { nowMs: 9_000_000, frozen: true };
  await clock.sync();
  pass(250);
  assert.equal(clock.now(), 9_000_000);
});

test('gives whole milliseconds between two readings, for a monotonic clock that has fractions of them', async () => {
  const { monotonic, pass } = monotonicClock();
  const clock = programClock(async () => ({ nowMs: 5_000, frozen: false }), monotonic);
  await clock.sync();
  pass(0.9);
  assert.equal(clock.now(), 5_000);
  pass(0.2);
  assert.equal(clock.now(), 5_001);
});

test('requests that arrive together share a reading, and none takes one that was sent before it arrived', async () => {
  const sent: PromiseWithResolvers<Awaited<ReturnType<ReadTime>>>[] = [];
  const clock = programClock(() => {
    const reading = Promise.withResolvers<Awaited<ReturnType<ReadTime>>>();
    sent.push(reading);
    return reading.promise;
  }, monotonicClock().monotonic);
  const times: unknown[] = [];
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
  const answers = [new Error('away'), { nowMs: 7_000, frozen: true }];
  const clock = programClock(async () => {
    const answer = answers.shift();
    if (answer instanceof Error || answer === undefined) throw answer ?? new Error('no answer left');
    return answer;
  }, monotonicClock().monotonic);
  const [first, second] = await Promise.allSettled([clock.sync(), clock.sync()]);
  assert.deepEqual([first?.status, second?.status], ['rejected', 'fulfilled']);
  assert.equal(clock.now(), 7_000);
});

test('asks the control API, and an answer that is none is an error that names it', async (t) => {
  let answer = '{"nowMs":1234,"frozen":true}';
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    response.writeHead(request.url === '/clock' ? 200 : 404).end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  assert.deepEqual(await readStackTime(url), { nowMs: 1234, frozen: true });
  answer = '{"nowMs":"soon"}';
  await assert.rejects(readStackTime(url), { message: `the stack's clock at ${url} does not answer` });
});

test('a Date that is asked for the present has the stack’s, and any other is as it was', () => {
  const StackDate = dateAt(() => 86_400_000);
  assert.deepEqual([StackDate.now(), new StackDate().getTime()], [86_400_000, 86_400_000]);
  assert.match(StackDate(), /1970/);
  assert.equal(new StackDate(5).getTime(), 5);
  assert.equal(new StackDate('2030-01-01T00:00:00Z').toISOString(), '2030-01-01T00:00:00.000Z');
  assert.equal(new StackDate(2030, 0, 2).getDate(), 2);
  assert.equal(StackDate.UTC(1970, 0, 2), 86_400_000);
  assert.ok(new StackDate() instanceof Date && new Date() instanceof StackDate);
  class Later extends StackDate {}
  assert.ok(new Later() instanceof Later);
  assert.equal(new Later().getTime(), 86_400_000);
});
