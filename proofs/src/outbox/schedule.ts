/**
 * What may happen to a few calls and the processes that make and relay them: random, and replayable from a seed.
 */
import fc from 'fast-check';

/** Of a request to the store or the topic. `late`: applied so much later, the caller hears that nobody answers. */
export type Fault =
  | 'request lost'
  | 'reply lost'
  | Readonly<{ kind: 'delayed' | 'late'; milliseconds: number }>;

const REQUESTS = [
  'get',
  'commit',
  'stream',
  'take',
  'record',
  'release',
  'after',
  'bound',
  'raise',
  'pending',
  'look',
  'claim',
  'sent',
  'put off',
  'park',
  'unpark',
  'halted',
  'publish',
] as const;

/** `before`: nothing is sent yet. `after`: it is done, and not yet heard of. Every await waits for one of these. */
export type Site = `${'before' | 'after'} ${(typeof REQUESTS)[number]}`;

export const sites: readonly Site[] = REQUESTS.flatMap((name): Site[] => [`before ${name}`, `after ${name}`]);

export type Schedule = Readonly<{
  /** `key` 2 is none. `fast`: publishes after its commit; the others leave it to the relays. */
  calls: readonly Readonly<{ at: number; worker: number; key: number; count: number; fast: boolean }>[];
  faults: readonly (Fault | undefined)[];
  /** No relay makes a pass. */
  down: readonly Readonly<{ at: number; milliseconds: number }>[];
  /** The topic takes nothing. */
  away: readonly Readonly<{ at: number; milliseconds: number }>[];
  pauses: readonly Readonly<{ at: number; worker: number; milliseconds: number }>[];
  /** The process that passes the site as the `hit`-th dies there. */
  deaths: readonly Readonly<{ site: Site; hit: number }>[];
  /** How wrong the wall clock of each process is. */
  skews: readonly [number, number, number];
}>;

export const TROUBLE_MS = 900_000;

const milliseconds = fc.integer({ min: 0, max: 32_000 });
const fault: fc.Arbitrary<Fault | undefined> = fc.oneof(
  { weight: 16, arbitrary: fc.constant(undefined) },
  { weight: 2, arbitrary: fc.constantFrom<Fault>('request lost', 'reply lost', 'reply lost') },
  { weight: 1, arbitrary: milliseconds.map((ms): Fault => ({ kind: 'delayed', milliseconds: ms })) },
  { weight: 1, arbitrary: milliseconds.map((ms): Fault => ({ kind: 'late', milliseconds: ms })) },
);
const at = fc.oneof(
  { weight: 2, arbitrary: fc.nat(TROUBLE_MS - 200_000) },
  { weight: 1, arbitrary: fc.nat(3_000) },
);
/** With more of what happens seldom. */
const site = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...sites) },
  { weight: 1, arbitrary: fc.constantFrom<Site>('before put off', 'after put off', 'after put off') },
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
      at: fc.nat(TROUBLE_MS - 200_000),
      worker: fc.nat(2),
      milliseconds: fc.integer({ min: 1_000, max: 180_000 }),
    }),
    { maxLength: 3 },
  ),
  deaths: fc.array(fc.record({ site, hit: fc.constantFrom(1, 1, 2, 3) }), {
    minLength: 1,
    maxLength: 4,
  }),
  skews: fc.tuple(
    fc.integer({ min: -400_000, max: 400_000 }),
    fc.integer({ min: -400_000, max: 400_000 }),
    fc.constant(0),
  ),
});
