import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { diedEverywhere } from '../engine/died-everywhere.ts';
import { newTally } from '../engine/places.ts';
import { deathSites, playSagas } from './play.ts';
import { type SagaSchedule, schedulesOf } from './program.ts';

/** `npm run test:deep` takes 3,000, with which each await must be died at. */
const DEEP = 3_000;
const SCHEDULES = Number(process.env['TEST_SCHEDULES'] ?? 300);
const seed = Number(process.env['TEST_SEED'] ?? 20_260_301);

test('whatever fails: each saga is completed or compensated, and no effect is there twice or by half', async (t) => {
  const deaths = newTally();
  const play = async (schedule: SagaSchedule): Promise<void> => {
    assert.deepEqual(await playSagas(schedule, deaths.add), []);
  };
  await fc.assert(fc.asyncProperty(schedulesOf(deathSites.length), play), { numRuns: SCHEDULES, seed });
  diedEverywhere(
    t,
    deathSites.map((site) => [site, deaths.of(site)] as const),
    SCHEDULES >= DEEP,
  );
});
