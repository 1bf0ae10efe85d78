/**
 * Locks on what queries would return. Owners that looked at one range share it; a change that would alter it waits for
 * all of them, so no phantom appears. Two that looked at the same range and both want to write into it meet at the
 * commit, where the younger must give way.
 */
import type { LockRules, Owner, Waiting } from './lock-types.ts';
import { reachersOf } from './wait-graph.ts';

export type RangeLocks<R, C> = Readonly<{
  /** Adds to the request's `ahead` each owner that waits, since before it, to change its range. */
  block(request: Waiting<R, C>): void;
  /** Adds to the request's `holders` those whose ranges its planned changes would alter. */
  blockChanges(request: Waiting<R, C>): void;
  /** Gives the owner a share of the range. An owner that waits to change it waits for this one from now on. */
  hold(owner: Owner, range: R): void;
  free(owner: Owner): void;
}>;

export function rangeLocks<R, C>(
  rules: LockRules<R, C>,
  waiting: ReadonlySet<Waiting<R, C>>,
): RangeLocks<R, C> {
  const held = new Map<Owner, R[]>();
  const wouldAlter = ({ changes }: Waiting<R, C>, range: R): boolean =>
    changes.some((change) => rules.alters(change, range));

  return {
    block({ owner, attempt, number, ahead }) {
      const { range } = attempt;
      if (range === undefined) return;
      const waitsForIt = reachersOf(owner);
      for (const other of waiting) {
        if (other.number >= number || other.owner === owner || !wouldAlter(other, range)) continue;
        if (!waitsForIt(other.owner)) ahead.add(other.owner);
      }
    },
    blockChanges(request) {
      const { owner, holders } = request;
      if (request.changes.length === 0) return;
      for (const [holder, ranges] of held) {
        if (holder !== owner && ranges.some((range) => wouldAlter(request, range))) holders.add(holder);
      }
    },
    hold(owner, range) {
      held.set(owner, [...(held.get(owner) ?? []), range]);
      for (const other of waiting) {
        if (other.owner !== owner && wouldAlter(other, range)) other.holders.add(owner);
      }
    },
    free: (owner) => held.delete(owner),
  };
}
