import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diedEverywhere } from '../engine/died-everywhere.ts';
import { everyPlace } from './places.ts';
import { prove } from './proof.ts';

/** `npm run test:deep` takes 3,000, and demands deaths at each await. */
const DEEP = 3_000;
const SCHEDULES = Number(process.env['TEST_SCHEDULES'] ?? 300);
/** The seed is fixed, so that the counts are the same in each run. A failure prints the seed and the schedule. */
const SEED = Number(process.env['TEST_SEED'] ?? 20_260_101);

test(`${SCHEDULES} random schedules with a death at every await break no invariant`, async (t) => {
  const { failure, deaths } = await prove({ seed: SEED, numRuns: SCHEDULES });
  assert.equal(failure, undefined, failure);
  const counts = everyPlace().map(
    ({ site, name, when }) => [`${when} ${name} (${site})`, deaths[`${when} ${site}`] ?? 0] as const,
  );
  diedEverywhere(t, counts, SCHEDULES >= DEEP);
});
