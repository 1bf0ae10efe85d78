/**
 * What the protocol's transactions decide, as pure functions of what they read. Each may be called again after its
 * commit was applied and the reply lost, and then recognises its own work.
 */
import { type Halt, type KeyPatch, type KeyState, isSkipped, NO_GAP } from './key-state.ts';
import type { Decision, HeldMessage } from './order-store.ts';
import type { Arrival } from './place.ts';
import { admittedOf, startingOf } from './line.ts';
import { type Failure, headRetry } from './retry-policy.ts';

type Decide<Result> = (state: KeyState, held: readonly HeldMessage[], nowMs: number) => Decision<Result>;

/** The first held messages after `last`: at most `limit` were asked for. */
export type Found = Readonly<{ held: readonly HeldMessage[]; limit: number }>;

/** The lease is somebody else's. `safe`: the number is done, skipped or held, so the delivery may be acknowledged. */
type Lost = Readonly<{ kind: 'lost'; safe: boolean }>;

export type FailResult =
  /** The number is stored and will be tried again by a sweep. */
  | Readonly<{ kind: 'kept'; attempts: number; nextTryAt: number }>
  /** It is too large to be stored: only a redelivery brings it back. */
  | Readonly<{ kind: 'notKept'; attempts: number }>
  | Readonly<{ kind: 'conflict' }>
  | Lost;

/**
 * Lets go of a number that ran without being stored and failed. It is stored now (`message` is undefined when it is
 * too large), so that its retries do not depend on redeliveries: with a native dead-letter policy on the subscription
 * those run out, and the number would be missing from the stream for good. With `halt` the key stands still from then on.
 * `attemptsBefore`: without this failure. The key may have counted it already, in a commit whose reply was lost.
 */
export function failing(
  owner: string,
  attemptsBefore: number,
  arrival: Arrival,
  message: HeldMessage | undefined,
  failure: Failure,
  pauses: Readonly<{ retryMinMs: number; retryMaxMs: number }>,
  halt?: Omit<Halt, 'atMs'>,
): Decide<FailResult> {
  return (state, held, nowMs) => {
    if (state.lease?.owner !== owner)
      return { result: lost(state, held, arrival.number, isSkipped(state, arrival.number)) };
    const { attempts, pauseMs } = headRetry(pauses, attemptsBefore, failure);
    const nextTryAt = nowMs + pauseMs;
    const waiting =
      halt === undefined ? retrying(attempts, nextTryAt) : halting(attempts, { ...halt, atMs: nowMs });
    const copy = held.find(({ number }) => number === arrival.number);
    if (copy !== undefined && copy.hash !== arrival.hash) {
      return { result: { kind: 'conflict' }, patch: waiting };
    }
    if (copy !== undefined) return { result: { kind: 'kept', attempts, nextTryAt }, patch: waiting };
    if (message === undefined && halt !== undefined) {
      return { result: { kind: 'notKept', attempts }, patch: waiting };
    }
    if (message === undefined) {
      const idle = {
        lease: null,
        attempts,
        nextTryAt: 0,
        readyAt: null,
        ...gapBehind(state, held[0], nowMs),
      };
      return { result: { kind: 'notKept', attempts }, patch: idle };
    }
    return { result: { kind: 'kept', attempts, nextTryAt }, patch: waiting, create: [message] };
  };
}

/** A key whose head is held and has failed: it is due at `nextTryAt`, and no gap is counted. */
export const retrying = (attempts: number, nextTryAt: number): KeyPatch => ({
  lease: null,
  attempts,
  nextTryAt,
  readyAt: nextTryAt,
  ...NO_GAP,
});

/** A key that stands still: nobody has it, nothing is due, and no gap is counted. */
export const halting = (attempts: number, halted: Halt): KeyPatch => ({
  lease: null,
  attempts,
  nextTryAt: 0,
  readyAt: null,
  ...NO_GAP,
  halted,
});

export type ReleaseResult =
  | Readonly<{ kind: 'next' | 'gap' | 'empty' | 'lost' }>
  /** The lease is kept and renewed for these of the line. `isEmpty`: nothing is held. */
  | Readonly<{ kind: 'line'; admitted: readonly Arrival[]; isEmpty: boolean }>;

/**
 * Lets go of a key with nothing more to run. Reads the first held message after `last`, whatever its number: if it is
 * the next one the lease is kept; a higher one is a gap, whose age is kept if it is the same gap. `line`: arrivals in
 * hand from the next number on, asked as late as can be, which keep the lease too.
 */
export function releasing(
  owner: string,
  leaseMs: number,
  line: () => readonly Arrival[] = () => [],
): Decide<ReleaseResult> {
  return (state, [first], nowMs) => {
    if (state.lease?.owner !== owner) return { result: { kind: 'lost' } };
    const kept = { lease: { owner, lengthMs: leaseMs }, readyAt: nowMs + leaseMs };
    if (first?.number === state.last + 1) return { result: { kind: 'next' }, patch: kept };
    const admitted = admittedOf(state, line(), first);
    if (admitted.length > 0) {
      const isEmpty = first === undefined;
      const patch = { ...kept, ...startingOf(state, admitted), ...(isEmpty && NO_GAP) };
      return { result: { kind: 'line', admitted, isEmpty }, patch };
    }
    return {
      result: { kind: first === undefined ? 'empty' : 'gap' },
      patch: { lease: null, readyAt: null, ...gapBehind(state, first, nowMs) },
    };
  };
}

export function gapBehind(state: KeyState, first: HeldMessage | undefined, nowMs: number): KeyPatch {
  if (first === undefined) return NO_GAP;
  const sameGap = state.gapAt === state.last && state.waitingSince !== null;
  return sameGap ? {} : { waitingSince: nowMs, gapAt: state.last, repairedAt: null };
}

/**
 * `unrun`: the number was given up meanwhile and this run of it failed. Acknowledging it would lose the message; its
 * next delivery is a late arrival.
 */
const lost = (state: KeyState, held: readonly HeldMessage[], number: number, unrun = false): Lost => ({
  kind: 'lost',
  safe: isSafe(state, held, number, unrun),
});

export const isSafe = (
  state: KeyState,
  held: readonly HeldMessage[],
  number: number,
  unrun = false,
): boolean => (state.last >= number && !unrun) || held.some((one) => one.number === number);
