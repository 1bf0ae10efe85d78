import assert from 'node:assert/strict';
import { test } from 'node:test';
import { catchMutants } from '../engine/catch-mutants.ts';
import { diedEverywhere } from '../engine/died-everywhere.ts';
import { search } from '../engine/search.ts';
import { mutants } from './limits-mutants.ts';
import { asBuilt, play, schedules, sites } from './limits-play.ts';

/** `npm run test:deep` takes 3,000, with which each request must be died at. */
const DEEP = 3_000;
/** Fewer than elsewhere: three workers poll in each schedule. */
const SCHEDULES = Number(process.env['TEST_SCHEDULES'] ?? 100);
const SEED = Number(process.env['TEST_SEED'] ?? 20_260_101);

test(`T35, T36: ${SCHEDULES} random schedules of workers that die keep the limits and hold nothing back`, async (t) => {
  const runs = { seed: SEED, numRuns: SCHEDULES };
  const { failure, deaths } = await search(schedules, (one, died) => play(asBuilt, one, died), runs);
  assert.equal(failure, undefined, failure);
  const counts = sites.map((site) => [site, deaths[site] ?? 0] as const);
  diedEverywhere(t, counts, SCHEDULES >= DEEP);
});

catchMutants({ asBuilt, mutants, schedules, play }, { seed: SEED, numRuns: 25 });
