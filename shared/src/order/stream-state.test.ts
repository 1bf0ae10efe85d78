import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addRange,
  freshStream,
  isSkipped,
  MAX_RANGES,
  applyPatch,
  type Range,
  skippingTo,
  type StreamState,
} from './stream-state.ts';

test('neighbours become one range', () => {
  assert.deepEqual(addRange([{ from: 2, to: 4 }], { from: 5, to: 9 }), [{ from: 2, to: 9 }]);
  assert.deepEqual(addRange([{ from: 2, to: 4 }], { from: 6, to: 6 }), [
    { from: 2, to: 4 },
    { from: 6, to: 6 },
  ]);
});

test('ranges are bounded, and what was skipped stays skipped', () => {
  let ranges: readonly Range[] = [];
  for (let number = 2; number <= 2 * (MAX_RANGES + 50); number += 2) {
    ranges = addRange(ranges, { from: number, to: number });
  }
  assert.equal(ranges.length, MAX_RANGES);
  for (let number = 2; number <= 2 * (MAX_RANGES + 50); number += 2) {
    assert.ok(
      ranges.some(({ from, to }) => from <= number && number <= to),
      String(number),
    );
  }
});

test('skipped numbers are late, and the recent hashes still belong to the numbers done', () => {
  let state: StreamState = { ...freshStream(1), last: 3, recentHashes: ['a', 'b', 'c'] };
  state = applyPatch(state, skippingTo(state, 100_003), 0);
  assert.deepEqual(
    [state.last, state.recentHashes.length, state.skipped],
    [100_003, 100, [{ from: 4, to: 100_003 }]],
  );
  assert.deepEqual(
    [isSkipped(state, 3), isSkipped(state, 4), isSkipped(state, 100_004)],
    [false, true, false],
  );
});
