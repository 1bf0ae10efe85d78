/**
 * What may happen to a few messages of an inbox and the processes that work on them: random, and replayable from a seed.
 */
import fc from 'fast-check';
import { drawnFaults } from '../engine/arbitraries.ts';
import type { NetworkFault } from '../engine/faults.ts';
import { deathSites, type Site } from './inbox-process.ts';

export type InboxSchedule = Readonly<{
  publishes: readonly Readonly<{ key: number; at: number }>[];
  runs: readonly Readonly<{
    steps: readonly number[];
    ends: 'ack' | 'retry' | 'deadLetter';
    /** Ignores its signal. */
    isDeaf: boolean;
    /** Counts in a document that all keys share. */
    reads: boolean;
  }>[];
  faults: readonly (NetworkFault | undefined)[];
  pauses: readonly Readonly<{ at: number; worker: number; milliseconds: number }>[];
  /** The process that passes the site as the `hit`-th dies there. */
  deaths: readonly Readonly<{ site: number; hit: number }>[];
}>;

const fault = drawnFaults(
  { none: 14, lost: 2 },
  [{ kind: 'refused' }, { kind: 'reply lost' }, { kind: 'repeated' }],
  'late copy',
);
/** With more of the rare cases. */
const RARE: readonly Site[] = [
  'after take-over',
  'after claim',
  'before reschedule',
  'after reschedule',
  'after reschedule',
];
const site = fc.oneof(
  { weight: 4, arbitrary: fc.nat(deathSites.length - 1) },
  { weight: 1, arbitrary: fc.constantFrom(...RARE.map((name) => deathSites.indexOf(name))) },
);
export const schedules: fc.Arbitrary<InboxSchedule> = fc.record({
  publishes: fc.array(fc.record({ key: fc.nat(1), at: fc.nat(60_000) }), { minLength: 1, maxLength: 3 }),
  runs: fc.array(
    fc.record({
      steps: fc.array(fc.nat(14_000), { maxLength: 3 }),
      ends: fc.constantFrom<'ack' | 'retry' | 'deadLetter'>('ack', 'ack', 'ack', 'retry', 'deadLetter'),
      isDeaf: fc.boolean(),
      reads: fc.boolean(),
    }),
    { minLength: 1, maxLength: 5 },
  ),
  faults: fc.array(fault, { minLength: 1, maxLength: 40 }),
  pauses: fc.array(
    fc.record({
      at: fc.nat(150_000),
      worker: fc.nat(2),
      milliseconds: fc.integer({ min: 1_000, max: 140_000 }),
    }),
    { maxLength: 3 },
  ),
  deaths: fc.array(fc.record({ site, hit: fc.constantFrom(1, 1, 2, 3) }), { minLength: 1, maxLength: 5 }),
});
