/**
 * Each mutant breaks the promise that it is known to break, in the same programs in which sagas as they are break none
 * (programs.test.ts).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forgetful, mutants } from './mutants.ts';
import { PROGRAMS, proveSagas } from './proof.ts';

for (const { name, breaks } of [...mutants, forgetful]) {
  test(`the mutant is caught: ${name} breaks "${breaks}"`, async (t) => {
    const { failure } = await proveSagas({ ...PROGRAMS, mutant: name });
    t.diagnostic(failure ?? '');
    assert.ok(failure !== undefined, `not in ${PROGRAMS.numRuns} programs`);
  });
}
