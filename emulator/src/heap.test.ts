import assert from 'node:assert/strict';
import test from 'node:test';
import { createHeap, type HeapItem } from './heap.ts';

/** A small generator of repeatable numbers (a linear congruence). */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

const item = (dueMs: number, sequence: number): HeapItem => ({ dueMs, sequence, place: -1 });

test('gives items back by due time, and by sequence where that is equal, whatever is removed in between', () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const next = numbers(seed);
    const heap = createHeap<HeapItem>();
    let model: HeapItem[] = [];
    for (let step = 0; step < 400; step += 1) {
      if (model.length === 0 || next(3) > 0) {
        const added = item(next(20), step);
        heap.add(added);
        model.push(added);
      } else {
        const removed = next(2) === 0 ? heap.first() : model[next(model.length)];
        assert.ok(removed);
        heap.remove(removed);
        assert.equal(removed.place, -1);
        model = model.filter((kept) => kept !== removed);
      }
      model.sort((a, b) => a.dueMs - b.dueMs || a.sequence - b.sequence);
      assert.equal(heap.first(), model[0], `seed ${seed}, step ${step}`);
    }
  }
});

test('ignores the removal of what it does not hold', () => {
  const heap = createHeap<HeapItem>();
  const held = item(1, 1);
  heap.add(held);
  heap.remove(item(0, 0));
  assert.equal(heap.first(), held);
  heap.clear();
  heap.remove(held);
  assert.equal(heap.first(), undefined);
});

test('compares some dozens of times, not thousands, to add and take one of 100,000 items', () => {
  let reads = 0;
  const counted = (dueMs: number, sequence: number): HeapItem => ({
    get dueMs() {
      reads += 1;
      return dueMs;
    },
    sequence,
    place: -1,
  });
  const heap = createHeap<HeapItem>();
  const next = numbers(7);
  for (let index = 0; index < 100_000; index += 1) heap.add(counted(next(1e9), index));
  reads = 0;
  for (let index = 0; index < 1000; index += 1) {
    const first = heap.first();
    assert.ok(first);
    heap.remove(first);
    heap.add(counted(next(1e9), 100_000 + index));
  }
  // Two comparisons a level going down, one going up, up to four reads each, over 17 levels.
  assert.ok(reads / 1000 < 17 * 12, `${reads / 1000} reads per item`);
});
