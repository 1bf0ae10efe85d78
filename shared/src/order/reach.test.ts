/** Whether a stream comes in its order, as far as one process can tell. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isMixed, leftKeys, type Reach, reachOf } from './reach.ts';

const came = (reach: Reach, from: number, to: number): void => {
  for (let number = from; number <= to; number += 1) reach.came(number);
};

test('a stream is in order once twenty have come without a hole, and no more when one shows', () => {
  const reach = reachOf();
  reach.goesTo(5, 5);
  came(reach, 5, 23);
  assert.equal(reach.isInOrder(), false);
  reach.came(24);
  assert.equal(reach.isInOrder(), true);
  reach.came(26);
  assert.deepEqual([reach.isInOrder(), reach.isWhole()], [false, false]);
  reach.came(25);
  assert.deepEqual([reach.isInOrder(), reach.isWhole()], [false, true], 'one moment is not enough');
  came(reach, 27, 45);
  assert.equal(reach.isInOrder(), true);
  assert.equal(reach.came(100_000), false);
  assert.equal(reach.isInOrder(), true, 'a stray number says nothing');
});

test('what is run counts as here, and what is done is forgotten', () => {
  const reach = reachOf();
  reach.goesTo(5, 5);
  came(reach, 40, 60);
  assert.equal(reach.isInOrder(), false);
  reach.goesTo(40, 10);
  came(reach, 61, 80);
  assert.equal(reach.isInOrder(), true);
  // Somebody has lost the key with what he had run of it: 6 to 39 are not here.
  reach.goesTo(6, 6);
  came(reach, 81, 110);
  assert.equal(reach.isInOrder(), false);
  assert.equal(reach.came(3), false);
  reach.goesTo(111, 111);
  came(reach, 111, 130);
  assert.deepEqual([reach.isInOrder(), reach.size()], [true, 20]);
});

test('those that wait are thin where more is missing before the last of them', () => {
  const reach = reachOf();
  reach.goesTo(1, 1);
  came(reach, 9, 16);
  assert.deepEqual([reach.isThin(7), reach.isThin(8)], [false, false], '8 wait, and 8 are missing');
  reach.came(18);
  assert.deepEqual([reach.isThin(7), reach.isThin(8), reach.isThin(9)], [false, true, false]);
  // What is stored has come.
  came(reach, 1, 8);
  assert.equal(reach.isThin(8), false);
});

test('a key that was left at a hole is remembered, of a thousand keys', () => {
  const left = leftKeys();
  const [whole, holed] = [reachOf(), reachOf()];
  for (const reach of [whole, holed]) reach.goesTo(1, 1);
  came(whole, 1, 3);
  came(holed, 2, 3);
  left.leave('whole', whole);
  left.leave('holed', holed);
  left.came('holed', 1);
  assert.deepEqual([left.take('whole'), left.take('holed')?.isWhole()], [undefined, true]);
  assert.equal(left.take('holed'), undefined);
  for (let key = 0; key <= 1_000; key += 1) {
    const reach = reachOf();
    reach.goesTo(1, 1);
    came(reach, 2, 200);
    left.leave(`k${key}`, reach);
  }
  assert.deepEqual([left.take('k0'), left.take('k1')?.size()], [undefined, 0]);
});

test('numbers that wait in many small pieces, between others that are stored, are mixed; one block, or few, is not', () => {
  const waiting = (...numbers: readonly number[]): ReadonlyMap<number, unknown> =>
    new Map(numbers.map((number) => [number, number]));
  for (const numbers of [[], [7], [7, 9], [7, 8, 9, 10, 12, 14, 15, 16, 17, 18, 19, 20]]) {
    assert.equal(isMixed(waiting(...numbers)), false, String(numbers));
  }
  for (const numbers of [
    [7, 9, 11],
    [13, 19, 34, 56, 69, 75, 82],
    [7, 8, 10, 11, 13, 14, 16],
  ]) {
    assert.equal(isMixed(waiting(...numbers)), true, String(numbers));
  }
});
