/**
 * Which arrivals in hand may run in a row, without being stored, once `last` is before the first of them. Pure.
 *
 * Each is judged as if it had come to this key alone, and none runs past a number that is held: that one came first. Their
 * identities are written before any of them is started, as that of a single one is, so that after a crash no other
 * content passes for them.
 */
import { firstEpoch } from './holding.ts';
import { type KeyPatch, type KeyState, startedRun } from './key-state.ts';
import type { HeldMessage } from './order-store.ts';
import { type Arrival, placeOf } from './place.ts';

/** The beginning of `line`, whose numbers follow one another, that may run. `first`: the first held message after `last`. */
export function admittedOf(
  state: KeyState,
  line: readonly Arrival[],
  first: HeldMessage | undefined,
): readonly Arrival[] {
  // A head that has failed, or killed its process, runs alone.
  if (state.attempts > 0 || state.halted !== null) return [];
  let epoch = state.epoch;
  const end = line.findIndex((arrival, index) => {
    if (arrival.number !== state.last + 1 + index) return true;
    if (first !== undefined && arrival.number >= first.number) return true;
    const place = placeOf({ ...state, epoch }, arrival, Number.POSITIVE_INFINITY);
    epoch ??= arrival.epoch ?? null;
    return place.kind !== 'hold' && place.kind !== 'direct';
  });
  return end === -1 ? line : line.slice(0, end);
}

/** What is written before they are started. `admitted` is not empty. */
export function startingOf(state: KeyState, admitted: readonly Arrival[]): KeyPatch {
  const [head] = admitted;
  if (head === undefined) return {};
  const named = admitted.find(({ epoch }) => epoch !== undefined) ?? head;
  return {
    run: startedRun(
      state,
      head.number,
      admitted.map(({ hash }) => hash),
    ),
    ...firstEpoch(state, named),
  };
}
