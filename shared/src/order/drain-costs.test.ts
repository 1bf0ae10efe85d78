/**
 * What a drain reads and commits for a run of held messages, and what becomes of what ran when a read in between fails.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compose } from '../handler.ts';
import { ack } from '../outcome.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { inOrder } from './in-order.ts';
import { memoryOrder } from './memory.ts';
import type { OrderStore } from './order-store.ts';
import { type Bench, bench, CONSUMER, LEASE_MS, messageOf } from './testing/bench.ts';
import { contextFor } from './testing/plan.ts';

const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1);

function recording(store: OrderStore): Readonly<{ store: OrderStore; calls: string[] }> {
  const calls: string[] = [];
  const recorded: OrderStore = {
    ...store,
    read: (ref) => (calls.push('read'), store.read(ref)),
    write: (ref, expected, patch, remove = []) => (
      calls.push(`write, ${remove.length} removed`), store.write(ref, expected, patch, remove)
    ),
    transact: (...args) => (calls.push('transact'), store.transact(...args)),
    held: (ref, from, limit) => (calls.push(`held ${limit} from ${from}`), store.held(ref, from, limit)),
  };
  return { store: recorded, calls };
}

async function callsBehindOne(behind: readonly number[], maxRun: number): Promise<readonly string[]> {
  const clock = virtualClock();
  const { store, calls } = recording(memoryOrder({ clock }));
  const chain = compose(async () => ack(), [inOrder(store, { clock, maxRun })]);
  const deliver = (number: number) => chain(messageOf(number), contextFor(clock, 60_000, CONSUMER));
  for (const number of behind) await deliver(number);
  calls.length = 0;
  assert.deepEqual(await deliver(1), ack('handled'));
  return calls;
}

test('what the end of a direct run has read is not read again, and growing reads share a commit', async () => {
  const begin = ['read', 'write, 0 removed', 'transact', 'read'];
  assert.deepEqual(await callsBehindOne([2, 5], 32), [...begin, 'write, 1 removed', 'transact']);
  assert.deepEqual(await callsBehindOne(upTo(15).slice(1), 32), [
    ...begin,
    'held 4 from 4',
    'held 8 from 8',
    'held 16 from 16',
    'write, 14 removed',
    'transact',
  ]);
});

test('no commit has more than the largest read', async () => {
  const calls = await callsBehindOne(upTo(30).slice(1), 8);
  const removed = calls.flatMap((call) => /^write, (\d+)/.exec(call)?.[1] ?? []).map(Number);
  assert.deepEqual(removed, [0, 6, 8, 8, 7]);
});

async function sixHeld(): Promise<Bench> {
  const created = bench();
  for (const number of [7, 6, 5, 4, 3, 2]) await created.worker().deliver(number);
  return created;
}

test('what ran is committed when the next read fails, and the drain goes on', async () => {
  const { worker, runs, state, heldNumbers } = await sixHeld();
  const cut = worker({ faults: { 'held 1': { kind: 'refused' } } });
  assert.deepEqual(await cut.deliver(1), ack('handled'));
  assert.deepEqual(
    runs.map((run) => Number(run[0])),
    upTo(7),
  );
  assert.deepEqual([state().last, state().lease, heldNumbers()], [7, null, []]);
});

test('what ran and was not committed repeats in order after a crash in between', async () => {
  const { clock, worker, runs, state, heldNumbers } = await sixHeld();
  const dying = worker({ faults: { 'held 1': { kind: 'crash', when: 'before' } } });
  void dying.deliver(1);
  await clock.advance(2 * LEASE_MS);
  assert.deepEqual([state().last, heldNumbers()], [1, [2, 3, 4, 5, 6, 7]]);
  await worker().sweep();
  assert.deepEqual(
    runs.map((run) => Number(run[0])),
    [1, 2, 3, 2, 3, 4, 5, 6, 7],
  );
  assert.deepEqual([state().last, state().lease, heldNumbers()], [7, null, []]);
});
