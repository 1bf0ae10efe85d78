/**
 * Random schedules over several processes. Whatever happens to the processes and to the store's replies, the first runs
 * of a stream are 1, 2, 3, …, a repeat happens only after a lost lease, nothing is lost, and in the end every stream is
 * drained, visibly blocked, or waits for a number that no publisher has.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkPromises } from './promises.ts';
import type { Schedule } from './schedule.ts';
import { simulate, type Simulated } from './simulation.ts';
import { diedEverywhere } from '../engine/died-everywhere.ts';
import { newTally, type Tally } from '../engine/places.ts';
import { DEAD_LETTER, everyPlace, isSeldom } from './places.ts';

/** `npm run test:deep` takes as many, and demands deaths at each place. */
const DEEP = 3_000;
const RUNS = Number(process.env['TEST_SCHEDULES'] ?? 300);
/** The same each time; another one is asked for with TEST_SEED. A failure prints its schedule. */
const SEED = Number(process.env['TEST_SEED'] ?? 20_260_101);
const places = everyPlace();

const plans = (faultRate: fc.Arbitrary<number>): fc.Arbitrary<Schedule> =>
  fc.record({
    seed: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    workers: fc.integer({ min: 1, max: 4 }),
    keys: fc.integer({ min: 1, max: 2 }),
    numbers: fc.integer({ min: 1, max: 8 }),
    faultRate,
    duplicates: fc.constantFrom(0, 0.3),
    conflicts: fc.constantFrom(0, 0.2),
    failing: fc.constantFrom(0, 0.2),
    fatal: fc.constantFrom(0, 0, 0.1, 0.3),
    dropped: fc.constantFrom(0, 0, 0.1, 0.3),
    resets: fc.constantFrom(0, 0, 0.3),
    onPoison: fc.constantFrom('block', 'skip'),
    operated: fc.boolean(),
    onGap: fc.constantFrom('wait', 'skip'),
    repairs: fc.boolean(),
    large: fc.constantFrom(false, false, true),
    woken: fc.boolean(),
    spreadMs: fc.constantFrom(1, 2_000, 60_000, 100_000),
    inTurn: fc.constantFrom(false, false, true),
  });

// Thousands of errors are made and thrown away here; their stacks would cost more than the schedules.
Error.stackTraceLimit = 0;

type Found = Readonly<{ crashes: Tally; faults: number; repeats: number }>;

async function search(): Promise<Found> {
  const crashes = newTally();
  let faults = 0;
  let repeats = 0;
  let schedules = 0;
  await fc.assert(
    fc.asyncProperty(plans(fc.constantFrom(0.01, 0.03, 0.08, 0.2)), async (drawn) => {
      schedules += 1;
      const [rarest = '?'] = places.toSorted((left, right) => crashes.of(left) - crashes.of(right));
      const run = await checked(schedules % 5 === 0 ? aimedAt(drawn, rarest) : drawn, crashes);
      faults += run.faults;
      repeats +=
        run.recording.effects.length - new Set(run.recording.effects.map(({ content }) => content)).size;
    }),
    { numRuns: RUNS, seed: SEED },
  );
  return { crashes, faults, repeats };
}

// Before the first test: from then on node:test follows every promise, which takes a third of the time.
const [found] = await Promise.allSettled([search()]);

test('keeps every promise in random schedules with crashes, stalls, poison, gaps and a reset counter', () => {
  if (found.status === 'rejected') throw found.reason;
  const { faults, repeats } = found.value;
  // A search without a fault or a repeat would prove nothing.
  assert.ok(faults > RUNS, `only ${faults} faults in ${RUNS} schedules`);
  assert.ok(repeats > 0, 'no schedule repeated a number');
});

test('processes died often at each place where the protocol waits for another party', (context) => {
  if (RUNS < DEEP) return context.skip('needs npm run test:deep');
  if (found.status === 'rejected') throw found.reason;
  const { crashes } = found.value;
  const counts = places.map((place) => [`at ${place}`, crashes.of(place)] as const);
  diedEverywhere(context, counts, true);
  // A place that the sources do not show would never be chosen for a death.
  const unknown = crashes.places().filter((place) => !places.includes(place) && !isSeldom(place));
  assert.deepEqual(unknown, []);
});

async function checked(plan: Schedule, crashes?: Tally): Promise<Simulated> {
  const run = await simulate(plan, {}, crashes);
  checkPromises(plan, run);
  return run;
}

test('runs every number once when nothing goes wrong', async () => {
  await fc.assert(
    fc.asyncProperty(plans(fc.constant(0)), async (plan) => {
      const calm = { ...plan, fatal: 0 };
      const { effects } = (await checked(calm)).recording;
      assert.equal(effects.length, new Set(effects.map(({ key, number }) => `${key}#${number}`)).size);
    }),
    { numRuns: Math.ceil(RUNS / 6), seed: SEED },
  );
});

/** A schedule in which what leads to one of the rarer places happens often, and processes die there. */
function aimedAt(plan: Schedule, crashSite: string): Schedule {
  const aimed: Schedule = {
    ...plan,
    crashSite,
    // Faults elsewhere keep processes from getting there.
    faultRate: Math.min(plan.faultRate, 0.03),
    numbers: 8,
    fatal: 0.3,
    dropped: 0.3,
    onPoison: 'block',
    operated: true,
    spreadMs: 2_000,
    inTurn: false,
  };
  if (crashSite.startsWith('admin') || crashSite.startsWith('decided'))
    return { ...aimed, fatal: 0.6, dropped: 0 };
  if (crashSite === DEAD_LETTER) return { ...aimed, fatal: 0.6, onPoison: 'skip' };
  if (crashSite.startsWith('gaps')) {
    // Each number is missing with its neighbours, and nothing else stops the stream before it.
    const repairs = plan.seed % 2 === 0;
    return { ...aimed, fatal: 0, failing: 0, dropped: 0.5, onGap: 'skip', repairs };
  }
  if (crashSite.startsWith('stored-form')) return { ...aimed, large: true };
  // Processes meet each other in one stream.
  if (crashSite.startsWith('cycle')) return { ...aimed, workers: 4, keys: 1, fatal: 0, dropped: 0 };
  return aimed;
}
