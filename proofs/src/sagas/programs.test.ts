import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diedEverywhere } from '../engine/died-everywhere.ts';
import { deathSites } from './play.ts';
import { PROGRAMS, proveSagas } from './proof.ts';

/** What `npm run test:deep` asks of every search; here it takes more, and demands deaths at each await. */
const DEEP = 3_000;
const DEEP_PROGRAMS = 10_000;
const SCHEDULES = Number(process.env['TEST_SCHEDULES'] ?? PROGRAMS.numRuns);
const numRuns = SCHEDULES >= DEEP ? Math.max(SCHEDULES, DEEP_PROGRAMS) : SCHEDULES;
/** A failure prints the seed and the program. */
const seed = Number(process.env['TEST_SEED'] ?? PROGRAMS.seed);

test('whatever fails: each saga is completed or compensated, and no effect is there twice or by half', async (t) => {
  const { failure, deaths } = await proveSagas({ seed, numRuns });
  t.diagnostic(`${numRuns} programs`);
  assert.equal(failure, undefined, failure);
  const counts = deathSites.map((site) => [site, deaths[site] ?? 0] as const);
  diedEverywhere(t, counts, SCHEDULES >= DEEP);
});

test('S18: where the record of a done step is lost, no saga ends wrongly', async () => {
  const { failure } = await proveSagas({ seed, numRuns: Math.ceil(numRuns / 5), forgets: true });
  assert.equal(failure, undefined, failure);
});
