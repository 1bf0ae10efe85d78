/**
 * One batch of a drain: numbers are run in turn, and then one commit says what became of them.
 *
 * A crash before the commit runs all of them again, in their order. Nothing is committed for a handler that was left
 * behind.
 */
import type { Context, Handler } from '../handler.ts';
import type { Message } from '../message.ts';
import { decodeMessage } from '../stored-message.ts';
import { observedHeld } from '../telemetry/stages.ts';
import { halting, retrying } from './decisions.ts';
import { givingUp, type KeyPatch, patched, progress } from './key-state.ts';
import { commit, type Lease, storeTime } from './lease.ts';
import type { Ports } from './options.ts';
import type { HeldMessage, KeyRef } from './order-store.ts';
import { contentOf, discard } from './hold.ts';
import { buried, haltOf, logPoison, readable } from './poison.ts';
import { logFailure, requestWake } from './report.ts';
import { type Failure, failureOf, headRetry, isPoison } from './retry-policy.ts';
import { assertInTime, runUnderLease } from './run.ts';

export type Batch = Readonly<{
  done: readonly HeldMessage[];
  failed?: Readonly<{ held: HeldMessage; failure: Failure }>;
  /** The number after `done` ignores its signal and may still be writing. */
  hung?: true;
}>;

export async function runBatch(
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
      const message = decodeMessage(await contentOf(ports.payloads, held));
      assertInTime(ports.clock, inner);
      return observedHeld(message, () => next(message, inner));
    });
    if (ran.kind === 'hung') return { done, hung: true };
    if (ran.outcome.kind !== 'ack') {
      return { done, failed: { held, failure: failureOf(ran.outcome, ran.aborted) } };
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
export async function commitBatch(
  ports: Ports,
  ref: KeyRef,
  lease: Lease,
  batch: Batch,
  budgetEnd: number,
  context: Context,
): Promise<Lease | undefined> {
  const committed = await committedBatch(ports, ref, lease, batch, budgetEnd, context);
  if (committed !== undefined) {
    const all = [...batch.done, ...(batch.failed === undefined ? [] : [batch.failed.held])];
    await discard(
      ports.payloads,
      context,
      all.filter(({ number }) => number <= committed.state.last),
    );
  }
  return committed;
}

async function committedBatch(
  ports: Ports,
  ref: KeyRef,
  lease: Lease,
  { done, failed, hung }: Batch,
  budgetEnd: number,
  context: Context,
): Promise<Lease | undefined> {
  const hashes = done.map(({ hash }) => hash);
  let moved: KeyPatch = hashes.length === 0 ? {} : progress(lease.state, hashes);
  const remove = done.map(({ number }) => number);
  if (hung) return done.length === 0 ? undefined : commit(ports, ref, lease, moved, remove);
  if (failed !== undefined) {
    const { held, failure } = failed;
    const { attempts, pauseMs } = headRetry(ports, done.length > 0 ? 0 : lease.state.attempts, failure);
    const poison = isPoison(ports.maxAttempts, attempts, failure);
    if (poison && ports.poison === 'halt') {
      const halted = { ...haltOf(failure.error), atMs: storeTime(ports, lease) };
      const committed = await commit(ports, ref, lease, { ...moved, ...halting(attempts, halted) }, remove);
      logPoison('halt', context, ref, held.number, attempts, failure.error);
      return committed;
    }
    const message = (): Promise<Message> => readable(ports.payloads, ref, held);
    if (!poison || !(await buried(ports, lease, message, held.source, failure, context))) {
      const nextTryAt = storeTime(ports, lease) + pauseMs;
      const patch: KeyPatch = { ...moved, ...retrying(attempts, nextTryAt) };
      const committed = await commit(ports, ref, lease, patch, remove);
      logFailure(context, ref, held.number, attempts, failure.error);
      requestWake(ports, context, ref, nextTryAt);
      return committed;
    }
    logPoison('skip', context, ref, held.number, attempts, failure.error);
    moved = { ...moved, ...givingUp(patched(lease.state, moved, 0), held.number) };
    remove.push(held.number);
  }
  const now = storeTime(ports, lease);
  if (ports.clock.monotonic() >= budgetEnd) {
    const committed = await commit(ports, ref, lease, { ...moved, readyAt: now, lease: null }, remove);
    requestWake(ports, context, ref, now);
    return committed;
  }
  const renewal = { lease: { owner: lease.owner, lengthMs: ports.leaseMs }, readyAt: now + ports.leaseMs };
  return commit(ports, ref, lease, { ...moved, ...renewal }, remove);
}
