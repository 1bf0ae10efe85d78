import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { expected, violations } from './testing/model.ts';
import { calmPrograms, programs } from './testing/programs.ts';
import { runProgram } from './testing/run-program.ts';

const RUNS = Number(process.env['SCHEDULE_PROGRAMS'] ?? 500);

test('while nothing fails, what is delivered is what ten lines say, and when', async () => {
  await fc.assert(
    fc.asyncProperty(calmPrograms, async (program) => {
      const { publishes } = await runProgram({}, program);
      assert.deepEqual(publishes, expected(program));
    }),
    { numRuns: RUNS },
  );
});

test('whatever fails: never early, a success is final, and the last one is delivered', async () => {
  await fc.assert(
    fc.asyncProperty(programs, async (program) => {
      const history = await runProgram({}, program);
      assert.deepEqual(violations(history, program), [], JSON.stringify(history));
    }),
    { numRuns: RUNS },
  );
});
