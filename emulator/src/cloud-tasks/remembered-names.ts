/**
 * Names that may not be used again for a while after their owner is gone (tombstones).
 * Memory stays bounded by what was added within the time: older ones are dropped as new ones come.
 */
import type { Clock } from '../clock.ts';

export type RememberedNames = Readonly<{
  add(name: string): void;
  has(name: string): boolean;
  /** Those that are remembered, the oldest first, with when that ends in milliseconds since the epoch. */
  entries(): readonly (readonly [name: string, untilMs: number])[];
  /** The oldest first, before any is added. */
  restore(name: string, untilMs: number): void;
  clear(): void;
}>;

export function createRememberedNames(clock: Clock, forMs: number): RememberedNames {
  // A Map keeps the order of insertion, and all live equally long: the first is the oldest, but for what was restored
  // from a server that remembers for longer.
  const until = new Map<string, number>();
  // None ends before: a map whose first entries were deleted is slow to find the one that is now first.
  let firstEndMs = Number.POSITIVE_INFINITY;
  const remember = (name: string, end: number): void => {
    until.set(name, end);
    firstEndMs = Math.min(firstEndMs, end);
  };
  const dropExpired = (now: number): void => {
    if (now < firstEndMs) return;
    firstEndMs = Number.POSITIVE_INFINITY;
    for (const [name, end] of until) {
      if (end > now) {
        firstEndMs = end;
        return;
      }
      until.delete(name);
    }
  };
  return {
    add(name) {
      dropExpired(clock.now());
      until.delete(name);
      remember(name, clock.now() + forMs);
    },
    has: (name) => (until.get(name) ?? 0) > clock.now(),
    entries() {
      const now = clock.now();
      dropExpired(now);
      return [...until].filter(([, end]) => end > now);
    },
    restore: remember,
    clear: () => until.clear(),
  };
}
