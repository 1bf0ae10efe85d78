import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Invariant, violations } from './model.ts';
import { mutants } from './mutants.ts';
import { programs } from './programs.ts';
import { runProgram, type Way } from './run-program.ts';

const SEED = 20_260_201;
/** Programs until the invariant must have been broken. */
const PROGRAMS = 300;

async function broken(way: Way, sought?: Invariant) {
  const counts = new Map<Invariant, number>();
  let played = 0;
  for (const program of fc.sample(programs, { seed: SEED, numRuns: PROGRAMS })) {
    played += 1;
    for (const invariant of violations(await runProgram(way, program), program)) {
      counts.set(invariant, (counts.get(invariant) ?? 0) + 1);
    }
    if (sought !== undefined && counts.has(sought)) break;
  }
  return { counts, played };
}

for (const { name, breaks, way } of mutants) {
  test(`the mutant is caught: ${name} breaks "${breaks}"`, async (t) => {
    const { counts, played } = await broken(way, breaks);
    t.diagnostic(`"${breaks}" broken by program ${played}; ${JSON.stringify(Object.fromEntries(counts))}`);
    assert.ok(counts.has(breaks), `not in ${played} programs; broken: ${JSON.stringify([...counts])}`);
  });
}

test('what is built breaks none of them in the same programs', async () => {
  assert.deepEqual([...(await broken({})).counts], []);
});
