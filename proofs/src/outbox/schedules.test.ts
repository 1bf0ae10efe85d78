import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diedEverywhere } from '../engine/died-everywhere.ts';
import { prove } from './proof.ts';
import { sites } from './schedule.ts';
import { proveTold } from './told-proof.ts';

/** `npm run test:deep` takes 3,000, and demands deaths at each request. */
const DEEP = 3_000;
const SCHEDULES = Number(process.env['TEST_SCHEDULES'] ?? 300);
/** The seed is fixed, so that the counts are the same in each run. A failure prints the seed and the schedule. */
const SEED = Number(process.env['TEST_SEED'] ?? 20_260_101);

test(`${SCHEDULES} random schedules with a death at every request break no invariant of the outbox`, async (t) => {
  const { failure, deaths } = await prove({ seed: SEED, numRuns: SCHEDULES });
  assert.equal(failure, undefined, failure);
  const counts = sites.map((site) => [site, deaths[site] ?? 0] as const);
  diedEverywhere(t, counts, SCHEDULES >= DEEP);
});

/** The passes are the same; what may differ is what comes between them. */
const TOLD = Math.ceil(SCHEDULES / 3);

test(`${TOLD} of them with events of a trigger, some lost, late or twice, break none either`, async () => {
  const { failure } = await proveTold({ seed: SEED, numRuns: TOLD });
  assert.equal(failure, undefined, failure);
});
