/**
 * What may happen to a few jobs and the processes that enqueue and work them: random, and replayable from a seed.
 */
import fc from 'fast-check';
import { drawnFaults } from '../engine/arbitraries.ts';
import type { NetworkFault } from '../engine/faults.ts';
import { type Death, type Named, placesOf } from '../engine/places.ts';

const REQUESTS = [
  'write',
  'get',
  'commit',
  'exchange',
  'adopt',
  'begin',
  'rescue',
  'tidy',
  'cancel',
] as const;

export type Request = (typeof REQUESTS)[number];
export type Site = Named<Request>;

/** Every await on the store waits for one of these. */
export const sites: readonly Site[] = placesOf(REQUESTS);

export type Kind =
  /** Writes its effect in the transaction of its end. */
  | 'effect'
  /** Has no transaction, and enqueues nothing. */
  | 'plain'
  /** Enqueues another job with its end. */
  | 'chain'
  /** Fails in its first two runs. */
  | 'failing'
  /** Ends its process. */
  | 'poison'
  /** Hears no abort, and never ends. */
  | 'deaf';

export const KINDS: readonly Kind[] = ['effect', 'plain', 'chain', 'failing', 'poison', 'deaf'];

export type PlannedJob = Readonly<{
  at: number;
  seat: number;
  kind: Kind;
  /** 3 is none. */
  key: number;
  workMs: number;
  maxAttempts: number;
  /** How long after its enqueue an operator cancels it. */
  cancelMs: number | undefined;
}>;

export type Schedule = Readonly<{
  jobs: readonly PlannedJob[];
  faults: readonly (NetworkFault | undefined)[];
  /** The store is away, and starts again after it. */
  outage: Readonly<{ at: number; milliseconds: number }> | undefined;
  pauses: readonly Readonly<{ at: number; seat: number; milliseconds: number }>[];
  /** The process that passes the place as the `hit`-th dies there. */
  deaths: readonly Death<Site>[];
  /** How wrong the wall clock of each process is. */
  skews: readonly [number, number, number];
}>;

export const FAULTS_END_MS = 260_000;

const lossy = drawnFaults(
  { none: 30, lost: 1 },
  [{ kind: 'refused' }, { kind: 'reply lost' }, { kind: 'reply lost' }],
  'delayed',
);
/** Replies that are slow, or lost, and nothing else. */
const deaf = fc.oneof(
  { weight: 9, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constant<NetworkFault>({ kind: 'reply lost' }) },
);
const slow = fc.oneof(
  { weight: 14, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.nat(45_000).map((afterMs): NetworkFault => ({ kind: 'none', afterMs })) },
);
const at = fc.nat(FAULTS_END_MS - 130_000);
const seat = fc.nat(2);

export const schedules: fc.Arbitrary<Schedule> = fc.record({
  jobs: fc.array(
    fc.record({
      at: fc.oneof(fc.constant(1_000), at),
      seat,
      kind: fc.constantFrom<Kind>(
        'effect',
        'effect',
        'plain',
        'chain',
        'failing',
        'failing',
        'poison',
        'deaf',
      ),
      key: fc.constantFrom(0, 1, 3, 3, 3),
      workMs: fc.oneof(fc.constant(0), fc.nat(5_000), fc.nat(100_000)),
      maxAttempts: fc.constantFrom(3, 3, 5, 20),
      cancelMs: fc.option(fc.nat(60_000), { freq: 6, nil: undefined }),
    }),
    { minLength: 3, maxLength: 12 },
  ),
  faults: fc.oneof(
    fc.constant<readonly (NetworkFault | undefined)[]>([undefined]),
    ...[lossy, deaf, slow].map((fault) => fc.array(fault, { minLength: 1, maxLength: 80 })),
  ),
  outage: fc.option(fc.record({ at, milliseconds: fc.integer({ min: 5_000, max: 90_000 }) }), {
    freq: 2,
    nil: undefined,
  }),
  pauses: fc.array(fc.record({ at, seat, milliseconds: fc.integer({ min: 1_000, max: 135_000 }) }), {
    maxLength: 4,
  }),
  deaths: fc.array(fc.record({ place: fc.constantFrom(...sites), hit: fc.constantFrom(1, 1, 2, 3, 10) }), {
    maxLength: 4,
  }),
  skews: fc.tuple(
    fc.integer({ min: -60_000, max: 60_000 }),
    fc.integer({ min: -60_000, max: 60_000 }),
    fc.constant(0),
  ),
});
