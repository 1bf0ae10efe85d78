/**
 * What may happen to a few calls and the processes that make and relay them: random, and replayable from a seed.
 */
import fc from 'fast-check';
import { drawnFaults } from '../engine/arbitraries.ts';
import type { NetworkFault } from '../engine/faults.ts';
import { type Death, type Named, placesOf } from '../engine/places.ts';

const REQUESTS = [
  'get',
  'commit',
  'stream',
  'acquire',
  'record',
  'release',
  'after',
  'bound',
  'raise',
  'pending',
  'look',
  'claim',
  'sent',
  'reschedule',
  'park',
  'unpark',
  'blocked',
  'publish',
] as const;

type Request = (typeof REQUESTS)[number];
export type Site = Named<Request>;

/** Every await waits for one of these. */
export const sites: readonly Site[] = placesOf(REQUESTS);

export type Schedule = Readonly<{
  /** `key` 2 is none. `fast`: publishes after its commit; the others leave it to the relays. */
  calls: readonly Readonly<{ at: number; worker: number; key: number; count: number; fast: boolean }>[];
  faults: readonly (NetworkFault | undefined)[];
  /** No relay makes a pass. */
  down: readonly Readonly<{ at: number; milliseconds: number }>[];
  /** The topic takes nothing. */
  away: readonly Readonly<{ at: number; milliseconds: number }>[];
  pauses: readonly Readonly<{ at: number; worker: number; milliseconds: number }>[];
  /** The process that passes the site as the `hit`-th dies there. */
  deaths: readonly Death<Site>[];
  /** How wrong the wall clock of each process is. */
  skews: readonly [number, number, number];
}>;

export const FAULTS_END_MS = 900_000;

const fault = drawnFaults(
  { none: 16, lost: 2 },
  [{ kind: 'refused' }, { kind: 'reply lost' }, { kind: 'reply lost' }],
  'delayed',
);
const at = fc.oneof(
  { weight: 2, arbitrary: fc.nat(FAULTS_END_MS - 200_000) },
  { weight: 1, arbitrary: fc.nat(3_000) },
);
/** With more of the rare cases. */
const site = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...sites) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Site>('before reschedule', 'after reschedule', 'after reschedule'),
  },
  { weight: 1, arbitrary: fc.constantFrom<Site>('before park', 'after park') },
  { weight: 2, arbitrary: fc.constantFrom<Site>('before unpark', 'after unpark') },
);

export const schedules: fc.Arbitrary<Schedule> = fc.record({
  calls: fc.array(
    fc.record({
      at,
      worker: fc.nat(2),
      key: fc.constantFrom(0, 0, 0, 1, 2, 2),
      count: fc.constantFrom(1, 1, 1, 3),
      fast: fc.boolean(),
    }),
    { minLength: 2, maxLength: 9 },
  ),
  faults: fc.array(fault, { minLength: 1, maxLength: 60 }),
  down: fc.array(fc.record({ at: fc.nat(300_000), milliseconds: fc.nat(500_000) }), { maxLength: 1 }),
  away: fc.array(fc.record({ at: fc.nat(400_000), milliseconds: fc.nat(300_000) }), { maxLength: 1 }),
  pauses: fc.array(
    fc.record({
      at: fc.nat(FAULTS_END_MS - 200_000),
      worker: fc.nat(2),
      milliseconds: fc.integer({ min: 1_000, max: 180_000 }),
    }),
    { maxLength: 3 },
  ),
  deaths: fc.array(fc.record({ place: site, hit: fc.constantFrom(1, 1, 2, 3) }), {
    minLength: 1,
    maxLength: 4,
  }),
  skews: fc.tuple(
    fc.integer({ min: -400_000, max: 400_000 }),
    fc.integer({ min: -400_000, max: 400_000 }),
    fc.constant(0),
  ),
});
