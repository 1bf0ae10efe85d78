/**
 * Numbers that never come, with processes that work on the stream at the same time: nothing that comes in time is
 * skipped, and what comes late is a dead letter.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { PermanentError } from '../../../shared/src/errors.ts';
import type { GapRepair } from '../../../shared/src/outbox/gap-repair.ts';
import { ack, deadLetter, type Outcome, retry } from '../../../shared/src/outcome.ts';
import type { StreamOptions } from '../../../shared/src/order/options.ts';
import { type Bench, bench, CONSUMER, kindOf, LEASE_MS, SOURCE } from './bench.ts';

const MINUTE = 60_000;

/** An outbox that has the numbers that it is asked for, as often as `answers` says. */
function outboxOf(...answers: readonly (readonly number[])[]) {
  const asked: string[] = [];
  const left = [...answers];
  const repair: GapRepair = {
    async republish(key, { from, to }) {
      asked.push(`${key} ${from}-${to}`);
      return left.shift() ?? [];
    },
  };
  return { asked, repair };
}

/** 1 is done, 5 and 6 wait for 2 to 4. */
async function withGap({ gap, ...options }: Pick<StreamOptions, 'onGap' | 'gap'>): Promise<Bench> {
  const made = bench({ ...options, gap: { timeout: '2m', ...gap } });
  const { deliver } = made.worker();
  for (const number of [1, 5, 6]) await deliver(number);
  return made;
}

test('B15: a gap is skipped after its time, not before; what waits runs, what comes late is a dead letter', async () => {
  const { clock, worker, runs, state, heldNumbers } = await withGap({ onGap: 'skip' });
  const { sweep, deliver } = worker();
  await clock.advance(2 * MINUTE - 1);
  assert.equal((await sweep()).skipped, 0);
  await clock.advance(1);
  assert.deepEqual(await sweep(), {
    due: 1,
    done: 1,
    isWhole: true,
    drained: 2,
    failed: 0,
    repaired: 0,
    skipped: 3,
  });
  assert.deepEqual([runs, state().last, state().skipped], [['1:a', '5:a', '6:a'], 6, [{ from: 2, to: 4 }]]);
  assert.deepEqual([state().waitingSince, state().readyAt, heldNumbers()], [null, null, []]);
  for (const number of [2, 3, 4]) assert.equal(kindOf(await deliver(number)), 'deadLetter LATE_ARRIVAL');
  assert.equal(kindOf(await deliver(1)), 'ack stale');
  assert.equal(kindOf(await deliver(7)), 'ack handled');
});

test('B15: by default a gap is waited for without end, and is visible', async () => {
  const { clock, worker, state } = await withGap({});
  for (let round = 0; round < 5; round += 1) {
    await clock.advance(60 * MINUTE);
    assert.equal((await worker().sweep()).skipped, 0);
  }
  const seen = await worker().streams.inspect({ consumer: CONSUMER, source: SOURCE, key: 'k' });
  assert.deepEqual(
    [state().last, seen?.status, seen?.gap, seen?.held],
    [1, 'waiting', { from: 2, to: 4 }, 2],
  );
});

test('numbers that the outbox has are published again, and then have their time to come', async () => {
  const { asked, repair } = outboxOf([2, 3, 4]);
  const { clock, worker, runs, state } = await withGap({ onGap: 'skip', gap: { repair } });
  const { sweep, deliver } = worker();
  await clock.advance(2 * MINUTE);
  assert.deepEqual([(await sweep()).repaired, (await sweep()).repaired, asked], [3, 0, ['k 2-4']]);
  await clock.advance(MINUTE);
  for (const number of [3, 2, 4]) await deliver(number);
  assert.deepEqual([runs.map((run) => run[0]).join(''), state().last, state().skipped], ['123456', 6, []]);
});

test('a gap that closes in part is another gap, with a time of its own', async () => {
  const { clock, worker, state } = await withGap({ onGap: 'skip' });
  await clock.advance(MINUTE);
  await worker().deliver(2);
  await clock.advance(MINUTE);
  assert.equal((await worker().sweep()).skipped, 0);
  await clock.advance(MINUTE);
  assert.deepEqual([(await worker().sweep()).skipped, state().last], [2, 6]);
});

test('a skip whose reply is lost, and two sweeps at once, skip once', async () => {
  for (const kind of ['reply lost', 'repeated'] as const) {
    const { clock, worker, state, runs } = await withGap({ onGap: 'skip' });
    await clock.advance(2 * MINUTE);
    await Promise.all([worker({ faults: { 'commit 1': { kind } } }).sweep(), worker().sweep()]);
    await worker().sweep();
    assert.deepEqual([state().skipped, state().last, runs.length], [[{ from: 2, to: 4 }], 6, 3], kind);
  }
});

test('a gap that closes, or whose number has started, between the look and the skip is not skipped', async () => {
  for (const takesMs of [0, 5_000]) {
    const { clock, worker, runs, state } = await withGap({ onGap: 'skip' });
    await clock.advance(2 * MINUTE);
    const late = worker({ faults: { 'commit 1': { kind: 'none', beforeMs: 3_000 } } });
    const sweeping = late.sweep();
    await clock.advance(1_000);
    const handler = async (): Promise<Outcome> => {
      await sleep(clock, takesMs);
      return ack();
    };
    const running = worker({ handler }).deliver(2);
    assert.equal((await clock.until(sweeping)).skipped, 0, `${takesMs}`);
    assert.equal(kindOf(await clock.until(running)), 'ack handled');
    assert.deepEqual([runs, state().last, state().skipped], [['1:a', '2:a'], 2, []]);
  }
});

test('a number that is skipped while a stalled run of it fails is late, and is not acknowledged', async () => {
  const { clock, worker, state } = bench({ onGap: 'skip', gap: { timeout: '1m' } });
  const handler = async (): Promise<Outcome> => retry(new Error('down'));
  const stalls = worker({ handler, faults: { 'commit 1': { kind: 'none', beforeMs: 3 * MINUTE } } });
  const failed = stalls.deliver(1);
  await clock.advance(1_000);
  await worker().deliver(2);
  await clock.advance(LEASE_MS);
  const { deliver, sweep } = worker();
  await sweep();
  await clock.advance(MINUTE);
  assert.equal((await sweep()).skipped, 1);
  assert.equal(kindOf(await clock.until(failed)), 'retry LEASE_LOST');
  assert.equal(kindOf(await deliver(1)), 'deadLetter LATE_ARRIVAL');
  assert.equal(state().last, 2);
});

test('a sweep that dies between the skip and the visit leaves a stream that is due', async () => {
  const { clock, worker, state } = await withGap({ onGap: 'skip' });
  await clock.advance(2 * MINUTE);
  void worker({ faults: { 'commit 1': { kind: 'crash', when: 'after' } } }).sweep();
  await clock.advance(LEASE_MS);
  assert.equal((await worker().sweep()).drained, 2);
  assert.equal(state().last, 6);
});

test('blocked streams are left alone, however long something waits behind them', async () => {
  const { repair, asked } = outboxOf();
  const made = bench({ onGap: 'skip', gap: { timeout: '1m', repair } });
  const { clock, worker, state } = made;
  const { deliver } = worker({ handler: async () => deadLetter(new PermanentError('BAD', 'x')) });
  for (const number of [1, 3]) await deliver(number);
  await clock.advance(60 * MINUTE);
  const result = await worker().sweep();
  assert.deepEqual(result, {
    due: 0,
    done: 0,
    isWhole: true,
    drained: 0,
    failed: 0,
    repaired: 0,
    skipped: 0,
  });
  assert.deepEqual([state().last, state().blocked?.code, state().waitingSince, asked], [0, 'BAD', null, []]);
});

test('a next message that fails behind a gap that is over is no gap', async () => {
  const { clock, worker, state } = await withGap({ onGap: 'skip' });
  const { deliver, sweep } = worker({ handler: async () => Promise.reject(new Error('down')) });
  await deliver(2);
  await clock.advance(10 * MINUTE);
  await sweep();
  assert.deepEqual([state().last, state().attempts, state().skipped], [1, 2, []]);
});

test('gaps of more streams than one page holds are all handled', async () => {
  const { clock, worker, state } = bench({ onGap: 'skip', gap: { timeout: '1m' } });
  const { deliver, sweep } = worker({ handler: async () => ack() });
  for (let key = 0; key < 230; key += 1) await deliver(2, { key: `k${key}` });
  await clock.advance(MINUTE);
  assert.deepEqual([(await sweep()).skipped, state('k0').last, state('k229').last], [230, 2, 2]);
});
