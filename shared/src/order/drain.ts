/**
 * Hands the contiguous run of held messages of one key to the handler, in order, under one lease.
 *
 * A crash leaves the lease to expire and what was not committed to run again, in order, for whoever takes over.
 * A failure is stored with the key and asks for a wake-up; it never concerns the delivery that started the drain.
 */
import type { Context, Handler } from '../handler.ts';
import { decodeMessage } from '../stored-message.ts';
import { ATTR, count } from '../telemetry/instruments.ts';
import { observedHeld } from '../telemetry/stages.ts';
import { releasing } from './decisions.ts';
import { freshKey, hasLiveLease, type KeyPatch, progress } from './key-state.ts';
import { commit, type Lease, reread, type Seen, settledWithin, storeTime, take } from './lease.ts';
import type { Ports } from './options.ts';
import type { HeldMessage, KeyRef } from './order-store.ts';
import { isDue } from './place.ts';
import { logFailure, requestWake } from './report.ts';
import { type Failure, failureOf, headRetry } from './retry-policy.ts';
import { runUnderLease } from './run.ts';

/** A drain begins with this many and doubles: never a full batch past a gap, because every read is billed. */
const FIRST_RUN = 2;

/**
 * Takes the key and drains it, if it is due and nobody works on it. Only the sweep calls this for a key whose head
 * has failed or whose owner died; such a takeover counts as an attempt of the head, which may be what killed it.
 * Answers how many numbers were done, or undefined when the key was not taken.
 */
export async function drainIfDue(
  ports: Ports,
  ref: KeyRef,
  seen: Seen,
  next: Handler,
  context: Context,
): Promise<number | undefined> {
  const { state, nowMs } = seen;
  if (!isDue(state, nowMs) || hasLiveLease(state, nowMs)) return undefined;
  const takeover = state.lease !== null;
  const lease = await take(ports, ref, seen, takeover ? { attempts: state.attempts + 1 } : {});
  if (lease === undefined) return undefined;
  if (takeover) count('recoveries', { [ATTR.consumer]: ref.consumer, [ATTR.capability]: 'in_order' });
  return drain(ports, ref, lease, next, context);
}

/** Answers how many numbers were done. The lease is let go of, or lost, when it returns. */
export async function drain(
  ports: Ports,
  ref: KeyRef,
  first: Lease,
  next: Handler,
  context: Context,
): Promise<number> {
  const { clock, store, leaseMs } = ports;
  const started = clock.monotonic();
  // Half of the time that is left stays for the last handler: whoever started this waits for its own settlement.
  const budgetEnd = started + (context.deadline - started) / 2;
  let lease = first;
  let size = FIRST_RUN;
  let more = true;
  while (true) {
    const found = more ? await store.held(ref, lease.state.last + 1, size) : [];
    const run = contiguous(found, lease.state.last + 1);
    if (run.length === 0) {
      const kept = await release(ports, ref, lease, context);
      if (kept === undefined) return lease.state.last - first.state.last;
      [lease, size, more] = [kept, FIRST_RUN, true];
      continue;
    }
    // A third of the lease: what is left is for the number that has started, and for the commit.
    const batchEnd = Math.min(budgetEnd, clock.monotonic() + leaseMs / 3);
    const batch = await runBatch(ports, lease, run, batchEnd, next, context);
    const committed = await commitBatch(ports, ref, lease, batch, budgetEnd, context);
    if (committed === undefined) return lease.state.last - first.state.last;
    lease = committed;
    if (batch.hung || lease.state.lease === null) return lease.state.last - first.state.last;
    // A short answer was the end of what is held; asking again would be paid for nothing.
    more = run.length === size || batch.done.length < run.length;
    size = Math.min(size * 2, ports.maxRun);
  }
}

type Batch = Readonly<{
  done: readonly HeldMessage[];
  failure?: Failure;
  failed?: HeldMessage;
  /** The number after `done` ignores its signal and may still be writing. */
  hung?: true;
}>;

async function runBatch(
  ports: Ports,
  lease: Lease,
  run: readonly HeldMessage[],
  batchEnd: number,
  next: Handler,
  context: Context,
): Promise<Batch> {
  const done: HeldMessage[] = [];
  for (const held of run) {
    const now = ports.clock.monotonic();
    // The first one runs as long as there is a lease: a drain with little time left would never make progress.
    if (now >= lease.deadline || now >= context.deadline || (done.length > 0 && now >= batchEnd)) break;
    // Decoded inside the run: bytes that nobody can read are a failure of their number like any other.
    const ran = await runUnderLease(ports.clock, lease, held.source, context, async (inner) => {
      const message = decodeMessage(held.message);
      return observedHeld(message, () => next(message, inner));
    });
    if (ran.kind === 'hung') return { done, hung: true };
    if (ran.outcome.kind !== 'ack') {
      return { done, failure: failureOf(ran.outcome, ran.aborted), failed: held };
    }
    done.push(held);
    // One at a time behind a head that has failed or killed its process, until it is past.
    if (lease.state.attempts > 0) break;
  }
  return { done };
}

/**
 * One commit: what is done and its removal, with the failure, the budget's end or the renewal that follows it. Behind a
 * handler that was left behind nothing follows: the lease is not let go of, so that it has until its end to come back.
 */
async function commitBatch(
  ports: Ports,
  ref: KeyRef,
  lease: Lease,
  batch: Batch,
  budgetEnd: number,
  context: Context,
): Promise<Lease | undefined> {
  const { done, failure, failed, hung } = batch;
  const moved: KeyPatch =
    done.length === 0
      ? {}
      : progress(
          lease.state,
          done.map(({ hash }) => hash),
        );
  const remove = done.map(({ number }) => number);
  if (hung) return done.length === 0 ? undefined : commit(ports, ref, lease, moved, remove);
  const now = storeTime(ports, lease);
  if (failure !== undefined) {
    const { attempts, pauseMs } = headRetry(ports, done.length > 0 ? 0 : lease.state.attempts, failure);
    const nextTryAt = now + pauseMs;
    const patch: KeyPatch = { ...moved, attempts, nextTryAt, readyAt: nextTryAt, lease: null };
    const committed = await commit(ports, ref, lease, patch, remove);
    logFailure(context, ref, failed?.number, attempts, failure.error);
    requestWake(ports, context, ref, nextTryAt);
    return committed;
  }
  if (ports.clock.monotonic() >= budgetEnd) {
    const committed = await commit(ports, ref, lease, { ...moved, readyAt: now, lease: null }, remove);
    requestWake(ports, context, ref, now);
    return committed;
  }
  const renewal = { lease: { owner: lease.owner, lengthMs: ports.leaseMs }, readyAt: now + ports.leaseMs };
  return commit(ports, ref, lease, { ...moved, ...renewal }, remove);
}

/** Answers the renewed lease if the next number has come in the meantime. */
async function release(
  ports: Ports,
  ref: KeyRef,
  lease: Lease,
  context: Context,
): Promise<Lease | undefined> {
  const sentAt = ports.clock.monotonic();
  const query = { from: lease.state.last + 1, limit: 1 };
  const base = freshKey(ports.start);
  const decide = releasing(lease.owner, ports.leaseMs);
  const result = await settledWithin(ports, lease.deadline, () =>
    ports.store.transact(ref, base, query, decide),
  );
  if (result === 'gap') {
    count('gaps', { [ATTR.consumer]: ref.consumer });
    // No warning: in a stream that arrives shuffled this is every moment, and most gaps close by themselves.
    context.log.info('in order: messages wait for a number that has not come', {
      consumer: ref.consumer,
      sequenceKey: ref.key,
      missing: lease.state.last + 1,
    });
  }
  return result === 'next' ? reread(ports, ref, lease, sentAt) : undefined;
}

function contiguous(found: readonly HeldMessage[], from: number): readonly HeldMessage[] {
  const end = found.findIndex(({ number }, index) => number !== from + index);
  return end === -1 ? found : found.slice(0, end);
}
