/**
 * The decisions by which a stream goes on without a number, or after it has stood still. Pure, as `decisions.ts` are:
 * each recognises its own work when its commit was applied and the reply lost.
 */
import { givingUp, isSkipped, type KeyPatch, type KeyState, NO_GAP } from './key-state.ts';
import type { Decision, HeldMessage } from './order-store.ts';

type Decide<Result> = (state: KeyState, held: readonly HeldMessage[], nowMs: number) => Decision<Result>;

/** The numbers that are missing before the first held one, both ends included. */
export type Gap = Readonly<{ from: number; to: number }>;

/** The gap in front of the first held message, if there is one and nobody is at work on the key. */
export function gapOf(state: KeyState, first: HeldMessage | undefined): Gap | undefined {
  if (first === undefined || state.lease !== null || state.halted !== null) return undefined;
  const gap = { from: state.last + 1, to: first.number - 1 };
  return gap.to < gap.from ? undefined : gap;
}

/** Whether the gap is as old as `timeoutMs`. Its age belongs to one value of `last`. */
const isOld = (state: KeyState, timeoutMs: number, nowMs: number): boolean =>
  state.waitingSince !== null && state.gapAt === state.last && state.waitingSince + timeoutMs <= nowMs;

/** Whether a repair may be tried: not again before the last one had its time to show. */
export const mayRepair = (state: KeyState, timeoutMs: number, nowMs: number): boolean =>
  isOld(state, timeoutMs, nowMs) && (state.repairedAt === null || state.repairedAt + timeoutMs <= nowMs);

/**
 * Gives up the missing numbers of a gap whose time is over, as far as `missing` goes. Reads the first held message
 * after `last`.
 */
export function skippingGap(timeoutMs: number, missing: Gap): Decide<Gap | undefined> {
  return (state, [first], nowMs) => {
    // Its own commit, whose reply was lost.
    if (state.last === missing.to && isSkipped(state, missing.to)) return { result: missing };
    const gap = gapOf(state, first);
    if (gap?.from !== missing.from || !mayRepair(state, timeoutMs, nowMs)) return { result: undefined };
    const given = { from: gap.from, to: Math.min(gap.to, missing.to) };
    return { result: given, patch: { ...givingUp(state, given.to), ...NO_GAP, readyAt: nowMs } };
  };
}

/** Remembers that the missing numbers were looked for, so that the next sweep does not do it again. */
export function markingRepair(missing: Gap): Decide<boolean> {
  return (state, [first], nowMs) => {
    const gap = gapOf(state, first);
    if (gap?.from !== missing.from) return { result: false };
    return { result: true, patch: { repairedAt: nowMs } };
  };
}

export type Resumed = 'resumed' | 'not halted' | 'unknown';

/** Lets a key that stands still go on with the number that it stands at. What is held runs before live traffic. */
export function resuming(known: boolean): Decide<Resumed> {
  return (state, _, nowMs) => {
    if (!known) return { result: 'unknown' };
    if (state.halted === null) return { result: 'not halted' };
    return { result: 'resumed', patch: goingOn(nowMs) };
  };
}

const goingOn = (nowMs: number): KeyPatch => ({
  halted: null,
  attempts: 0,
  nextTryAt: 0,
  readyAt: nowMs,
});

export type Skipped =
  | Readonly<{ kind: 'skipped'; from: number; to: number }>
  /** The stream has gone past it. */
  | Readonly<{ kind: 'passed' }>
  /** Somebody works on the key. */
  | Readonly<{ kind: 'busy' }>
  /** A message with this number waits, and will run: only poison is given up. */
  | Readonly<{ kind: 'held'; number: number }>
  /** The message at which the stream stands still needs its dead letter first. */
  | Readonly<{ kind: 'poison'; held: HeldMessage; halted: NonNullable<KeyState['halted']> }>;

/**
 * Gives up what the stream waits for, up to and with `number`: missing numbers, or the poison at which it stands
 * still. `buried` says which held message has its dead letter.
 */
export function skipping(number: number, buried: HeldMessage | undefined): Decide<Skipped> {
  return (state, [first], nowMs) => {
    if (number <= state.last) {
      // Also its own commit, whose reply was lost.
      return isSkipped(state, number)
        ? { result: { kind: 'skipped', from: number, to: number } }
        : { result: { kind: 'passed' } };
    }
    if (state.lease !== null) return { result: { kind: 'busy' } };
    const result = { kind: 'skipped', from: state.last + 1, to: number } as const;
    const patch = { ...givingUp(state, number), ...NO_GAP, ...goingOn(nowMs) };
    if (first === undefined || first.number > number) return { result, patch };
    const isPoison = first.number === number && number === state.last + 1 && state.halted !== null;
    if (!isPoison || state.halted === null) return { result: { kind: 'held', number: first.number } };
    if (buried?.hash !== first.hash) return { result: { kind: 'poison', held: first, halted: state.halted } };
    return { result, patch, remove: [number] };
  };
}
