import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Invariant } from './testing/invariants.ts';
import { mutants } from './testing/mutants.ts';
import { asBuilt, play } from './testing/play.ts';
import { schedules } from './testing/schedule.ts';

const SEED = 20_260_101;
/** Schedules until the invariant must have been broken. */
const SCHEDULES = 250;

/** How often each invariant broke, by the schedule, until `sought` did. */
async function broken(way: typeof asBuilt, sought?: Invariant) {
  const counts = new Map<Invariant, number>();
  let played = 0;
  for (const schedule of fc.sample(schedules, { seed: SEED, numRuns: SCHEDULES })) {
    played += 1;
    const violations = await play(way, schedule);
    for (const invariant of new Set(violations.map((violation) => violation.invariant)))
      counts.set(invariant, (counts.get(invariant) ?? 0) + 1);
    if (sought !== undefined && counts.has(sought)) break;
  }
  return { counts, played };
}

for (const { name, breaks, way } of mutants) {
  test(`the mutant is caught: ${name} breaks "${breaks}"`, async (t) => {
    const { counts, played } = await broken(way, breaks);
    t.diagnostic(
      `${name}: "${breaks}" broken by schedule ${played}; ${JSON.stringify(Object.fromEntries(counts))}`,
    );
    assert.ok(counts.has(breaks), `not in ${played} schedules; broken: ${JSON.stringify([...counts])}`);
  });
}

test('what is built breaks none of them in the same schedules', async () => {
  assert.deepEqual([...(await broken(asBuilt)).counts], []);
});
