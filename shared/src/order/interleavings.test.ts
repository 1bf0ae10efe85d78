/**
 * The interleavings that break a plausible resequencer, one test each, under the numbers that the protocol gives them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { inProgressElsewhere } from '../errors.ts';
import type { Handler } from '../handler.ts';
import { ack, retry } from '../outcome.ts';
import { bench, LEASE_MS, kindOf } from './testing/bench.ts';

const dies = { kind: 'crash', when: 'after' } as const;

test('V1: a head held behind a lease whose owner died is found by the sweep', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  const [first, second] = [worker({ faults: { 'write 1': dies } }), worker()];
  void first.deliver(1);
  await clock.advance(1_000);
  assert.equal(kindOf(await second.deliver(1)), 'ack held');
  assert.deepEqual(runs, []);
  await clock.advance(LEASE_MS);
  assert.equal((await second.sweep()).drained, 1);
  assert.deepEqual([runs, state().last, heldNumbers()], [['1:a'], 1, []]);
});

test('V2: a duplicate held while its number runs is removed with it', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  const slow = worker({ handler: after(clock, 5_000) });
  const running = slow.deliver(1);
  await clock.advance(1_000);
  assert.equal(kindOf(await worker().deliver(1)), 'ack held');
  assert.deepEqual(heldNumbers(), [1]);
  assert.equal(kindOf(await clock.until(running)), 'ack handled');
  assert.deepEqual([runs, state().last, state().readyAt, heldNumbers()], [['1:a'], 1, null, []]);
});

test('V2b: a second content under a held head that failed is a conflict, and the first one runs', async () => {
  const { clock, worker, runs, state } = bench();
  const { deliver, sweep } = worker({ handler: failing(1, '2:a') });
  assert.equal(kindOf(await deliver(2)), 'ack held');
  assert.equal(kindOf(await deliver(1)), 'ack handled');
  assert.equal(state().last, 1);
  assert.equal(kindOf(await deliver(2, { content: 'b' })), 'deadLetter SEQUENCE_CONFLICT');
  await clock.advance(1_000);
  await sweep();
  assert.deepEqual([runs, state().last], [['1:a', '2:a', '2:a'], 2]);
});

test('V3: a head whose key became idle before it was stored runs instead of waiting for nobody', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  const running = worker({ handler: after(clock, 1_000) }).deliver(1);
  const late = worker({ faults: { 'transact 1': { kind: 'none', beforeMs: 3_000 } } });
  await clock.advance(500);
  const second = late.deliver(2);
  assert.equal(kindOf(await clock.until(running)), 'ack handled');
  assert.equal(kindOf(await clock.until(second)), 'ack handled');
  assert.deepEqual([runs, state().last, heldNumbers()], [['1:a', '2:a'], 2, []]);
});

test('V3: a hold that is applied after its number was done leaves no orphan', async () => {
  const { clock, worker, state, heldNumbers } = bench();
  const running = worker({ handler: after(clock, 1_000) }).deliver(1);
  await clock.advance(500);
  const late = worker({ faults: { 'transact 1': { kind: 'delayed', byMs: 20_000 } } });
  assert.equal(kindOf(await late.deliver(2)), 'retry STORE_UNAVAILABLE');
  await clock.until(running);
  assert.equal(kindOf(await worker().deliver(2)), 'ack handled');
  await clock.advance(30_000);
  assert.deepEqual([state().last, state().readyAt, heldNumbers()], [2, null, []]);
});

test('V4: a gap behind a takeover is visible, and keeps its age until it is another gap', async () => {
  const { clock, worker, state, heldNumbers } = bench();
  void worker({ faults: { 'write 1': dies } }).deliver(1);
  await clock.advance(1_000);
  const { deliver, sweep } = worker();
  await deliver(3);
  await deliver(1);
  await clock.advance(LEASE_MS);
  await sweep();
  const since = state().waitingSince;
  assert.deepEqual([state().last, state().gapAt, heldNumbers()], [1, 1, [3]]);
  assert.equal(since, clock.now());
  // Whoever takes the missing number and dies must not make the gap look young.
  void worker({ faults: { 'write 1': dies } }).deliver(2);
  await clock.advance(2 * LEASE_MS);
  await sweep();
  assert.deepEqual([state().waitingSince, state().gapAt, state().readyAt], [since, 1, null]);
  await deliver(2);
  assert.deepEqual([state().last, state().waitingSince, heldNumbers()], [3, null, []]);
});

test('V5: a direct run that is aborted does not strand the copy that was held meanwhile', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  const { deliver } = worker({ handler: untilAborted(clock) });
  const aborted = deliver(1);
  await clock.advance(1_000);
  const { deliver: copy, sweep } = worker();
  assert.equal(kindOf(await copy(1)), 'ack held');
  assert.equal(kindOf(await clock.until(aborted)), 'ack held');
  assert.deepEqual([heldNumbers(), state().lease, state().attempts], [[1], null, 0]);
  await clock.advance(1_000);
  await sweep();
  assert.deepEqual([runs, state().last, heldNumbers()], [['1:a', '1:a'], 1, []]);
});

test('V6: a finished direct run that lost its lease is not acknowledged', async () => {
  const { clock, worker, runs, state } = bench();
  const stalls = worker({ faults: { 'write 2': { kind: 'none', beforeMs: 2 * LEASE_MS } } });
  const finished = stalls.deliver(1);
  await clock.advance(LEASE_MS + 1_000);
  const { deliver, sweep } = worker();
  assert.equal((await sweep()).taken, 1);
  assert.equal(kindOf(await clock.until(finished)), 'retry LEASE_LOST');
  assert.equal(state().last, 0);
  assert.equal(kindOf(await deliver(1)), 'ack handled');
  assert.deepEqual([runs, state().last], [['1:a', '1:a'], 1]);
});

test('V6: a failed direct run that lost its lease is not acknowledged', async () => {
  const { clock, worker, state, heldNumbers } = bench();
  const stalls = worker({
    handler: failing(1, '1:a'),
    faults: { 'transact 1': { kind: 'none', beforeMs: 2 * LEASE_MS } },
  });
  const failed = stalls.deliver(1);
  await clock.advance(LEASE_MS + 1_000);
  await worker().sweep();
  assert.equal(kindOf(await clock.until(failed)), 'retry LEASE_LOST');
  assert.deepEqual([state().last, heldNumbers()], [0, []]);
});

test('V6: a finished direct run whose number somebody else did meanwhile is acknowledged', async () => {
  const { clock, worker, runs, state } = bench();
  const stalls = worker({ faults: { 'write 2': { kind: 'none', beforeMs: 3 * LEASE_MS } } });
  const finished = stalls.deliver(1);
  await clock.advance(1_000);
  const { deliver, sweep } = worker();
  await deliver(1);
  await clock.advance(LEASE_MS);
  await sweep();
  assert.equal(state().last, 1);
  // The next lease is somebody else's: the late commit must not touch it.
  const next = worker({ handler: after(clock, 11_000) });
  await clock.advance(13_000);
  const second = next.deliver(2);
  await clock.advance(10_500);
  assert.equal(kindOf(await clock.until(finished)), 'ack handled');
  assert.equal(state().last, 1);
  await clock.until(second);
  assert.deepEqual([runs, state().last, state().lease], [['1:a', '1:a', '2:a'], 2, null]);
});

test('V6: an owner whose lease was taken over writes nothing more, even where the pointer has not moved', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  const stalls = worker({ faults: { 'write 2': { kind: 'none', beforeMs: LEASE_MS + 3_000 } } });
  await stalls.deliver(2);
  const draining = stalls.deliver(1);
  await clock.advance(LEASE_MS + 1_000);
  const sweeping = worker({ handler: after(clock, 5_000) }).sweep();
  assert.equal(kindOf(await clock.until(draining)), 'ack handled');
  assert.deepEqual([state().last, heldNumbers()], [1, [2]]);
  assert.equal((await clock.until(sweeping)).drained, 1);
  assert.deepEqual([runs, state().last, heldNumbers()], [['1:a', '2:a', '2:a'], 2, []]);
});

test('a lease whose confirmation comes after its end starts nothing', async () => {
  const { clock, worker, runs, state } = bench();
  const late = worker({ faults: { 'write 1': { kind: 'none', afterMs: LEASE_MS } } });
  assert.equal(kindOf(await clock.until(late.deliver(1))), 'ack held');
  assert.deepEqual([runs, state().attempts], [[], 0]);
  await clock.advance(1_000);
  const slow = worker({ faults: { 'write 1': { kind: 'none', afterMs: LEASE_MS } } });
  await clock.until(slow.sweep());
  assert.deepEqual([runs.length, state().last, state().lease], [1, 1, null], 'renewed before it was started');
});

test('V7: the content that was started first keeps its number, though it was never stored', async () => {
  const { clock, worker, runs, state } = bench();
  void worker({ faults: { 'write 2': { kind: 'crash', when: 'before' } } }).deliver(1);
  await clock.advance(1_000);
  const { deliver, sweep } = worker();
  const other = { content: 'b' };
  assert.equal(kindOf(await deliver(1, other)), 'deadLetter SEQUENCE_CONFLICT');
  await clock.advance(LEASE_MS);
  await sweep();
  assert.equal(kindOf(await deliver(1, other)), 'deadLetter SEQUENCE_CONFLICT');
  assert.equal(kindOf(await deliver(1)), 'ack handled');
  assert.deepEqual([runs, state().last, state().run], [['1:a', '1:a'], 1, null]);
});

test('V8: only a takeover and failures of the message count as its attempts', async () => {
  const { clock, worker, state, runs } = bench();
  void worker({ faults: { 'write 1': dies } }).deliver(1);
  await clock.advance(1_000);
  let busy = 3;
  const { deliver, sweep } = worker({
    handler: async () => (busy-- > 0 ? retry(inProgressElsewhere('a claim outlives its process')) : ack()),
  });
  await deliver(1);
  await clock.advance(LEASE_MS);
  for (let round = 0; round < 3; round += 1) {
    await sweep();
    assert.equal(state().attempts, 1, 'the takeover');
    await clock.advance(1_000);
  }
  await sweep();
  assert.deepEqual([runs.length, state().last, state().attempts], [4, 1, 0]);
});

test('V9: a delivery neither takes over an expired lease nor runs a head that has failed', async () => {
  const { clock, worker, state, runs, wakes } = bench();
  void worker({ faults: { 'write 1': dies } }).deliver(1);
  await clock.advance(LEASE_MS + 1_000);
  const { deliver, sweep } = worker({ handler: failing(1, '1:a') });
  assert.equal(kindOf(await deliver(1)), 'ack held');
  assert.equal(kindOf(await deliver(2)), 'ack held');
  assert.deepEqual([runs, wakes.length], [[], 1]);
  await sweep();
  assert.deepEqual([runs, state().attempts], [['1:a'], 2]);
  await clock.advance(60_000);
  wakes.length = 0;
  assert.equal(kindOf(await deliver(1)), 'ack held');
  assert.deepEqual([runs.length, wakes.length], [1, 1]);
  await sweep();
  assert.deepEqual([runs, state().last], [['1:a', '1:a', '2:a'], 2]);
});

function after(clock: Parameters<typeof sleep>[0], milliseconds: number): Handler {
  return async () => {
    await sleep(clock, milliseconds);
    return ack();
  };
}

/** Ends only because its signal does. */
function untilAborted(clock: Parameters<typeof sleep>[0]): Handler {
  return async (_, context) => {
    await sleep(clock, 1_000_000, context.signal);
    return retry(context.signal.reason);
  };
}

function failing(times: number, run: string): Handler {
  let left = times;
  return async (message) => {
    const isIt = `${message.attributes.sequence}:${message.data.toString()}` === run;
    return isIt && left-- > 0 ? retry(new Error('not yet')) : ack();
  };
}
