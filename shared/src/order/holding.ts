/**
 * The decision that stores what may not run yet. Pure, as `decisions.ts` are: it may be called again after its commit
 * was applied and the reply lost, and then finds what it stored.
 */
import { type KeyPatch, type KeyState, patched } from './key-state.ts';
import type { Decision, HeldMessage } from './order-store.ts';
import { type Arrival, placeOf } from './place.ts';

type Decide<Result> = (state: KeyState, held: readonly HeldMessage[], nowMs: number) => Decision<Result>;

export type HoldResult =
  /** The key has changed: the arrival is judged again from the start. */
  | Readonly<{ kind: 'again' }>
  | Readonly<{ kind: 'conflict' }>
  /** It is stored. `state` and `nowMs` are what the transaction saw. */
  | Readonly<{ kind: 'held'; state: KeyState; nowMs: number; stored: HeldMessage }>;

export type Held = Readonly<{ arrival: Arrival; message: HeldMessage }>;

/**
 * Stores numbers that may not run yet, of one key. Looking at the key and storing are one transaction: a head that was stored
 * beside a key that became idle in between would wait for nobody.
 */
export function holding(items: readonly Held[], maxAhead: number): Decide<readonly HoldResult[]> {
  return (state, held, nowMs) => {
    let patch: KeyPatch = {};
    const create: HeldMessage[] = [];
    const result = items.map(({ arrival, message }) => {
      const present = [...held, ...create].find(({ number }) => number === arrival.number);
      const one = holdingOne(patched(state, patch, nowMs), present, arrival, message, maxAhead, nowMs);
      patch = { ...patch, ...one.patch };
      create.push(...(one.create ?? []));
      return one.result;
    });
    return { result, create, ...(Object.keys(patch).length > 0 && { patch }) };
  };
}

function holdingOne(
  state: KeyState,
  present: HeldMessage | undefined,
  arrival: Arrival,
  message: HeldMessage,
  maxAhead: number,
  nowMs: number,
): Decision<HoldResult> {
  if (placeOf(state, arrival, maxAhead).kind !== 'hold') return { result: { kind: 'again' } };
  if (present !== undefined) {
    return {
      result:
        present.hash === arrival.hash
          ? { kind: 'held', state, nowMs, stored: present }
          : { kind: 'conflict' },
    };
  }
  // A stream that stands still waits for somebody to resume it, and one whose head has failed for that, not for a number.
  const waitsForNumber = state.halted === null && state.nextTryAt === 0;
  const opensGap = waitsForNumber && state.waitingSince === null && isNoticed(state, arrival);
  const patch: KeyPatch = {
    ...(opensGap && { waitingSince: nowMs, gapAt: state.last, repairedAt: null }),
    ...firstEpoch(state, arrival),
  };
  return {
    result: { kind: 'held', state, nowMs, stored: message },
    create: [message],
    patch,
  };
}

/**
 * What is held behind a missing number, and the first thing that is held under a lease, a copy of what runs too: whoever
 * has the lease learns by the key's version alone that there is something to look for.
 */
const isNoticed = (state: KeyState, { number }: Arrival): boolean =>
  number > state.last + 1 || state.lease !== null;

/** The key keeps the first epoch that it sees. */
export const firstEpoch = (state: KeyState, arrival: Arrival): KeyPatch =>
  state.epoch === null && arrival.epoch !== undefined ? { epoch: arrival.epoch } : {};
