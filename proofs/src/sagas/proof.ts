/**
 * The promises of sagas over a number of random programs, and how soon a mutant breaks one of them; in threads.
 */
import fc from 'fast-check';
import { asThread, type Runs, search, type Searched, searchInThreads } from '../engine/search.ts';
import { forgetful, type Mutant, mutants } from './mutants.ts';
import { deathSites, playSagas, type Way } from './play.ts';
import { calm, type SagaSchedule, schedulesOf } from './program.ts';
import type { Violation } from './promises.ts';

/** What is played: sagas as they are, a mutant by its name, or sagas whose records are lost. */
export type Task = Runs & Readonly<{ mutant?: string; forgets?: true }>;

/** The programs of each run of the tests. The seed is fixed, so that a count that is too small is no accident. */
export const PROGRAMS: Runs = { seed: 20_260_101, numRuns: 300 };

export const proveSagas = (task: Task): Promise<Searched> => searchInThreads(import.meta.url, task);

const schedules = schedulesOf(deathSites.length);

await asThread<Task>(({ mutant, forgets, ...runs }) => {
  const known = [...mutants, forgetful].find(({ name }) => name === mutant);
  if (known !== undefined) return firstBroken(known, runs);
  if (forgets) return search(schedules.map(calm), (schedule) => forgetting(schedule, { forgets }), runs);
  return search(schedules, (schedule, died) => playSagas(schedule, died), runs);
});

/** Without shrinking: it is enough to know in which program it was. */
async function firstBroken({ name, breaks, way }: Mutant, runs: Runs): Promise<Searched> {
  const programs = fc.sample(way.forgets ? schedules.map(calm) : schedules, runs);
  for (const [index, schedule] of programs.entries()) {
    const violations = way.forgets
      ? await forgetting(schedule, way)
      : await playSagas(schedule, () => {}, way);
    if (violations.some(({ invariant }) => invariant === breaks))
      return { failure: `${name}: "${breaks}" was broken by program ${index + 1}`, deaths: {} };
  }
  return { deaths: {} };
}

/** What is promised where a record is lost: a saga that ends is not wrong. It may stay parked for ever. */
async function forgetting(schedule: SagaSchedule, way: Way): Promise<readonly Violation[]> {
  const violations = await playSagas(schedule, () => {}, way);
  return violations.filter(({ invariant }) => invariant === 'all or nothing');
}
