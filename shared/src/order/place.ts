/**
 * Where an arriving number belongs, judged from the key as it was read. Pure.
 */
import { PermanentError } from '../errors.ts';
import { doneHash, hasLiveLease, isIdle, isSkipped, type KeyState, runHash } from './key-state.ts';

export type Arrival = Readonly<{ key: string; number: number; hash: string; epoch: string | undefined }>;

export type Place =
  /** It can never run: the message goes to the dead letters. */
  | Readonly<{ kind: 'refused'; error: PermanentError }>
  /** Done already, with the same content. */
  | Readonly<{ kind: 'stale' }>
  /** The next number of an idle key: it runs without being stored. */
  | Readonly<{ kind: 'direct' }>
  | Readonly<{ kind: 'hold' }>;

export function placeOf(state: KeyState, arrival: Arrival, maxAhead: number): Place {
  const { number, hash, epoch } = arrival;
  // First: under another counter the number says nothing, so comparing it would be guessing.
  if (state.epoch !== null && epoch !== undefined && epoch !== state.epoch) {
    return refused(
      'EPOCH_MISMATCH',
      `${named(arrival)} has sequenceEpoch ${JSON.stringify(epoch)}, but this stream began with ${JSON.stringify(state.epoch)}: its counter was reset or replaced`,
    );
  }
  if (isSkipped(state, number)) {
    return refused('LATE_ARRIVAL', `${named(arrival)} came after the stream had gone on without it`);
  }
  if (number <= state.last) {
    const done = doneHash(state, number);
    return done === undefined || done === hash
      ? { kind: 'stale' }
      : { kind: 'refused', error: conflict(arrival) };
  }
  if (number > state.last + maxAhead) {
    return refused(
      'SEQUENCE_TOO_FAR_AHEAD',
      `${named(arrival)} is ${number - state.last} beyond the last number done, ${state.last}; accepted: at most ${maxAhead}`,
    );
  }
  // A number that was started without being stored has no document; its identity is in the key, so that a second
  // content cannot pass for it, and the first one is not refused when it comes back.
  const started = runHash(state, number);
  if (started !== undefined && started !== hash) return { kind: 'refused', error: conflict(arrival) };
  return number === state.last + 1 && isIdle(state) ? { kind: 'direct' } : { kind: 'hold' };
}

/**
 * Whether a delivery may drain the key. It never takes over an expired lease and never runs a head that has failed:
 * a head that kills its process would otherwise use up the delivery attempts of innocent messages. The sweep, which
 * has no dead letter, does both.
 */
export const mayDrain = (state: KeyState, nowMs: number): boolean =>
  state.lease === null && state.attempts === 0 && isDue(state, nowMs);

export const isDue = (state: KeyState, nowMs: number): boolean =>
  state.halted === null && state.readyAt !== null && state.readyAt <= nowMs && state.nextTryAt <= nowMs;

/** When somebody else should look at a key that a delivery may not drain; undefined when nobody needs to. */
export function wakeAt(state: KeyState, nowMs: number): number | undefined {
  if (hasLiveLease(state, nowMs) || state.halted !== null) return undefined;
  if (state.lease !== null) return nowMs;
  return state.attempts > 0 && state.readyAt !== null ? Math.max(nowMs, state.nextTryAt) : undefined;
}

export const conflict = (arrival: Arrival): PermanentError =>
  new PermanentError('SEQUENCE_CONFLICT', `${named(arrival)} came before with other content`);

const named = (arrival: Arrival): string =>
  `sequence ${arrival.number} of sequenceKey ${JSON.stringify(arrival.key.slice(0, 60))}`;

const refused = (code: string, message: string): Place => ({
  kind: 'refused',
  error: new PermanentError(code, message),
});
