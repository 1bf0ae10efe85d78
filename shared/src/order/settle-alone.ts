/**
 * Counts numbers as done in a lone write, where nothing is held for the key: there is nothing to look for then, neither
 * copies nor what comes next, and the write is refused as soon as there is.
 *
 * That rests on one rule: whoever holds something for a key writes the key too, unless it shows already that something is
 * held. So a version of it at which nothing is held stands for the reads of a transaction.
 */
import { type KeyPatch, NO_GAP, patched, progress } from './key-state.ts';
import { type Lease, storeTime, take } from './lease.ts';
import { admittedOf, startingOf } from './line.ts';
import type { Ports } from './options.ts';
import type { KeyRef } from './order-store.ts';
import type { Arrival } from './place.ts';
import { SETTLE_LIMIT, type SettleResult, type Stretch } from './settling.ts';

export type Alone = Readonly<{
  settled: Extract<SettleResult, { kind: 'done' }>;
  /** The lease as it is with it. */
  after: Pick<Lease, 'state' | 'version' | 'empty'>;
}>;

/**
 * Undefined where the key has changed, or nothing is known of it: then a transaction says what has become of it, which
 * recognises this write too. `line` as for `settling`.
 */
export async function settledAlone(
  ports: Ports,
  ref: KeyRef,
  lease: Lease,
  { from, hashes }: Stretch,
  line: () => readonly Arrival[],
): Promise<Alone | undefined> {
  if (lease.empty !== 'seen' || lease.state.last !== from - 1) return undefined;
  const now = storeTime(ports, lease);
  const moved = progress(lease.state, hashes);
  const done = patched(lease.state, moved, now);
  const admitted = admittedOf(done, line(), undefined);
  const patch: KeyPatch = {
    ...moved,
    ...(admitted.length === 0
      ? { lease: null, readyAt: null, ...NO_GAP }
      : {
          lease: { owner: lease.owner, lengthMs: ports.leaseMs },
          readyAt: now + ports.leaseMs,
          ...startingOf(done, admitted),
        }),
  };
  const expected = { version: lease.version, base: lease.state };
  // What is not known to be applied is not known to have failed either.
  const version = await ports.store.write(ref, expected, patch).catch(() => undefined);
  if (version === undefined) return undefined;
  const [upTo, behind] = [done.last, { held: [], limit: SETTLE_LIMIT }];
  return {
    settled: { kind: 'done', upTo, admitted, more: false, behind, removed: [], foreign: [] },
    after: { state: patched(lease.state, patch, now), version, empty: 'seen' },
  };
}

/**
 * For those who came while the key was let go of in a lone write: nobody need look at it, it stands as that write has left
 * it. Undefined where there is nobody, or somebody else was faster.
 */
export async function takenAgain(
  ports: Ports,
  ref: KeyRef,
  left: Lease,
  line: readonly Arrival[],
): Promise<Readonly<{ lease: Lease; admitted: readonly Arrival[] }> | undefined> {
  const admitted = admittedOf(left.state, line, undefined);
  if (admitted.length === 0) return undefined;
  const seen = { ...left, nowMs: storeTime(ports, left) };
  const lease = await take(ports, ref, seen, startingOf(left.state, admitted));
  return lease && { lease, admitted };
}
