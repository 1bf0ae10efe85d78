/**
 * Whether the deliveries of a key come in their order, as far as this process can tell while somebody in it works on
 * the key. Bookkeeping in memory: a wrong guess costs a wait, or a message that is stored without need.
 */

export type Reach = Readonly<{
  /** Answers whether it is near enough to wait. */
  came(number: number): boolean;
  /** Everything before `from` is done or being run, and everything before `next` is going to be. */
  goesTo(next: number, from: number): void;
  /** Nothing that has come is behind a number that has not. */
  isWhole(): boolean;
  size(): number;
  /** Whether more numbers have not come, before the last of those that wait, than wait. */
  isThin(waiting: number): boolean;
  /** All that have come follow one another from there on, and did so for a while. */
  isInOrder(): boolean;
}>;

/** So many in turn: in a stream that is shuffled there are moments without a hole, and each would cost a wait. */
const IN_TURN = 20;
/** Fewer say nothing about a stream. */
const LEAST_WAITING = 8;
/** What is beyond is stored, and says nothing about the others: one stray number is no shuffled stream. */
const FURTHEST = 1_000;

export function reachOf(): Reach {
  /** Not before `first`. */
  const here = new Set<number>();
  let first = 0;
  let next = 0;
  let hole = 0;
  let farthest = 0;
  let inTurn = 0;
  const extend = (): void => {
    while (here.has(hole)) hole += 1;
  };
  return {
    came(number) {
      if (number < first || number > next + FURTHEST) return false;
      here.add(number);
      farthest = Math.max(farthest, number);
      extend();
      inTurn = farthest < hole ? inTurn + 1 : 0;
      return true;
    },
    goesTo(to, from) {
      // `from` may be before `first`: somebody has lost the key with what he had run of it.
      for (const number of from > first ? here : []) if (number < from) here.delete(number);
      first = from;
      next = to;
      hole = to;
      extend();
    },
    isWhole: () => farthest < hole,
    size: () => here.size,
    isThin(waiting) {
      if (waiting < LEAST_WAITING) return false;
      let missing = 0;
      for (let number = hole; number < farthest && missing <= waiting; number += 1) {
        if (!here.has(number)) missing += 1;
      }
      return missing > waiting;
    },
    isInOrder: () => farthest < hole && inTurn >= IN_TURN,
  };
}

/** Keys that were left at a hole, and of each the numbers that wait behind it: 10 MB at most. */
const MOST_KEYS = 1_000;
const MOST_NUMBERS = 100;

export type Left = Readonly<{
  leave(id: string, reach: Reach): void;
  /** As it was left, once. */
  take(id: string): Reach | undefined;
  came(id: string, number: number): void;
}>;

/**
 * What is known of keys that nobody works on: whoever fills the hole begins with a drain, and what comes beside it is
 * stored.
 */
export function leftKeys(): Left {
  const keys = new Map<string, Reach>();
  return {
    leave(id, reach) {
      keys.delete(id);
      if (reach.isWhole()) return;
      keys.set(id, reach.size() > MOST_NUMBERS ? reachOf() : reach);
      const [oldest] = keys.keys();
      if (keys.size > MOST_KEYS && oldest !== undefined) keys.delete(oldest);
    },
    take(id) {
      const reach = keys.get(id);
      keys.delete(id);
      return reach;
    },
    came(id, number) {
      const reach = keys.get(id);
      if (reach !== undefined && reach.size() < MOST_NUMBERS) reach.came(number);
    },
  };
}

/** Fewer pieces are run sooner than stored. */
const LEAST_PIECES = 3;

/**
 * Whether numbers that wait lie so much between others, which are stored, that running them takes a commit for every few:
 * they are in several pieces of less than four each.
 */
export function isMixed(waiting: ReadonlyMap<number, unknown>): boolean {
  let pieces = 0;
  for (const number of waiting.keys()) if (!waiting.has(number - 1)) pieces += 1;
  return pieces >= LEAST_PIECES && waiting.size < pieces * 4;
}
