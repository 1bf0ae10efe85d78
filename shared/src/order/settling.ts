/**
 * The decision that counts numbers as done that ran without being stored. Pure, as `decisions.ts` are: called again after
 * its commit was applied and the reply lost, it recognises its own work.
 */
import { type Found, gapBehind, isSafe } from './decisions.ts';
import { givingUp, type KeyPatch, type KeyState, NO_GAP, patched, progress } from './key-state.ts';
import { admittedOf, startingOf } from './line.ts';
import type { Decision, HeldMessage } from './order-store.ts';
import type { Arrival } from './place.ts';

type Decide<Result> = (state: KeyState, held: readonly HeldMessage[], nowMs: number) => Decision<Result>;

/** Numbers that ran one after the other, and the hashes of their contents: at least one. */
export type Stretch = Readonly<{ from: number; hashes: readonly string[] }>;

export type SettleOptions = Readonly<{
  /** Done (default), or given up and its dead letter published: a single one then. */
  as?: 'done' | 'given up';
  /** How many held messages are read (default 2). */
  limit?: number;
  /** Arrivals in hand behind the stretch, which keep the lease. Asked as late as can be. */
  line?: () => readonly Arrival[];
  /** The lease stays as it is, whatever is behind: the next number has been started already. */
  goesOn?: boolean;
}>;

export type SettleResult =
  | Readonly<{
      kind: 'done';
      /** `last` has passed this one; fewer than asked for where more copies were held than one look shows. */
      upTo: number;
      /** The lease is kept and renewed for these of the line. */
      admitted: readonly Arrival[];
      /** The lease is kept and renewed, because the next number is held, or the stretch is not at its end. */
      more: boolean;
      /** Undefined where nothing is known of it. */
      behind: Found | undefined;
      /** Copies that were held, now removed. */
      removed: readonly HeldMessage[];
      /** Held under a number that is done, with other content. */
      foreign: readonly number[];
    }>
  /** The lease is somebody else's. `safe`: the number is done, skipped or held, so its delivery may be acknowledged. */
  | Readonly<{ kind: 'lost'; safe: (number: number) => boolean }>;

/** A copy and the next, or the next two: those are the beginning of a drain, which need not read them again. */
export const SETTLE_LIMIT = 2;

/**
 * Moves `last` over the stretch, and lets the key go unless the next number is held or in hand. Reads the first held
 * messages from the stretch on: duplicates that were held while it ran, which are removed, and what is behind it.
 */
export function settling(
  owner: string,
  { from, hashes }: Stretch,
  leaseMs: number,
  { as = 'done', limit = SETTLE_LIMIT, line = () => [], goesOn = false }: SettleOptions = {},
): Decide<SettleResult> {
  return (state, held, nowMs) => {
    if (state.lease?.owner !== owner) {
      return { result: { kind: 'lost', safe: (number) => isSafe(state, held, number) } };
    }
    const end = from + hashes.length - 1;
    const own = held.filter(({ number }) => number <= end);
    // What is behind a copy that was the last one asked for was not looked at: it is left to another of these.
    const isSeen = own.length < limit;
    const upTo = isSeen ? end : (own.at(-1)?.number ?? end);
    // Cannot happen while the identities of direct runs stand in the key; kept rather than deleted if it does.
    const [removed, foreign] = [
      own.filter((copy) => copy.hash === hashes[copy.number - from]),
      own.filter((copy) => copy.hash !== hashes[copy.number - from]).map(({ number }) => number),
    ];
    const behind = isSeen
      ? { held: held.filter(({ number }) => number > end), limit: limit - own.length }
      : undefined;
    const isRepeat = state.last >= upTo;
    const moved: KeyPatch = isRepeat
      ? {}
      : as === 'done'
        ? progress(state, hashes.slice(state.last - from + 1, upTo - from + 1))
        : givingUp(state, upTo);
    const after = patched(state, moved, nowMs);
    const first = behind?.held[0];
    const admitted = isSeen && !goesOn ? admittedOf(after, line(), first) : [];
    const more = !isSeen || first?.number === end + 1 || (isRepeat && admitted.length === 0);
    const kept = { lease: { owner, lengthMs: leaseMs }, readyAt: nowMs + leaseMs };
    const patch: KeyPatch = {
      ...moved,
      ...(goesOn
        ? {}
        : admitted.length > 0
          ? { ...kept, ...startingOf(after, admitted), ...(first === undefined && NO_GAP) }
          : more
            ? kept
            : { lease: null, readyAt: null, ...gapBehind(after, first, nowMs) }),
    };
    return {
      result: { kind: 'done', upTo, admitted, more, behind, removed, foreign },
      ...(Object.keys(patch).length > 0 && { patch }),
      ...(removed.length > 0 && { remove: removed.map(({ number }) => number) }),
    };
  };
}
