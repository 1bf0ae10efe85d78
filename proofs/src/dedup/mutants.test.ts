import { catchMutants } from '../engine/catch-mutants.ts';
import { mutants } from './mutants.ts';
import { asBuilt, play } from './play.ts';
import { schedules } from './schedule.ts';

catchMutants({ asBuilt, mutants, schedules, play });
