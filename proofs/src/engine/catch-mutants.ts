/**
 * The tests that each mutant breaks the invariant that it is known to break, in the same random schedules in which what
 * is built breaks none.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Runs } from './search.ts';

export type Property<Way, Schedule, Invariant extends string> = Readonly<{
  asBuilt: Way;
  mutants: readonly Readonly<{ name: string; breaks: Invariant; way: Way }>[];
  schedules: fc.Arbitrary<Schedule>;
  play(way: Way, schedule: Schedule): Promise<readonly Readonly<{ invariant: Invariant }>[]>;
}>;

/** How many schedules may pass until the invariant breaks. */
const SCHEDULES: Runs = { seed: 20_260_101, numRuns: 250 };

export function catchMutants<Way, Schedule, Invariant extends string>(
  property: Property<Way, Schedule, Invariant>,
  runs: Runs = SCHEDULES,
): void {
  const { asBuilt, mutants, schedules, play } = property;

  /** How often each invariant broke, by the schedule, until `sought` did. */
  const broken = async (way: Way, sought?: Invariant) => {
    const counts = new Map<Invariant, number>();
    let played = 0;
    for (const schedule of fc.sample(schedules, runs)) {
      played += 1;
      const violations = await play(way, schedule);
      for (const invariant of new Set(violations.map((violation) => violation.invariant)))
        counts.set(invariant, (counts.get(invariant) ?? 0) + 1);
      if (sought !== undefined && counts.has(sought)) break;
    }
    return { counts, played };
  };

  for (const { name, breaks, way } of mutants) {
    void test(`the mutant is caught: ${name} breaks "${breaks}"`, async (t) => {
      const { counts, played } = await broken(way, breaks);
      t.diagnostic(
        `${name}: "${breaks}" broken by schedule ${played}; ${JSON.stringify(Object.fromEntries(counts))}`,
      );
      assert.ok(counts.has(breaks), `not in ${played} schedules; broken: ${JSON.stringify([...counts])}`);
    });
  }

  void test('what is built breaks none of them in the same schedules', async () => {
    assert.deepEqual([...(await broken(asBuilt)).counts], []);
  });
}
