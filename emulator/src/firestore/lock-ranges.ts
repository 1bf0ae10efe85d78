/**
 * Locks on what queries would return. Overlapping ranges exclude each other among transactions, so that two
 * who looked at the same range and both want to write into it meet at the look and not at the commit, where
 * one would have to abort. A change that would alter a held range waits for its holder: no phantom appears.
 */
import type { LockRules, Owner, Waiting } from './lock-types.ts';
import { reaches } from './wait-graph.ts';

export type RangeLocks<R, C> = Readonly<{
  /** Adds to the request's `holders` and `ahead` whoever stands between it and its range. */
  block(request: Waiting<R, C>): void;
  /** Adds to the request's `holders` those whose ranges its planned changes would alter. */
  blockChanges(request: Waiting<R, C>): void;
  /** Gives the owner the range. Whoever waits for an overlapping one waits for this owner from now on. */
  hold(owner: Owner, range: R): void;
  free(owner: Owner): void;
}>;

export function rangeLocks<R, C>(
  rules: LockRules<R, C>,
  waiting: ReadonlySet<Waiting<R, C>>,
): RangeLocks<R, C> {
  const held = new Map<Owner, R[]>();

  const stands = (other: Waiting<R, C>, range: R): boolean => {
    const theirs = other.attempt.range;
    if (theirs !== undefined && rules.overlap(theirs, range)) return true;
    return other.changes.some((change) => rules.alters(change, range));
  };

  return {
    block(request) {
      const { owner, attempt, number } = request;
      const { range } = attempt;
      if (range === undefined) return;
      for (const [holder, ranges] of held) {
        if (holder !== owner && ranges.some((other) => rules.overlap(other, range)))
          request.holders.add(holder);
      }
      for (const other of waiting) {
        if (other.number >= number || other.owner === owner || !stands(other, range)) continue;
        if (!reaches(other.owner, owner)) request.ahead.add(other.owner);
      }
    },
    blockChanges({ owner, changes, holders }) {
      for (const [holder, ranges] of held) {
        if (holder === owner) continue;
        const altered = ranges.some((range) => changes.some((change) => rules.alters(change, range)));
        if (altered) holders.add(holder);
      }
    },
    hold(owner, range) {
      held.set(owner, [...(held.get(owner) ?? []), range]);
      for (const other of waiting) {
        if (other.owner !== owner && stands(other, range)) other.holders.add(owner);
      }
    },
    free: (owner) => held.delete(owner),
  };
}
