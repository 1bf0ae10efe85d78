/** A documented limit as two cases: at it, what is written is accepted; one beyond it is refused. */
import { accepted, type FirestoreCase, type of, refused } from './expect.ts';
import type { FirestoreWorld } from './world.ts';

export const write = ({ commit, doc }: FirestoreWorld, path: string, fields: object = {}) =>
  commit({ update: { name: doc(path), fields } });

type Make = ReturnType<typeof of>;
/** What is written at the limit, and what is written beyond it. */
export function limit(
  make: Make,
  what: string,
  source: string,
  at: Written,
  beyond: Written,
): readonly FirestoreCase[] {
  const [good, bad] = [at, beyond].map(([what]) => what);
  return [
    make(`${what}: ${good} is accepted`, source, async (world) => {
      await accepted(write(world, ...at[1]), `${what}: ${good}`);
    }),
    make(`${what}: ${bad} answers INVALID_ARGUMENT`, source, async (world) => {
      await refused(write(world, ...beyond[1]), 'INVALID_ARGUMENT', `${what}: ${bad}`);
    }),
  ];
}
export type Written = readonly [what: string, write: readonly [path: string, fields?: object]];
