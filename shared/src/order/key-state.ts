/**
 * What is remembered about one ordered stream of one consumer, and how a change is applied to it. Pure: the stores
 * share it, so a key means the same in memory and in Firestore.
 *
 * All times are milliseconds since the epoch on the store's clock; a worker's own wall clock decides nothing.
 */
import { addRange, type Range } from './skipped-ranges.ts';

export type KeyState = Readonly<{
  /** The highest number that is done; everything up to it is done or skipped. */
  last: number;
  /** The first epoch that this key saw, or null while no message named one. */
  epoch: string | null;
  /** Who works on the key, and until when. Still set after `untilMs`: its owner died or lost the store. */
  lease: Readonly<{ owner: string; untilMs: number }> | null;
  /** Failures of the number after `last`, and takeovers of an expired lease, since the last progress. */
  attempts: number;
  /** The head is not tried before this; 0 when it never failed. */
  nextTryAt: number;
  /** Since when something waits behind a number that has not come; belongs to `gapAt`. */
  waitingSince: number | null;
  /** The value of `last` at which the gap of `waitingSince` was seen: another one is another gap. */
  gapAt: number | null;
  /** When somebody last looked for the missing numbers of this gap at their publisher; null for a gap that is new. */
  repairedAt: number | null;
  /** When somebody must look at this key again; null when nothing is left to do. The one thing a sweep looks for. */
  readyAt: number | null;
  /** The identities of the numbers that are started without being stored; kept until `last` passes all of them. */
  run: Run | null;
  /** Set while the stream stands still at the number after `last`, until somebody resumes or skips it. */
  halted: Halt | null;
  /** Ranges, both ends included, that were given up; a message inside one is a late arrival. */
  skipped: readonly Range[];
  /** Content hashes of the last numbers done, oldest first; the last entry belongs to `last`. */
  ring: readonly string[];
  /** The first number that was not handed out when the key was first seen, where that is what the stream begins at. */
  opening?: number;
}>;

/** `hash` belongs to `number`; `behind`, where there is more than one, to the numbers that follow, with spaces between. */
export type Run = Readonly<{ number: number; hash: string; behind?: string }>;

/** Why a stream stands still: the error's code, the beginning of its text, and when. */
export type Halt = Readonly<{ code: string; text: string; atMs: number }>;

/** Fields to change; the store computes a lease's end from its own commit time. */
export type KeyPatch = Readonly<
  Partial<Omit<KeyState, 'lease'>> & { lease?: Readonly<{ owner: string; lengthMs: number }> | null }
>;

/** How many content hashes a key remembers: a second content under an older number is taken for a duplicate. */
const RING_SIZE = 100;

/** A key that nobody has written yet; `start` is the first number of the stream. */
export const freshKey = (start: number): KeyState => ({
  last: start - 1,
  epoch: null,
  lease: null,
  attempts: 0,
  nextTryAt: 0,
  waitingSince: null,
  gapAt: null,
  repairedAt: null,
  readyAt: null,
  run: null,
  halted: null,
  skipped: [],
  ring: [],
});

/** `state` after `patch` was committed at `nowMs`. */
export function patched(state: KeyState, patch: KeyPatch, nowMs: number): KeyState {
  const { lease, ...fields } = patch;
  const merged = { ...state, ...fields };
  if (lease === undefined) return merged;
  return { ...merged, lease: lease && { owner: lease.owner, untilMs: nowMs + lease.lengthMs } };
}

/** What moving the pointer over `hashes` (of last + 1, last + 2, …) writes. */
export function progress(state: KeyState, hashes: readonly string[]): KeyPatch {
  const last = state.last + hashes.length;
  return {
    last,
    ring: [...state.ring, ...hashes].slice(-RING_SIZE),
    attempts: 0,
    nextTryAt: 0,
    // The identities of direct runs outlive their failures, until the pointer passes them.
    ...(state.run !== null && state.run.number + hashesOf(state.run).length <= last + 1 && { run: null }),
  };
}

/**
 * The identities from `number` on, the one after `last`, when it and as many as `hashes` has are started. Those of the
 * numbers behind them that were started before stay: a crash may have kept them from being counted as done.
 */
export function startedRun({ run }: KeyState, number: number, hashes: readonly string[]): Run {
  const before = run === null ? [] : hashesOf(run).slice(Math.max(0, number + hashes.length - run.number));
  const [hash = '', ...behind] = [...hashes, ...before];
  return { number, hash, ...(behind.length > 0 && { behind: behind.join(' ') }) };
}

const hashesOf = ({ hash, behind }: Run): readonly string[] => [
  hash,
  ...(behind === undefined ? [] : behind.split(' ')),
];

/** The identity of a number that was started without being stored, or undefined where none was. */
export const runHash = ({ run }: KeyState, number: number): string | undefined =>
  run === null || number < run.number ? undefined : hashesOf(run)[number - run.number];

/** Nothing is known to wait behind a number that has not come. */
export const NO_GAP = { waitingSince: null, gapAt: null, repairedAt: null } as const;

/** What moving the pointer to `to` without running anything writes: the numbers on the way are given up. */
export function givingUp(state: KeyState, to: number): KeyPatch {
  const unknown = Array.from({ length: Math.min(to - state.last, RING_SIZE) }, () => '');
  return {
    ...progress({ ...state, last: to - unknown.length }, unknown),
    skipped: addRange(state.skipped, { from: state.last + 1, to }),
  };
}

/** The content hash of a number that is done, or undefined when it is no longer remembered. */
export function doneHash(state: KeyState, number: number): string | undefined {
  const hash = state.ring[state.ring.length - 1 - (state.last - number)];
  return hash === '' ? undefined : hash;
}

export const isSkipped = (state: KeyState, number: number): boolean =>
  state.skipped.some(({ from, to }) => from <= number && number <= to);

export const hasLiveLease = (state: KeyState, nowMs: number): boolean =>
  state.lease !== null && nowMs < state.lease.untilMs;

/**
 * Nobody works on it, and nothing is held for it: whoever lets go of a key looks at what is held and opens a gap for it,
 * and so does whoever holds something for a key that is let go of.
 */
export const isEmpty = (state: KeyState): boolean =>
  isIdle(state) && state.waitingSince === null && state.nextTryAt === 0;

/** Nobody works on it and nothing is due: the next number may run without being stored. */
export const isIdle = (state: KeyState): boolean =>
  state.lease === null && state.readyAt === null && state.halted === null;
