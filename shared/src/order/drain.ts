/**
 * Hands the contiguous run of held messages of one key to the handler, in order, under one lease.
 *
 * A crash leaves the lease to expire and what was not committed to run again, in order, for whoever takes over.
 * A failure is stored with the key and asks for a wake-up; it never concerns the delivery that started the drain.
 */
import type { Context, Handler } from '../handler.ts';
import { ATTR, count } from '../telemetry/instruments.ts';
import { type Batch, commitBatch, runBatch } from './batch.ts';
import { type Found, releasing } from './decisions.ts';
import { asking, handOver } from './hand-over.ts';
import { inHandOf } from './in-hand.ts';
import { freshKey, hasLiveLease } from './key-state.ts';
import { type Lease, reread, type Seen, settledWithin, take } from './lease.ts';
import type { Ports } from './options.ts';
import type { HeldMessage, KeyRef } from './order-store.ts';
import { isDue } from './place.ts';
import { exhausted } from './retry-policy.ts';

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
  const done = inHandOf(ports.store).working(ref, seen.state.last + 1);
  try {
    return await takeAndDrain(ports, ref, seen, next, context);
  } finally {
    done();
  }
}

async function takeAndDrain(
  ports: Ports,
  ref: KeyRef,
  seen: Seen,
  next: Handler,
  context: Context,
): Promise<number | undefined> {
  const { state } = seen;
  const takeover = state.lease !== null;
  const lease = await take(ports, ref, seen, takeover ? { attempts: state.attempts + 1 } : {});
  if (lease === undefined) return undefined;
  if (takeover) count('recoveries', { [ATTR.consumer]: ref.consumer, [ATTR.capability]: 'in_order' });
  const kills = takeover && lease.state.attempts >= ports.maxAttempts;
  return drain(ports, ref, lease, next, context, { kills });
}

type DrainOptions = Readonly<{
  /** The head is not started again, because too many processes have ended under it. */
  kills?: boolean;
  /** What the transaction that has kept the lease read: under the lease nobody else takes it away. */
  behind?: Found;
}>;

/** Answers how many numbers were done or given up. The lease is let go of, or lost, when it returns. */
export async function drain(
  ports: Ports,
  ref: KeyRef,
  first: Lease,
  next: Handler,
  context: Context,
  { kills = false, behind }: DrainOptions = {},
): Promise<number> {
  const { clock, leaseMs } = ports;
  const started = clock.monotonic();
  // Half of the time that is left stays for the last handler: whoever started this waits for its own settlement.
  const budgetEnd = started + (context.deadline - started) / 2;
  let lease = first;
  let known = behind?.held;
  let size = behind?.limit ?? FIRST_RUN;
  let more = true;
  // What ran and is not committed: a run that was there whole is read on for the same commit.
  let done: readonly HeldMessage[] = [];
  let batchEnd = 0;
  const doneSoFar = (): number => lease.state.last - first.state.last;
  while (true) {
    const from = lease.state.last + done.length + 1;
    const found: readonly HeldMessage[] | undefined = more
      ? (known ?? (await read(ports, ref, from, size, done.length > 0)))
      : [];
    known = undefined;
    const run = contiguous(found ?? [], from);
    const [head] = run;
    inHandOf(ports.store).drains(ref, from + run.length);
    if (head === undefined && done.length === 0) {
      const kept = await release(ports, ref, lease, context);
      if (kept === undefined) return doneSoFar();
      [lease, size, more] = [kept, FIRST_RUN, true];
      continue;
    }
    // A third of the lease: what is left is for the number that has started, and for the commit.
    if (done.length === 0) batchEnd = Math.min(budgetEnd, clock.monotonic() + leaseMs / 3);
    const batch: Batch =
      kills && head !== undefined && lease === first
        ? { done: [], failed: { held: head, failure: exhausted(lease.state.attempts) } }
        : await runBatch(ports, lease, run, batchEnd, next, context);
    const isWhole = batch.done.length === run.length;
    // A short answer was the end of what is held; asking again would be paid for nothing.
    more = !isWhole || run.length === size || found === undefined;
    done = [...done, ...batch.done];
    // No more in one commit, and so to repeat after a crash, than the largest read. And one at a time behind a head that
    // has failed or killed its process.
    const isFull = done.length + size * 2 > ports.maxRun || clock.monotonic() >= batchEnd;
    const goesOn = more && isWhole && found !== undefined && !isFull && lease.state.attempts === 0;
    size = Math.min(size * 2, ports.maxRun);
    if (goesOn) continue;
    const committed = await commitBatch(ports, ref, lease, { ...batch, done }, budgetEnd, context);
    if (committed === undefined) return doneSoFar();
    [lease, done] = [committed, []];
    if (batch.hung || lease.state.lease === null) return doneSoFar();
  }
}

/** `hasRun`: undefined instead of an error, so that what ran is committed first; the same read comes again after it. */
async function read(
  { store }: Ports,
  ref: KeyRef,
  from: number,
  size: number,
  hasRun: boolean,
): Promise<readonly HeldMessage[] | undefined> {
  try {
    return await store.held(ref, from, size);
  } catch (error) {
    if (hasRun) return undefined;
    throw error;
  }
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
  const { line, asked } = asking(ports.store, ref, lease.state.last + 1, 0);
  const decide = releasing(lease.owner, ports.leaseMs, line);
  const result = await settledWithin(ports, lease.deadline, () =>
    ports.store.transact(ref, base, query, decide),
  );
  if (result.kind === 'gap') {
    count('gaps', { [ATTR.consumer]: ref.consumer });
    // No warning: in a stream that arrives shuffled this is every moment, and most gaps close by themselves.
    context.log.info('in order: messages wait for a number that has not come', {
      consumer: ref.consumer,
      sequenceKey: ref.key,
      missing: lease.state.last + 1,
    });
  }
  const deadline = sentAt + ports.leaseMs;
  if (result.kind === 'line') {
    const kept: Lease = { ...lease, deadline, empty: result.isEmpty ? 'unseen' : 'unknown' };
    if (handOver(ports, ref, kept, asked, result.admitted)) return undefined;
  }
  return result.kind === 'next' || result.kind === 'line' ? reread(ports, ref, lease, sentAt) : undefined;
}

function contiguous(found: readonly HeldMessage[], from: number): readonly HeldMessage[] {
  const end = found.findIndex(({ number }, index) => number !== from + index);
  return end === -1 ? found : found.slice(0, end);
}
