/**
 * A number that failed, and may be tried again almost at once, is tried again by whoever has it in hand: to store it
 * would be to store all that waits behind it there, too.
 *
 * The failure is counted before the next try, in the commit that keeps the lease. A crash in between is that of a direct run
 * that has failed before: its redelivery runs it, and what was started keeps its identity.
 */
import { sleep } from '../clock.ts';
import { type KeyPatch, progress } from './key-state.ts';
import { commit, type Lease, storeTime } from './lease.ts';
import type { Ports } from './options.ts';
import { logFailure } from './report.ts';
import { type Failure, headRetry, isPoison } from './retry-policy.ts';
import type { Delivery } from './turn.ts';

/** The longest pause; those that wait in hand have a second in all. */
const AT_ONCE_MS = 100;
/** In a row: then it is stored, so that its delivery has an end. */
const MOST_TRIES = 3;

/**
 * Counts the failure, and `before` as done, waits for the pause, and answers the lease for the next try. Undefined where the
 * number is to be stored, or is poison, or nothing is known of the commit: a transaction says which.
 */
export async function keptForRetry(
  ports: Ports,
  { ref, arrival, context }: Delivery,
  lease: Lease,
  before: readonly string[],
  failure: Failure,
  tries: number,
): Promise<Lease | undefined> {
  const attemptsBefore = before.length > 0 ? 0 : lease.state.attempts;
  const { attempts, pauseMs } = headRetry(ports, attemptsBefore, failure);
  if (lease.empty !== 'seen' || tries >= MOST_TRIES || pauseMs > AT_ONCE_MS) return undefined;
  if (!failure.counts || isPoison(ports.maxAttempts, attempts, failure)) return undefined;
  if (ports.clock.monotonic() + pauseMs >= Math.min(context.deadline, lease.deadline)) return undefined;
  const patch: KeyPatch = {
    ...(before.length > 0 && progress(lease.state, before)),
    attempts,
    lease: { owner: lease.owner, lengthMs: ports.leaseMs },
    readyAt: storeTime(ports, lease) + ports.leaseMs,
  };
  const kept = await commit(ports, ref, lease, patch, [], before.length === 0).catch(() => undefined);
  if (kept === undefined) return undefined;
  logFailure(context, ref, arrival.number, attempts, failure.error);
  await sleep(ports.clock, pauseMs);
  return kept;
}
