import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prove } from './testing/proof.ts';
import { sites } from './testing/schedule.ts';

/** What the suite has time for; a run of its own takes more with `TEST_SCHEDULES`. */
const SCHEDULES = Number(process.env['TEST_SCHEDULES'] ?? 3_000);
/** The same each time, so that a count that is too small is no accident. A failure prints the seed and the schedule. */
const SEED = Number(process.env['TEST_SEED'] ?? 20_260_101);
const LEAST_DEATHS = 20;

test(`${SCHEDULES} random schedules with a death at every request break no invariant of the outbox`, async (t) => {
  const { failure, deaths } = await prove({ seed: SEED, numRuns: SCHEDULES });
  assert.equal(failure, undefined, failure);
  const counts = sites.map((site, index) => `${deaths[index]} died ${site}`);
  for (const count of counts) t.diagnostic(count);
  const rare = counts.filter((count) => Number.parseInt(count) < LEAST_DEATHS);
  assert.deepEqual(rare, [], `each request is the last one of at least ${LEAST_DEATHS} processes`);
});
