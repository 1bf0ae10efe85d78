import { catchMutants } from '../testing/catch-mutants.ts';
import { mutants } from './testing/mutants.ts';
import { asBuilt, play } from './testing/play.ts';
import { schedules } from './testing/schedule.ts';

catchMutants({ asBuilt, mutants, schedules, play });
