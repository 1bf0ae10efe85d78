import { catchMutants } from '../engine/catch-mutants.ts';
import { violations } from './model.ts';
import { mutants } from './mutants.ts';
import { programs } from './programs.ts';
import { runProgram, type Way } from './run-program.ts';

const asBuilt: Way = {};

catchMutants(
  {
    asBuilt,
    mutants,
    schedules: programs,
    play: async (way: Way, program) =>
      violations(await runProgram(way, program), program).map((invariant) => ({ invariant })),
  },
  { seed: 20_260_201, numRuns: 300 },
);
