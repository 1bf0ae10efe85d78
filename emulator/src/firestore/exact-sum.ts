/**
 * The sum of doubles, rounded once: what comes out does not depend on their order, and has no error of its own. Shewchuk,
 * Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric Predicates (1997): a sum is kept as doubles that
 * do not overlap, smallest first.
 */

/** Above the largest sum of 2^64 doubles, so that no step on the way overflows where the sum itself does not. */
const SCALE = 2 ** 64;

/** As IEEE 754 adds where there are infinities or NaN. */
export function exactSum(values: readonly number[]): number {
  const sum = rounded(values);
  // A step on the way may have been too large; and if all of them are finite, scaling loses nothing that shows.
  if (Number.isFinite(sum)) return sum;
  if (values.every(Number.isFinite)) return rounded(values.map((value) => value / SCALE)) * SCALE;
  return values.filter((value) => !Number.isFinite(value)).reduce((total, value) => total + value, 0);
}

/** Doubles whose sum it is. */
export function doublesOf(integer: bigint): readonly number[] {
  const parts: number[] = [];
  for (let rest = integer; rest !== 0n; ) {
    const part = Number(rest);
    parts.push(part);
    rest -= BigInt(part);
  }
  return parts;
}

function rounded(values: readonly number[]): number {
  const parts: number[] = [];
  for (const value of values) {
    let high = value;
    let count = 0;
    for (const part of parts) {
      const [large, small] = Math.abs(high) < Math.abs(part) ? [part, high] : [high, part];
      high = large + small;
      const low = small - (high - large);
      if (low !== 0) parts[count++] = low;
    }
    parts.length = count;
    parts.push(high);
  }
  return roundedOf(parts);
}

/** From the largest down to the first that does not vanish: there the result is decided but for an exact half. */
function roundedOf(parts: readonly number[]): number {
  let index = parts.length - 1;
  let high = parts[index] ?? 0;
  let low = 0;
  while (index > 0 && low === 0) {
    index -= 1;
    const before = high;
    const part = parts[index] ?? 0;
    high = before + part;
    low = part - (high - before);
  }
  // Half-way between two doubles, the next smaller part says to which side.
  const below = parts[index - 1] ?? 0;
  if ((low < 0 && below < 0) || (low > 0 && below > 0)) {
    const twice = low * 2;
    const other = high + twice;
    if (other - high === twice) return other;
  }
  return high;
}
