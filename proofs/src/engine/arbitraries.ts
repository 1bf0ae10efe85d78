/**
 * Faults as fast-check draws and shrinks them.
 */
import fc from 'fast-check';
import type { NetworkFault } from './faults.ts';

const milliseconds = fc.integer({ min: 0, max: 32_000 });

/**
 * None (`undefined`), one of `lost`, a slow request, or one that arrives late: `none` and `lost` are weights, the other
 * two weigh 1.
 */
export const drawnFaults = (
  weights: Readonly<{ none: number; lost: number }>,
  lost: readonly NetworkFault[],
  late: 'delayed' | 'late copy',
): fc.Arbitrary<NetworkFault | undefined> =>
  fc.oneof(
    { weight: weights.none, arbitrary: fc.constant(undefined) },
    { weight: weights.lost, arbitrary: fc.constantFrom(...lost) },
    { weight: 1, arbitrary: milliseconds.map((beforeMs): NetworkFault => ({ kind: 'none', beforeMs })) },
    { weight: 1, arbitrary: milliseconds.map((byMs): NetworkFault => ({ kind: late, byMs })) },
  );
