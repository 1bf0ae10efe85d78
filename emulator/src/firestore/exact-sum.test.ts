import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { doublesOf, exactSum } from './exact-sum.ts';

/** As a fraction over 2^1074, of which every double is a whole number. */
function exact(value: number): bigint {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, value);
  const all = bits.getBigUint64(0);
  const exponent = (all >> 52n) & 0x7ffn;
  const mantissa = (all & 0xfffffffffffffn) | (exponent > 0n ? 1n << 52n : 0n);
  const size = mantissa << (exponent > 0n ? exponent - 1n : 0n);
  return value < 0 || Object.is(value, -0) ? -size : size;
}

const magnitude = (value: bigint): bigint => (value < 0n ? -value : value);

test('is the double next to the exact sum, in whatever order', () => {
  const double = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e300, max: 1e300 }),
    fc.integer({ min: -1000, max: 1000 }).map((cents) => cents / 100),
    fc.constantFrom(1e16, -1e16, 1, 2 ** -53, 2 ** -54, -(2 ** -53), 2 ** 53, 5e-324),
  );
  fc.assert(
    fc.property(fc.array(double, { maxLength: 30 }), (values) => {
      const sum = exactSum(values);
      assert.equal(exactSum(values.toReversed()), sum);
      const wanted = values.reduce((total, value) => total + exact(value), 0n);
      const error = magnitude(exact(sum) - wanted);
      for (const neighbour of [sum + Number.EPSILON * Math.abs(sum), sum - Number.EPSILON * Math.abs(sum)]) {
        if (Number.isFinite(neighbour)) assert.ok(error <= magnitude(exact(neighbour) - wanted));
      }
    }),
    { numRuns: 2_000 },
  );
});

test('does not overflow on the way, and follows IEEE 754 where the values are not finite', () => {
  const { MAX_VALUE } = Number;
  assert.equal(exactSum([MAX_VALUE, MAX_VALUE, -MAX_VALUE]), MAX_VALUE);
  assert.equal(exactSum([MAX_VALUE, MAX_VALUE]), Infinity);
  assert.equal(exactSum([1, Infinity, 2]), Infinity);
  assert.equal(exactSum([-Infinity, MAX_VALUE, MAX_VALUE]), -Infinity);
  assert.ok(Number.isNaN(exactSum([Infinity, -Infinity])));
  assert.ok(Number.isNaN(exactSum([1, Number.NaN])));
  assert.equal(exactSum([]), 0);
});

test('takes integers of any size apart without a loss', () => {
  for (const integer of [0n, 7n, -(2n ** 63n), 2n ** 63n - 1n, 2n ** 80n + 1n]) {
    assert.equal(
      doublesOf(integer).reduce((total, part) => total + BigInt(part), 0n),
      integer,
    );
  }
  assert.equal(exactSum([...doublesOf(2n ** 53n + 1n), 0.5]), 2 ** 53 + 2);
});
