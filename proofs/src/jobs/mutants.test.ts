import { catchMutants } from '../engine/catch-mutants.ts';
import { mutants } from './mutants.ts';
import { asBuilt, play } from './play.ts';
import { schedules } from './schedule.ts';

/** Fewer than elsewhere: a schedule of jobs is long. */
catchMutants({ asBuilt, mutants, schedules, play }, { seed: 20_260_101, numRuns: 120 });
