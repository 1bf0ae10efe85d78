import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { expected, violations } from './model.ts';
import { calmPrograms, programs } from './programs.ts';
import { runProgram } from './run-program.ts';

/** With crashes; a quarter as many without. `npm run test:deep` takes 3,000. */
const RUNS = Number(process.env['TEST_SCHEDULES'] ?? 300);

test('while nothing fails, deliveries are those of the ten-line model, and on time', async () => {
  await fc.assert(
    fc.asyncProperty(calmPrograms, async (program) => {
      const { publishes } = await runProgram({}, program);
      assert.deepEqual(publishes, expected(program));
    }),
    { numRuns: Math.ceil(RUNS / 4) },
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

test('whatever fails, the same holds for schedules that do not fit a task', async () => {
  await fc.assert(
    fc.asyncProperty(programs, async (program) => {
      const history = await runProgram({ isLarge: true }, program);
      assert.deepEqual(violations(history, program), [], JSON.stringify(history));
    }),
    { numRuns: Math.ceil(RUNS / 5) },
  );
});
