/** A search for the engine's own test: each schedule is a death in a place named by its seed. */
import fc from 'fast-check';
import { asThread, type Runs, search } from '../search.ts';

await asThread<Runs & Readonly<{ breaks?: number }>>(({ breaks, ...runs }) =>
  search(
    fc.constant(runs.seed),
    async (seed, died) => {
      died(`seed ${seed}`);
      return seed === breaks ? [{ invariant: 'broken', text: `in seed ${seed}` }] : [];
    },
    runs,
  ),
);
