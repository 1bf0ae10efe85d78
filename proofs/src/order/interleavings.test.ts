/**
 * The interleavings that break a plausible resequencer, one test each, under the numbers that docs/protocols.md gives
 * them (W1 to W11).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../../shared/src/clock.ts';
import { inProgressElsewhere } from '../../../shared/src/errors.ts';
import type { Handler } from '../../../shared/src/handler.ts';
import { ack, retry } from '../../../shared/src/outcome.ts';
import { bench, kindOf, LEASE_MS } from './bench.ts';

const diesAfter = { kind: 'crash', when: 'after' } as const;
const diesBefore = { kind: 'crash', when: 'before' } as const;

test('W1: a number held behind the lease of a process that died is found by the sweep', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  const [first, second] = [worker({ faults: { 'commit 1': diesAfter } }), worker()];
  void first.deliver(1);
  await clock.advance(1_000);
  assert.equal(state().readyAt, state().lease?.untilMs);
  assert.equal(kindOf(await second.deliver(1)), 'ack held');
  assert.deepEqual(runs, []);
  await clock.advance(LEASE_MS);
  assert.equal((await second.sweep()).drained, 1);
  assert.deepEqual([runs, state().last, heldNumbers()], [['1:a'], 1, []]);
});

test('W2: a copy held while its number runs is found by the refused settlement, and removed with it', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  const slow = worker({ handler: after(clock, 900) });
  const running = slow.deliver(1);
  await clock.advance(100);
  assert.equal(kindOf(await worker().deliver(1)), 'ack held');
  assert.deepEqual(heldNumbers(), [1]);
  assert.equal(kindOf(await clock.until(running)), 'ack handled');
  assert.deepEqual([runs, state().last, state().readyAt, heldNumbers()], [['1:a'], 1, null, []]);
});

test('W3: a second content under a held number that failed is a conflict, and the first one runs', async () => {
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

test('W3: the content that was started first keeps its number, though it was never held', async () => {
  const { clock, worker, runs, state } = bench();
  void worker({ faults: { 'commit 2': diesBefore } }).deliver(1);
  await clock.advance(1_000);
  const { deliver, sweep } = worker();
  const other = { content: 'b' };
  assert.equal(kindOf(await deliver(1, other)), 'deadLetter SEQUENCE_CONFLICT');
  await clock.advance(LEASE_MS);
  await sweep();
  assert.equal(kindOf(await deliver(1, other)), 'deadLetter SEQUENCE_CONFLICT');
  // Its process died: it is held, and a visit starts it.
  assert.equal(kindOf(await deliver(1)), 'ack held');
  await sweep();
  assert.deepEqual([runs, state().last, state().run], [['1:a', '1:a'], 1, null]);
});

test('W4: a number whose stream became idle before it was held runs instead of waiting for a visit', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  const running = worker({ handler: after(clock, 900) }).deliver(1);
  const late = worker({ faults: { 'commit 1': { kind: 'none', beforeMs: 3_000 } } });
  await clock.advance(500);
  const second = late.deliver(2);
  assert.equal(kindOf(await clock.until(running)), 'ack handled');
  assert.equal(kindOf(await clock.until(second)), 'ack handled');
  assert.deepEqual([runs, state().last, heldNumbers()], [['1:a', '2:a'], 2, []]);
});

test('W5: a hold that is applied after its number was done leaves no orphan', async () => {
  const { clock, worker, state, heldNumbers } = bench();
  const running = worker({ handler: after(clock, 900) }).deliver(1);
  await clock.advance(500);
  const delayed = { kind: 'delayed', byMs: 20_000 } as const;
  const late = worker({ faults: { 'commit 1': delayed, 'read 2': diesBefore } });
  void late.deliver(2);
  await clock.until(running);
  assert.equal(kindOf(await worker().deliver(2)), 'ack handled');
  await clock.advance(30_000);
  assert.deepEqual([state().last, state().readyAt, heldNumbers()], [2, null, []]);
});

test('W6: a gap behind a takeover is visible, and keeps its age until it is another gap', async () => {
  const { clock, worker, state, heldNumbers } = bench();
  void worker({ faults: { 'commit 1': diesAfter } }).deliver(1);
  await clock.advance(1_000);
  const { deliver, sweep } = worker();
  await deliver(3);
  await deliver(1);
  await clock.advance(LEASE_MS);
  await sweep();
  const since = state().waitingSince;
  assert.deepEqual([state().last, state().gapAt, heldNumbers()], [1, 1, [3]]);
  assert.equal(since, clock.now());
  // A process that takes the missing number and dies must not make the gap look young.
  void worker({ faults: { 'commit 1': diesAfter } }).deliver(2);
  await clock.advance(2 * LEASE_MS);
  await sweep();
  assert.deepEqual([state().waitingSince, state().gapAt, state().readyAt], [since, 1, null]);
  await deliver(2);
  await sweep();
  assert.deepEqual([state().last, state().waitingSince, heldNumbers()], [3, null, []]);
});

test('W7: a run that is aborted does not strand the copy that was held meanwhile', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  const { deliver } = worker({ handler: untilAborted(clock) });
  const aborted = deliver(1);
  await clock.advance(900);
  const { deliver: copy, sweep } = worker();
  assert.equal(kindOf(await copy(1)), 'ack held');
  assert.equal(kindOf(await clock.until(aborted)), 'ack held');
  assert.deepEqual([heldNumbers(), state().lease, state().attempts], [[1], null, 0]);
  await clock.advance(1_000);
  await sweep();
  assert.deepEqual([runs, state().last, heldNumbers()], [['1:a', '1:a'], 1, []]);
});

test('W8: a finished run that lost its lease is not acknowledged', async () => {
  const { clock, worker, runs, state } = bench();
  const stalls = worker({ faults: { 'commit 2': { kind: 'none', beforeMs: 2 * LEASE_MS } } });
  const finished = stalls.deliver(1);
  await clock.advance(LEASE_MS + 1_000);
  const { deliver, sweep } = worker();
  assert.equal((await sweep()).done, 1);
  assert.equal(kindOf(await clock.until(finished)), 'retry LEASE_LOST');
  assert.equal(state().last, 0);
  assert.equal(kindOf(await deliver(1)), 'ack held');
  await sweep();
  assert.deepEqual([runs, state().last], [['1:a', '1:a'], 1]);
});

test('W8: a failed run that lost its lease is not acknowledged', async () => {
  const { clock, worker, state, heldNumbers } = bench();
  const stalls = worker({
    handler: failing(1, '1:a'),
    faults: { 'commit 2': { kind: 'none', beforeMs: 2 * LEASE_MS } },
  });
  const failed = stalls.deliver(1);
  await clock.advance(LEASE_MS + 1_000);
  await worker().sweep();
  assert.equal(kindOf(await clock.until(failed)), 'retry LEASE_LOST');
  assert.deepEqual([state().last, heldNumbers()], [0, []]);
});

test('W8: a finished run whose number another process did meanwhile is acknowledged', async () => {
  const { clock, worker, runs, state } = bench();
  const stalls = worker({ faults: { 'commit 2': { kind: 'none', beforeMs: 3 * LEASE_MS } } });
  const finished = stalls.deliver(1);
  await clock.advance(900);
  const { deliver, sweep } = worker();
  await deliver(1);
  await clock.advance(LEASE_MS);
  await sweep();
  assert.equal(state().last, 1);
  // The next lease is that of another process: the late commit must not touch it.
  const next = worker({ handler: after(clock, 11_000) });
  await clock.advance(13_000);
  const second = next.deliver(2);
  await clock.advance(10_500);
  assert.equal(kindOf(await clock.until(finished)), 'ack handled');
  assert.equal(state().last, 1);
  await clock.until(second);
  assert.deepEqual([runs, state().last, state().lease], [['1:a', '1:a', '2:a'], 2, null]);
});

test('W8: a process whose lease was taken over writes nothing more, even where `last` has not moved', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  const stalls = worker({ faults: { 'commit 3': { kind: 'none', beforeMs: LEASE_MS + 3_000 } } });
  await stalls.deliver(2);
  const draining = stalls.deliver(1);
  await clock.advance(LEASE_MS + 1_000);
  const { sweep } = worker({ handler: after(clock, 5_000) });
  // The number after `last` is not held: its process died, as far as the sweep can see.
  assert.equal((await clock.until(sweep())).done, 1);
  assert.equal(kindOf(await clock.until(draining)), 'retry LEASE_LOST');
  assert.deepEqual([runs, state().last, heldNumbers()], [['1:a', '2:a'], 0, [2]]);
  assert.equal(kindOf(await worker().deliver(1)), 'ack held');
  await clock.until(sweep());
  assert.deepEqual([runs.slice(2), state().last, heldNumbers()], [['1:a', '2:a'], 2, []]);
});

test('W9: only takeovers, and failures of the message, count as its attempts', async () => {
  const { clock, worker, state, runs } = bench();
  void worker({ faults: { 'commit 1': diesAfter } }).deliver(1);
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

test('W10: a delivery neither takes over an expired lease nor runs a number that has failed', async () => {
  const { clock, worker, state, runs, wakes } = bench();
  void worker({ faults: { 'commit 1': diesAfter } }).deliver(1);
  await clock.advance(LEASE_MS + 1_000);
  const { deliver, sweep } = worker({ handler: failing(1, '1:a') });
  assert.equal(kindOf(await deliver(1)), 'ack held');
  assert.deepEqual([runs, wakes.length], [[], 1]);
  assert.equal(kindOf(await deliver(2)), 'ack held');
  assert.deepEqual(runs, []);
  await sweep();
  assert.deepEqual([runs, state().attempts], [['1:a'], 2]);
  await clock.advance(60_000);
  wakes.length = 0;
  assert.equal(kindOf(await deliver(1)), 'ack held');
  assert.deepEqual([runs.length, wakes.length], [1, 1]);
  await sweep();
  assert.deepEqual([runs, state().last], [['1:a', '1:a', '2:a'], 2]);
});

for (const kind of ['reply lost', 'repeated'] as const) {
  for (const nth of [1, 2, 3, 4]) {
    test(`W11: commit ${nth} whose outcome is not known (${kind}) is applied once`, async () => {
      const { clock, worker, runs, state, heldNumbers } = bench();
      const { deliver } = worker({ faults: { [`commit ${nth}`]: { kind } }, handler: failing(1, '2:a') });
      const answers = [clock.until(deliver(2)), clock.until(deliver(3)), clock.until(deliver(1))];
      assert.deepEqual((await Promise.all(answers)).map(kindOf).sort(), [
        'ack handled',
        'ack held',
        'ack held',
      ]);
      await clock.advance(2_000);
      await worker().sweep();
      assert.deepEqual([runs, state().last], [['1:a', '2:a', '2:a', '3:a'], 3]);
      assert.deepEqual([state().lease, state().attempts, heldNumbers()], [null, 0, []]);
    });
  }
}

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
