/**
 * The entries of one order, sorted, in runs of a bounded length. A write moves the pointers of one run; in one array it
 * would move all that stand behind it, and a queue that is emptied from its front would cost the square of its length.
 */
import { compareEntries, type Entry, firstNotBefore, type Order } from './entries.ts';

export type SortedEntries = Readonly<{
  /** From the first one that is not before, where all that are stand in front. Valid until the next change. */
  from(isBefore: (entry: Entry) => boolean): Iterable<Entry>;
  insert(entry: Entry): void;
  /** The entry must be there. */
  remove(entry: Entry): void;
  /** How many places the next write moves at most. */
  movedAtMost(): number;
}>;

/** Halved beyond this: 4 KiB of pointers to move, and 400 runs at most for 100,000 entries that are added one by one. */
const LONGEST = 512;

/** `sorted` is in the order already. */
export function sortedEntries(
  orders: readonly Order[],
  sorted: readonly Entry[],
  longest = LONGEST,
): SortedEntries {
  const half = Math.ceil(longest / 2);
  // None is empty. Short ones are not joined: there are never more than insertions have made.
  const runs: Entry[][] = [];
  for (let at = 0; at < sorted.length; at += half) runs.push(sorted.slice(at, at + half));

  const isBeforeOf =
    (entry: Entry) =>
    (other: Entry): boolean =>
      compareEntries(other, entry, orders) < 0;

  /** The run with the first entry that is not before; the number of runs where there is none. */
  const runOf = (isBefore: (entry: Entry) => boolean): number =>
    firstNotBefore(runs, (run) => {
      const last = run.at(-1);
      return last !== undefined && isBefore(last);
    });

  return {
    *from(isBefore) {
      const first = runOf(isBefore);
      for (let i = first; i < runs.length; i++) {
        const run = runs[i] ?? [];
        yield* i === first ? run.slice(firstNotBefore(run, isBefore)) : run;
      }
    },
    insert(entry) {
      const isBefore = isBeforeOf(entry);
      const number = Math.min(runOf(isBefore), runs.length - 1);
      const run = runs[number];
      if (run === undefined) {
        runs.push([entry]);
        return;
      }
      run.splice(firstNotBefore(run, isBefore), 0, entry);
      if (run.length > longest) runs.splice(number + 1, 0, run.splice(half));
    },
    remove(entry) {
      const isBefore = isBeforeOf(entry);
      const number = runOf(isBefore);
      const run = runs[number];
      run?.splice(firstNotBefore(run, isBefore), 1);
      if (run?.length === 0) runs.splice(number, 1);
    },
    movedAtMost: () => runs.reduce((most, run) => Math.max(most, run.length), runs.length),
  };
}
