/**
 * Random schedules over several workers. Whatever happens to the workers and to the store's replies: first runs per
 * key are 1, 2, 3, …, a repeat happens only after a lost lease, nothing is lost, and in the end every key is drained,
 * stands still visibly, or waits for a number that nobody has.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkPromises } from './testing/promises.ts';
import type { Plan } from './testing/plan.ts';
import { simulate, type Simulated } from './testing/simulation.ts';
import { newSites, type Sites } from './testing/sites.ts';

const STANDARD_RUNS = 2_600;
const RUNS = Number(process.env.ORDER_SCHEDULES ?? STANDARD_RUNS);
/** At each place where the protocol waits for its store. */
const CRASHES = 20;

const plans = (faultRate: fc.Arbitrary<number>): fc.Arbitrary<Plan> =>
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
    poison: fc.constantFrom('halt', 'skip'),
    operated: fc.boolean(),
    gaps: fc.constantFrom('wait', 'skip'),
    repairs: fc.boolean(),
    spreadMs: fc.constantFrom(1, 2_000, 60_000, 100_000),
  });

// Thousands of errors are made and thrown away here; their stacks would cost more than the schedules.
Error.stackTraceLimit = 0;

type Found = Readonly<{ sites: Sites; faults: number; repeats: number }>;

async function search(): Promise<Found> {
  const sites = newSites();
  const crashesAt = (place: string): number => sites.crashes.get(place) ?? 0;
  let faults = 0;
  let repeats = 0;
  let schedules = 0;
  await fc.assert(
    fc.asyncProperty(plans(fc.constantFrom(0.01, 0.03, 0.08, 0.2)), async (drawn) => {
      schedules += 1;
      const rarest = [...sites.seen].toSorted((left, right) => crashesAt(left) - crashesAt(right))[0];
      const run = await checked(schedules % 5 === 0 ? aimedAt(drawn, rarest ?? '?') : drawn, sites);
      faults += run.faults;
      repeats += run.witness.effects.length - new Set(run.witness.effects.map(({ content }) => content)).size;
    }),
    { numRuns: RUNS },
  );
  return { sites, faults, repeats };
}

// Before the first test: from then on node:test follows every promise, which takes a third of the time.
const [found] = await Promise.allSettled([search()]);

test('keeps every promise in random schedules with crashes, stalls, poison, gaps and a reset counter', () => {
  if (found.status === 'rejected') throw found.reason;
  const { faults, repeats } = found.value;
  // A search that never met a fault or a repeat would prove nothing.
  assert.ok(faults > RUNS, `only ${faults} faults in ${RUNS} schedules`);
  assert.ok(repeats > 0, 'no schedule repeated a number');
});

test('processes died often at each place where the protocol waits for its store', (context) => {
  if (RUNS < STANDARD_RUNS) return context.skip('too few schedules were asked for');
  if (found.status === 'rejected') throw found.reason;
  const { seen, crashes } = found.value.sites;
  const rare = [...seen].filter((place) => (crashes.get(place) ?? 0) < CRASHES);
  assert.deepEqual([rare, seen.size > 12], [[], true], [...crashes].join('\n'));
});

async function checked(plan: Plan, sites?: Sites): Promise<Simulated> {
  const run = await simulate(plan, {}, sites);
  checkPromises(plan, run);
  return run;
}

test('runs every number once when nothing goes wrong', async () => {
  await fc.assert(
    fc.asyncProperty(plans(fc.constant(0)), async (plan) => {
      const { effects } = (await checked(plan)).witness;
      assert.equal(effects.length, new Set(effects.map(({ key, number }) => `${key}#${number}`)).size);
    }),
    { numRuns: Math.ceil(RUNS / 6) },
  );
});

/** A schedule in which everything happens that leads to one of the rarer places, and processes die there. */
function aimedAt(plan: Plan, crashSite: string): Plan {
  return {
    ...plan,
    crashSite,
    numbers: 8,
    fatal: 0.3,
    dropped: 0.3,
    poison: 'halt',
    operated: true,
    spreadMs: 2_000,
  };
}
