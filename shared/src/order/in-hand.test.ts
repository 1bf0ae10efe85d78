/** Deliveries of a key that a process has in hand at once run in a row, without being stored. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../clock.ts';
import { codeOf } from '../errors.ts';
import type { Handler } from '../handler.ts';
import { ack, type Outcome, retry } from '../outcome.ts';
import type { VirtualClock } from '../testing/virtual-clock.ts';
import { bench, LEASE_MS, type Worker } from './testing/bench.ts';

const kindOf = (outcome: Outcome): string =>
  outcome.kind === 'ack' ? `ack ${outcome.reason}` : `${outcome.kind} ${codeOf(outcome.error)}`;
const numbers = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);
const deliverAll = ({ deliver }: Worker, all: readonly number[]): Promise<readonly Outcome[]> =>
  Promise.all(all.map((number) => deliver(number)));
const ranAs = (all: readonly number[]): readonly string[] => all.map((number) => `${number}:a`);
const slow =
  (clock: VirtualClock, ms: number): Handler =>
  async () => {
    await sleep(clock, ms);
    return ack();
  };
const dies = { kind: 'crash', when: 'after' } as const;

test('what arrives together runs in its order, and nothing of it is stored', async () => {
  const { worker, runs, state, heldNumbers, store } = bench();
  let held = 0;
  const { transact } = store;
  const counted = {
    ...store,
    transact: ((ref, base, query, decide) =>
      transact(ref, base, query, (...seen) => {
        const decision = decide(...seen);
        held += decision.create?.length ?? 0;
        return decision;
      })) as typeof transact,
  };
  Object.assign(store, counted);
  const outcomes = await deliverAll(worker(), [3, 1, 2, ...numbers(4, 40)]);
  assert.deepEqual(new Set(outcomes.map(kindOf)), new Set(['ack handled']));
  assert.deepEqual([runs, state().last, state().lease, state().run], [ranAs(numbers(1, 40)), 40, null, null]);
  assert.deepEqual([held, heldNumbers()], [0, []]);
});

test('what comes while a handler runs is next without being stored, or stored when it has waited a second', async () => {
  const { clock, worker, runs, heldNumbers } = bench();
  const busy = worker({ handler: slow(clock, 700) });
  const first = busy.deliver(1);
  await clock.advance(100);
  const second = busy.deliver(2);
  assert.equal(kindOf(await clock.until(first)), 'ack handled');
  await clock.advance(100);
  // Its turn is behind 2, which takes longer than a second waits in all.
  const third = busy.deliver(3);
  assert.equal(kindOf(await clock.until(second)), 'ack handled');
  assert.equal(kindOf(await clock.until(third)), 'ack handled');
  assert.deepEqual([runs, heldNumbers()], [ranAs([1, 2, 3]), []]);
  const slower = worker({ handler: slow(clock, 5_000) });
  const fourth = slower.deliver(4);
  await clock.advance(100);
  const fifth = slower.deliver(5);
  await clock.advance(1_100);
  assert.equal(kindOf(await fifth), 'ack held');
  assert.equal(kindOf(await clock.until(fourth)), 'ack handled');
  assert.deepEqual([runs, heldNumbers()], [ranAs([1, 2, 3, 4, 5]), []]);
});

test('a number behind a hole is stored, and runs when the hole is filled', async () => {
  const { worker, runs, state, heldNumbers } = bench();
  const some = worker();
  const outcomes = await deliverAll(some, [1, 2, 4, 5]);
  assert.deepEqual(outcomes.map(kindOf), ['ack handled', 'ack handled', 'ack held', 'ack held']);
  assert.deepEqual([state().last, heldNumbers(), state().waitingSince !== null], [2, [4, 5], true]);
  await deliverAll(some, [3, 6]);
  assert.deepEqual([runs, state().last, heldNumbers()], [ranAs(numbers(1, 6)), 6, []]);
});

test('V7: every number that was started keeps the content that it was started with, also after a crash', async () => {
  const { clock, worker, runs, state } = bench();
  // The second transaction is the one that would count 2 to 4 as done.
  void deliverAll(worker({ faults: { 'transact 2': { kind: 'crash', when: 'before' } } }), numbers(1, 6));
  await clock.advance(1_000);
  assert.deepEqual([runs, state().last], [ranAs([1, 2, 3, 4]), 1]);
  const other = worker();
  for (const number of [2, 3, 4]) {
    const outcome = await other.deliver(number, { content: 'b' });
    assert.equal(kindOf(outcome), 'deadLetter SEQUENCE_CONFLICT');
    assert.equal(kindOf(await other.deliver(number)), 'ack held');
  }
  await clock.advance(LEASE_MS);
  await other.sweep();
  assert.deepEqual([runs, state().last, state().run], [ranAs([1, 2, 3, 4, 2, 3, 4]), 4, null]);
});

test('a failure in the middle: what ran is done, the failed one is tried again, the rest runs behind it', async () => {
  const { clock, worker, runs, state } = bench();
  let failures = 1;
  const some = worker({
    handler: async ({ attributes }) =>
      attributes.sequence === '3' && failures-- > 0 ? retry(new Error('once')) : ack(),
  });
  const outcomes = await deliverAll(some, numbers(1, 8));
  assert.deepEqual(outcomes.slice(0, 2).map(kindOf), ['ack handled', 'ack handled']);
  assert.deepEqual(new Set(outcomes.slice(2).map(kindOf)), new Set(['ack held']));
  assert.deepEqual([state().last, state().attempts, state().lease], [2, 1, null]);
  await clock.advance(1_000);
  await some.sweep();
  assert.deepEqual([runs, state().last], [ranAs([1, 2, 3, 3, 4, 5, 6, 7, 8]), 8]);
});

test('V6: a line that lost its lease is not acknowledged, and runs again in its order', async () => {
  const { clock, worker, runs, state } = bench();
  const stalls = worker({ faults: { 'transact 2': { kind: 'none', beforeMs: LEASE_MS + 1_000 } } });
  const lost = deliverAll(stalls, numbers(1, 6));
  await clock.advance(LEASE_MS + 500);
  await worker().sweep();
  const outcomes = await clock.until(lost);
  assert.equal(kindOf(outcomes[0] as Outcome), 'ack handled');
  const line = outcomes.slice(1, 4).map(kindOf);
  assert.deepEqual(new Set(line), new Set(['retry LEASE_LOST']));
  assert.equal(state().last, 1);
  await deliverAll(worker(), numbers(2, 4));
  await worker().sweep();
  assert.deepEqual(runs.slice(4), ranAs([2, 3, 4, 5, 6]));
});

test('V2b: what is held came first, and nothing in hand passes for it', async () => {
  const { worker, runs, state, heldNumbers } = bench();
  const { deliver } = worker();
  assert.equal(kindOf(await deliver(4)), 'ack held');
  const all = [1, 2, 3, 4, 5, 6].map((number) => deliver(number, { content: number === 4 ? 'b' : 'a' }));
  const outcomes = (await Promise.all(all)).map(kindOf);
  assert.equal(outcomes[3], 'deadLetter SEQUENCE_CONFLICT');
  assert.deepEqual(
    outcomes.filter((kind) => !kind.startsWith('ack')),
    [outcomes[3]],
  );
  assert.deepEqual([runs, state().last, heldNumbers()], [ranAs(numbers(1, 6)), 6, []]);
});

test('V2: copies of a line that another process has stored meanwhile are removed with it', async () => {
  const { clock, worker, runs, state, heldNumbers } = bench();
  const busy = deliverAll(worker({ handler: slow(clock, 200) }), numbers(1, 5));
  await clock.advance(250);
  const copies = deliverAll(worker(), [2, 3, 4, 5]);
  assert.deepEqual(new Set((await clock.until(copies)).map(kindOf)), new Set(['ack held']));
  await clock.until(busy);
  assert.deepEqual([runs, state().last, heldNumbers(), state().lease], [ranAs(numbers(1, 5)), 5, [], null]);
});

test('a process that dies in a line loses nothing', async () => {
  const { clock, worker, runs, state } = bench();
  void deliverAll(worker({ faults: { 'transact 2': dies } }), numbers(1, 8));
  await clock.advance(1_000);
  const other = worker();
  await clock.until(deliverAll(other, numbers(1, 8)));
  await clock.advance(LEASE_MS);
  await other.sweep();
  assert.equal(state().last, 8);
  const first = numbers(1, 8).map((number) => runs.indexOf(`${number}:a`));
  assert.deepEqual(
    first,
    first.toSorted((a, b) => a - b),
  );
});
