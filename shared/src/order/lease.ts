/**
 * Leases on a key: taking one, and committing under it.
 *
 * The store judges a lease from its own commit time; the worker counts it from the sending of the request, so the
 * worker always believes in it for less time than the store does. Whatever commits under the lease names the key
 * document's version: after a theft nothing of the old owner is written any more.
 */
import { sleep } from '../clock.ts';
import { firstState } from './counter-start.ts';
import { type KeyPatch, type KeyState, freshKey, isEmpty, patched } from './key-state.ts';
import type { Ports } from './options.ts';
import type { KeyRef } from './order-store.ts';

/** A key as it was read, with the difference between the store's clock and this process's monotonic one. */
export type Seen = Readonly<{
  state: KeyState;
  version: string | undefined;
  nowMs: number;
  storeOffsetMs: number;
}>;

export type Lease = Readonly<{
  owner: string;
  /** The commit time of the take in microseconds: greater for every later lease of the key. */
  token: string;
  state: KeyState;
  version: string;
  /** Monotonic: no number is started after this. */
  deadline: number;
  storeOffsetMs: number;
  /**
   * Whether nothing is held for the key. `seen`: not at `version`, which changes as soon as something is; `state` is what
   * stands there. `unseen`: not at the commit that has kept the lease, whose version nobody knows yet.
   */
  empty: 'seen' | 'unseen' | 'unknown';
}>;

/** Other writers of the key (a holder's mark) may come first a few times; more than this is left to the next delivery. */
const ROUNDS = 5;

export async function look(ports: Ports, ref: KeyRef): Promise<Seen> {
  const view = await ports.store.read(ref);
  const storeOffsetMs = view.nowMs - ports.clock.monotonic();
  return {
    state: view.state ?? (await firstState(ports, ref)),
    version: view.version,
    nowMs: view.nowMs,
    storeOffsetMs,
  };
}

export const storeTime = (ports: Ports, at: Readonly<{ storeOffsetMs: number }>): number =>
  ports.clock.monotonic() + at.storeOffsetMs;

/**
 * Takes the key as it was seen, or answers undefined when somebody else changed it. `readyAt` is always written with
 * a lease: if this process dies, that is how a sweep finds the key.
 */
export async function take(
  ports: Ports,
  ref: KeyRef,
  seen: Seen,
  extra: KeyPatch,
): Promise<Lease | undefined> {
  const owner = ports.newId();
  const sentAt = ports.clock.monotonic();
  const patch: KeyPatch = {
    ...extra,
    lease: { owner, lengthMs: ports.leaseMs },
    readyAt: storeTime(ports, seen) + ports.leaseMs,
  };
  const deadline = sentAt + ports.leaseMs;
  const version = await ports.store.write(ref, { version: seen.version, base: seen.state }, patch);
  const wasEmpty = isEmpty(seen.state);
  if (version !== undefined) {
    const state = patched(seen.state, patch, storeTime(ports, seen));
    const { storeOffsetMs } = seen;
    const empty = wasEmpty ? 'seen' : 'unknown';
    return { owner, token: version, state, version, deadline, storeOffsetMs, empty };
  }
  // The client may have repeated a request whose reply was lost: then the owner that is in the way is this one.
  const now = await look(ports, ref);
  if (now.version === undefined || now.state.lease?.owner !== owner) return undefined;
  const empty = wasEmpty && now.state.waitingSince === null ? 'seen' : 'unknown';
  return { owner, token: now.version, ...now, version: now.version, deadline, empty };
}

/**
 * The lease with the key as it is after a transaction that found nothing held. One read, which may go beside the handler: it
 * decides nothing, and whatever it does not find leaves the rest to another transaction.
 */
export async function seenAgain(ports: Ports, ref: KeyRef, lease: Lease): Promise<Lease> {
  const now = await look(ports, ref).catch(() => undefined);
  const isOurs = now?.state.lease?.owner === lease.owner && now.state.last === lease.state.last;
  if (now?.version === undefined || !isOurs || now.state.waitingSince !== null) {
    return { ...lease, empty: 'unknown' };
  }
  return { ...lease, ...now, version: now.version, empty: 'seen' };
}

/** The lease as the key document has it now, after a transaction of its own; undefined when it is lost. */
export async function reread(
  ports: Ports,
  ref: KeyRef,
  lease: Lease,
  sentAt: number,
): Promise<Lease | undefined> {
  const now = await look(ports, ref);
  if (now.version === undefined || now.state.lease?.owner !== lease.owner) return undefined;
  const deadline = sentAt + ports.leaseMs;
  return { ...lease, ...now, version: now.version, deadline, empty: 'unknown' };
}

/**
 * One commit under the lease: `patch`, and the removal of what is done. Answers the lease as it is after it, or
 * undefined when it is lost or nothing is known: then the caller touches nothing more. `overMarks`: also where somebody has
 * held something meanwhile; not for numbers that were never stored, of which it may be a copy.
 */
export async function commit(
  ports: Ports,
  ref: KeyRef,
  lease: Lease,
  patch: KeyPatch,
  remove: readonly number[],
  overMarks = true,
): Promise<Lease | undefined> {
  const sentAt = ports.clock.monotonic();
  const deadline = sentAt + ports.leaseMs;
  const intended = patch.last ?? lease.state.last;
  const base = freshKey(ports.start);
  let current: Seen & { version: string } = { ...lease, nowMs: 0 };
  for (let round = 0; round < ROUNDS; round += 1) {
    const version = await ports.store
      .write(ref, { version: current.version, base }, patch, remove)
      // Unknown: it may be applied, or be on its way. The same write under the same version cannot apply twice.
      .catch(() => undefined);
    if (version !== undefined) {
      const state = patched(current.state, patch, storeTime(ports, current));
      return { ...lease, state, version, deadline, empty: stillEmpty(lease, state) };
    }
    const now = await look(ports, ref);
    if (now.version === undefined || now.state.lease?.owner !== lease.owner) return undefined;
    if (now.state.last === intended && intended !== lease.state.last) {
      return { ...lease, ...now, version: now.version, deadline, empty: stillEmpty(lease, now.state) };
    }
    // A holder's mark came in between: the same change again, on top of it.
    if (!overMarks || now.state.last !== lease.state.last) return undefined;
    current = { ...now, version: now.version };
  }
  return undefined;
}

/** After a commit that looks for nothing: whoever held something since then has marked the key. */
const stillEmpty = ({ empty }: Lease, { waitingSince }: KeyState): Lease['empty'] =>
  empty === 'seen' && waitingSince === null ? 'seen' : 'unknown';

/** Tries of a transaction that ends or settles a lease, and the pause between them. */
const TRIES = 3;
const PAUSE_MS = 500;

/**
 * Repeats a transaction whose outcome is unknown, while there is time: giving up costs a whole lease and perhaps a
 * second run of the handler. The decision recognises its own work, so a repeat cannot count anything twice.
 */
export async function settledWithin<Result>(
  ports: Ports,
  deadline: number,
  transaction: () => Promise<Result>,
): Promise<Result> {
  for (let left = TRIES; ; left -= 1) {
    try {
      return await transaction();
    } catch (error) {
      if (left <= 1 || ports.clock.monotonic() + PAUSE_MS >= deadline) throw error;
      await sleep(ports.clock, PAUSE_MS);
    }
  }
}
