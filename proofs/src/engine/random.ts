/**
 * A small seeded generator (mulberry32), so that one number names a whole schedule.
 */
export type Random = Readonly<{
  /** True with this probability. */
  chance(share: number): boolean;
  /** A whole number from 0, below `limit`. */
  upTo(limit: number): number;
  pick<Item>(items: readonly Item[]): Item;
}>;

export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const upTo = (limit: number): number => Math.floor(next() * limit);
  return {
    chance: (share) => next() < share,
    upTo,
    pick<Item>(items: readonly Item[]) {
      return items[upTo(items.length)] as Item;
    },
  };
}
