/**
 * What may happen to a few messages and the processes that work on them: random, and replayable from fast-check's seed.
 */
import fc from 'fast-check';
import { drawnFaults } from '../engine/arbitraries.ts';
import type { NetworkFault } from '../engine/faults.ts';

export type Run = Readonly<{
  /** Milliseconds between the handler's looks at its signal. */
  steps: readonly number[];
  ends: 'ack' | 'retry' | 'deadLetter';
  /** Ignores its signal. */
  isDeaf: boolean;
}>;

export type Schedule = Readonly<{
  /** `copy`: the same message delivered again, else another publish. `other`: under the same `dedupId`, other data. */
  publishes: readonly Readonly<{ key: number; at: number; copy: boolean; other: boolean }>[];
  runs: readonly Run[];
  /** What happens at each call of the store, in turn. */
  faults: readonly (NetworkFault | undefined)[];
  outages: readonly Readonly<{ at: number; milliseconds: number }>[];
  pauses: readonly Readonly<{ at: number; worker: number; milliseconds: number | 'for ever' }>[];
  /**
   * The process that passes the await as the `hit`-th dies there. `site` counts through the awaits, and round; with
   * `among`, through those whose names contain it.
   */
  crashes: readonly Readonly<{ site: number; hit: number; among: string }>[];
}>;

const one = (of: number): fc.Arbitrary<boolean> => fc.nat(of - 1).map((n) => n === 0);
const crash = (...among: string[]): fc.Arbitrary<Schedule['crashes'][number]> =>
  fc.record({ site: fc.nat(1_000), hit: fc.constantFrom(1, 1, 1, 1, 2), among: fc.constantFrom(...among) });

const REFUSED: NetworkFault = { kind: 'refused' };
const REPLY_LOST: NetworkFault = { kind: 'reply lost' };
const LOST: readonly NetworkFault[] = [REFUSED, REPLY_LOST, { kind: 'repeated' }];
const lost: fc.Arbitrary<NetworkFault> = fc.constantFrom(...LOST);
const fault = drawnFaults({ none: 10, lost: 1 }, LOST, 'late copy');
const ends = fc.constantFrom<Run['ends']>('ack', 'ack', 'ack', 'retry', 'deadLetter');

const anything: fc.Arbitrary<Schedule> = fc.record({
  publishes: fc.array(fc.record({ key: fc.nat(1), at: fc.nat(90_000), copy: one(2), other: one(10) }), {
    minLength: 1,
    maxLength: 5,
  }),
  runs: fc.array(fc.record({ steps: fc.array(fc.nat(8_000), { maxLength: 7 }), ends, isDeaf: one(4) }), {
    minLength: 1,
    maxLength: 6,
  }),
  faults: fc.array(fault, { minLength: 1, maxLength: 60 }),
  outages: fc.array(fc.record({ at: fc.nat(200_000), milliseconds: fc.nat(45_000) }), { maxLength: 1 }),
  pauses: fc.array(
    fc.record({
      at: fc.nat(200_000),
      worker: fc.nat(2),
      milliseconds: fc.oneof(
        { weight: 3, arbitrary: fc.integer({ min: 1_000, max: 140_000 }) },
        { weight: 1, arbitrary: fc.constant('for ever' as const) },
      ),
    }),
    { maxLength: 4 },
  ),
  crashes: fc.array(crash(''), { minLength: 1, maxLength: 3 }),
});

/** One key and one kind of fault: cases that `anything` seldom draws. */
const story = (parts: {
  at: fc.Arbitrary<number[]>;
  runs: fc.Arbitrary<Run>[];
  faults?: fc.Arbitrary<(NetworkFault | undefined)[]>;
  outages?: fc.Arbitrary<Schedule['outages']>;
  pauses?: fc.Arbitrary<Schedule['pauses']>;
  crash: fc.Arbitrary<Schedule['crashes'][number]>;
}): fc.Arbitrary<Schedule> =>
  fc.record({
    publishes: parts.at.map((times) => times.map((at) => ({ key: 0, at, copy: false, other: false }))),
    runs: fc.tuple(...parts.runs),
    faults: parts.faults ?? fc.constant([undefined]),
    outages: parts.outages ?? fc.constant([]),
    pauses: parts.pauses ?? fc.constant([]),
    crashes: parts.crash.map((only) => [only]),
  });
const run = (least: number, most: number, how: Run['ends'], isDeaf: boolean): fc.Arbitrary<Run> =>
  fc.integer({ min: least, max: most }).map((step) => ({ steps: [step], ends: how, isDeaf }));

/** A handler goes on after its lease; another takes the claim over, fails, and gives it back. */
const givenBack = story({
  at: fc.tuple(fc.constant(0), fc.integer({ min: 20_000, max: 36_000 })),
  runs: [run(41_000, 55_000, 'ack', true), run(0, 4_000, 'retry', false)],
  outages: fc.integer({ min: 30_000, max: 35_000 }).map((ms) => [{ at: 100, milliseconds: ms }]),
  crash: crash(' complete: documents.create', ' complete: documents.create', ' complete: documents.read'),
});

/** A process is paused past its lease; it settles its claim while another runs, and more deliveries come. */
const overtaken = story({
  at: fc.tuple(
    fc.constant(0),
    fc.integer({ min: 15_000, max: 30_000 }),
    fc.integer({ min: 30_000, max: 60_000 }),
  ),
  runs: [
    run(6_000, 9_000, 'retry', true),
    run(20_000, 45_000, 'ack', false),
    run(5_000, 40_000, 'ack', false),
  ],
  pauses: fc.integer({ min: 27_000, max: 45_000 }).map((ms) => [{ at: 5_000, worker: 1, milliseconds: ms }]),
  crash: crash(' release', ' complete', ' renew'),
});

/** The second call, a renewal, is applied and its reply lost; then the handler ends, or the next renewal finds it. */
const lostRenewal = (least: number, most: number, how: Run['ends'], among: string): fc.Arbitrary<Schedule> =>
  story({
    at: fc.tuple(fc.constant(0), fc.nat(20_000)),
    runs: [run(least, most, how, false)],
    faults: fc
      .array(fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: lost }), {
        minLength: 4,
        maxLength: 12,
      })
      .map((rest) => [undefined, undefined, REPLY_LOST, undefined, ...rest]),
    crash: crash(among),
  });

/** The completion does not arrive, or its reply is lost. */
const lostCompletion = story({
  at: fc.tuple(fc.constant(0), fc.nat(20_000)),
  runs: [run(0, 9_000, 'ack', false)],
  faults: lost.map((how) => [undefined, undefined, how.kind === 'repeated' ? REFUSED : how]),
  crash: crash(' complete: sleep'),
});

/** More deliveries than processes: they share polls. */
const crowd = story({
  at: fc.array(fc.nat(8_000), { minLength: 6, maxLength: 8 }),
  runs: [run(5_000, 20_000, 'ack', false), run(0, 8_000, 'retry', false)],
  faults: fc.array(fault, { minLength: 1, maxLength: 20 }),
  crash: crash('shared-polls'),
});

export const schedules: fc.Arbitrary<Schedule> = fc.oneof(
  { weight: 10, arbitrary: anything },
  { weight: 2, arbitrary: givenBack },
  { weight: 1, arbitrary: overtaken },
  { weight: 2, arbitrary: lostRenewal(10_001, 10_990, 'ack', ' complete: documents.update, again') },
  { weight: 1, arbitrary: lostRenewal(10_001, 10_990, 'retry', ' release: documents.read') },
  { weight: 1, arbitrary: lostRenewal(11_100, 20_000, 'ack', ' renew: documents.read') },
  { weight: 1, arbitrary: lostCompletion },
  { weight: 1, arbitrary: crowd },
);
