/**
 * What a drain owes to the delivery that started it, to the numbers that it has done, and to the head that failed.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { TransientError } from '../errors.ts';
import type { Context, Handler } from '../handler.ts';
import { silent } from '../log.ts';
import { ack, type Outcome, retry } from '../outcome.ts';
import { inOrder } from './in-order.ts';
import { freshKey } from './key-state.ts';
import { bench, CONSUMER, LEASE_MS, messageOf, kindOf, type Bench } from './testing/bench.ts';

/** As a drain leaves a key when its time is over: nobody has it, and something is due. */
async function letGo({ store, clock }: Bench, last: number): Promise<void> {
  const ref = { consumer: CONSUMER, key: 'k' };
  const { version } = await store.read(ref);
  const patch = { last, ring: [], readyAt: clock.now() };
  await store.write(ref, { version, base: freshKey(1) }, patch);
}

test('a drain that the store cuts short costs the delivery that started it nothing', async () => {
  const refused = { kind: 'refused' } as const;
  const direct = bench();
  // The first two are known without a read; a read that fails behind them comes again after their commit.
  for (const number of [4, 3, 2]) await direct.worker().deliver(number);
  const first = direct.worker({ faults: { 'held 1': refused, 'held 2': refused } });
  assert.equal(kindOf(await first.deliver(1)), 'ack handled');

  const stale = bench();
  await stale.worker().deliver(3);
  await letGo(stale, 2);
  const second = stale.worker({ faults: { 'held 1': refused } });
  assert.equal(kindOf(await second.deliver(1)), 'ack stale');

  const held = bench();
  await held.worker().deliver(3);
  await letGo(held, 1);
  const third = held.worker({ faults: { 'held 1': refused } });
  assert.equal(kindOf(await third.deliver(2)), 'ack held');

  for (const { clock, worker, state, heldNumbers } of [direct, stale, held]) {
    await clock.advance(2 * LEASE_MS);
    await worker().sweep();
    assert.deepEqual([state().lease, state().readyAt, heldNumbers()], [null, null, []]);
  }
});

test('a head that failed is counted as done before anything behind it starts', async () => {
  const { clock, worker, state, runs } = bench();
  const lasts: [string | undefined, number][] = [];
  let failures = 1;
  const { deliver, sweep } = worker({
    handler: async (message) => {
      if (message.attributes.sequence === '1' && failures-- > 0) return retry(new Error('once'));
      lasts.push([message.attributes.sequence, state().last]);
      return ack();
    },
  });
  for (const number of [3, 2, 1]) assert.equal(kindOf(await deliver(number)), 'ack held');
  await clock.advance(1_000);
  assert.equal((await sweep()).drained, 3);
  assert.deepEqual(lasts.slice(0, 2), [
    ['1', 0],
    ['2', 1],
  ]);
  assert.equal(runs.length, 4);
});

test('a held number whose handler ignores its signal keeps its lease, and what was done before it stays done', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  let deaf = true;
  const handler: Handler = async (message) => {
    if (message.attributes.sequence === '3' && deaf) await sleep(clock, 50_000);
    return ack();
  };
  const { deliver } = worker({ handler });
  for (const number of [4, 3, 2]) await deliver(number);
  assert.equal(kindOf(await clock.until(deliver(1))), 'ack handled');
  assert.deepEqual([state().last, state().attempts, heldNumbers()], [2, 0, [3, 4]]);
  assert.notEqual(state().lease, null, 'it may still be writing');
  deaf = false;
  assert.equal((await worker({ handler }).sweep()).drained, 2);
  assert.deepEqual(
    runs.map((run) => run[0]),
    ['1', '2', '3', '3', '4'],
  );
  assert.deepEqual([state().last, state().lease, heldNumbers()], [4, null, []]);
});

test('a store that fails once while a number is counted as done does not make it run again', async () => {
  const { clock, worker, runs, state } = bench();
  const one = worker({ faults: { 'transact 1': { kind: 'refused' } } });
  assert.equal(kindOf(await clock.until(one.deliver(1))), 'ack handled');
  assert.deepEqual([runs.length, state().last, state().lease], [1, 1, null]);
});

test('V4: a direct run that leaves a gap behind it makes that gap visible, with an age of its own', async () => {
  const { clock, worker, state, heldNumbers } = bench();
  const { deliver } = worker();
  for (const number of [1, 4]) await deliver(number);
  await clock.advance(5_000);
  assert.equal(kindOf(await deliver(2)), 'ack handled');
  assert.deepEqual([state().last, state().gapAt, heldNumbers()], [2, 2, [4]]);
  assert.equal(state().waitingSince, clock.now());
});

test('a mark that a holder leaves on the key while it is drained costs no number a second run', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  const handler: Handler = async (message) => {
    if (message.attributes.sequence === '2') await sleep(clock, 2_000);
    return ack();
  };
  const { deliver } = worker({ handler });
  const failing = worker({ handler: async () => retry(new Error('once')) });
  assert.equal(kindOf(await failing.deliver(1)), 'ack held');
  await deliver(2);
  await clock.advance(1_000);
  const sweeping = worker({ handler }).sweep();
  await clock.advance(1_000);
  const mark = { attributes: { sequenceEpoch: 'e' } };
  assert.equal(kindOf(await worker().deliver(9, mark)), 'ack held');
  assert.equal((await clock.until(sweeping)).drained, 2);
  assert.deepEqual(
    runs.map((run) => run[0]),
    ['1', '1', '2'],
  );
  assert.deepEqual([state().last, state().epoch, state().lease, heldNumbers()], [2, 'e', null, [9]]);
});

test('a pause that is no time, or without an end, keeps no failure from being stored', async () => {
  const tenYearsMs = 315_360_000_000;
  const busy = (retryAfterMs: number) => retry(new TransientError('BUSY', 'busy', { retryAfterMs }));
  const outcomes: [Outcome, number][] = [
    [retry(new Error('bad'), 'soon' as never), 1_000],
    [retry(new Error('bad'), 30 as never), 1_000],
    [busy(NaN), 1_000],
    [busy(-5), 1_000],
    [busy(Infinity), tenYearsMs],
    [retry(new Error('bad'), '99999999d'), tenYearsMs],
  ];
  for (const [outcome, pauseMs] of outcomes) {
    const { clock, worker, state, heldNumbers } = bench();
    const fails: Handler = async (message) => (message.attributes.sequence === '3' ? outcome : ack());
    const { deliver } = worker({ handler: fails });
    await deliver(3);
    await deliver(2);
    await deliver(1);
    assert.deepEqual([state().last, state().lease, heldNumbers()], [2, null, [3]]);
    assert.deepEqual([state().nextTryAt, state().readyAt], Array(2).fill(clock.now() + pauseMs));
    assert.equal(kindOf(await worker({ handler: async () => outcome }).deliver(1, { key: 'j' })), 'ack held');
    assert.equal(state('j').nextTryAt, clock.now() + pauseMs);
  }
});

test('R8: an aborted run is no attempt of the message, whatever its handler makes of the abort', async () => {
  const { clock, worker, state } = bench();
  const handler: Handler = async (_, context) => {
    await sleep(clock, 1_000_000, context.signal);
    throw new Error('the request was aborted');
  };
  assert.equal(kindOf(await clock.until(worker({ handler }).deliver(1))), 'ack held');
  assert.deepEqual([state().attempts, state().lease], [0, null]);
  await clock.advance(1_000);
  await clock.until(worker({ handler }).sweep());
  assert.deepEqual([state().last, state().attempts, state().lease], [0, 0, null]);
});

test('a delivery that is aborted aborts its handler, and what it drains starts nothing more', async () => {
  const { clock, store, worker, state, heldNumbers } = bench();
  await worker().deliver(3);
  await worker().deliver(2);
  const over = new AbortController();
  const signals: (string | undefined)[] = [];
  const handler: Handler = async (message, context) => {
    over.abort();
    if (context.signal.aborted) signals.push(message.attributes.sequence);
    return ack();
  };
  const context: Context = {
    consumer: CONSUMER,
    source: 'sub',
    now: clock.now,
    deadline: clock.monotonic() + 60_000,
    signal: over.signal,
    log: silent,
  };
  assert.equal(kindOf(await inOrder(store, { clock })(handler)(messageOf(1), context)), 'ack handled');
  assert.deepEqual([signals, state().last, heldNumbers()], [['1'], 1, [2, 3]]);
  assert.deepEqual([state().lease, state().attempts], [null, 0]);
});

test('a key remembers the content of its last hundred numbers and takes older ones for duplicates', async () => {
  const { worker, state } = bench();
  const { deliver } = worker();
  for (let number = 1; number <= 101; number += 1) await deliver(number);
  assert.equal(state().ring.length, 100);
  assert.equal(kindOf(await deliver(2, { content: 'b' })), 'deadLetter SEQUENCE_CONFLICT');
  assert.equal(kindOf(await deliver(1, { content: 'b' })), 'ack stale');
});

test('a wake-up that rejects later costs nothing but time', async () => {
  const wake = (): Promise<void> => Promise.reject(new Error('no queue'));
  const { worker, state } = bench({ wake });
  const { deliver } = worker({ handler: async () => retry(new Error('once')) });
  assert.equal(kindOf(await deliver(1)), 'ack held');
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(state().attempts, 1);
});
