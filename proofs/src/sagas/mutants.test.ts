/**
 * Each mutant breaks the promise that it is known to break, in the programs in which sagas as they are break none
 * (programs.test.ts has more of them).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forgetful, mutants } from './mutants.ts';
import { proveSagas } from './proof.ts';

/** Programs in which the promise must have been broken. */
const RUNS = { seed: 20_260_101, numRuns: 300 };

for (const { name, breaks } of [...mutants, forgetful]) {
  test(`the mutant is caught: ${name} breaks "${breaks}"`, async (t) => {
    const { failure } = await proveSagas({ ...RUNS, mutant: name });
    t.diagnostic(failure ?? '');
    assert.ok(failure !== undefined, `not in ${RUNS.numRuns} programs`);
  });
}

test('what is built breaks none of them in the same programs', async () => {
  const { failure } = await proveSagas(RUNS);
  assert.equal(failure, undefined, failure);
});
