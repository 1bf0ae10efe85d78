/**
 * Runs the next number of an idle key without storing it: the common case, one read and two writes.
 *
 * The delivery is acknowledged only after a commit, its own or one that it read, that shows its number as done,
 * skipped or held. A crash leaves the lease to expire; the redelivery is held and a sweep runs it.
 */
import { leaseLost, TransientError, textOf } from '../errors.ts';
import type { Handler } from '../handler.ts';
import { ack, deadLetter, type Outcome, retry } from '../outcome.ts';
import { failing } from './decisions.ts';
import { heldForm } from './hold.ts';
import type { Delivery } from './turn.ts';
import { freshKey } from './key-state.ts';
import { type Lease, settledWithin } from './lease.ts';
import type { Ports } from './options.ts';
import { conflict } from './place.ts';
import { buried, haltOf, logPoison } from './poison.ts';
import { logFailure, requestWake } from './report.ts';
import { keptForRetry } from './retry-at-once.ts';
import { type Failure, failureOf, headRetry, isPoison } from './retry-policy.ts';
import { runUnderLease } from './run.ts';
import { hungOutcome, lostOutcome, settle, stretchOf } from './settle.ts';

export async function runDirect(
  ports: Ports,
  delivery: Delivery,
  first: Lease,
  next: Handler,
): Promise<Outcome> {
  const { context, message, arrival } = delivery;
  for (let [tries, lease] = [0, first]; ; tries += 1) {
    const ran = await runUnderLease(ports.clock, lease, context.source, context, (inner) =>
      next(message, inner),
    );
    if (ran.kind === 'hung') return hungOutcome();
    if (ran.outcome.kind === 'ack') {
      const isSafe = await settle(ports, delivery, lease, stretchOf([arrival]), next);
      return isSafe(arrival.number) ? ran.outcome : lostOutcome();
    }
    const failure = failureOf(ran.outcome, ran.aborted);
    const kept = await keptForRetry(ports, delivery, lease, [], failure, tries);
    if (kept === undefined) return fail(ports, delivery, lease, next, failure);
    lease = kept;
  }
}

/**
 * `lease.state.attempts` are those of this number before this failure. `waits`: of whoever waits for what is stored behind it,
 * where it is given up.
 */
export async function fail(
  ports: Ports,
  delivery: Delivery,
  lease: Lease,
  next: Handler,
  failure: Failure,
  waits = delivery.context,
): Promise<Outcome> {
  const { ref, arrival, message, context } = delivery;
  const before = lease.state.attempts;
  const { attempts } = headRetry(ports, before, failure);
  const poison = isPoison(ports.maxAttempts, attempts, failure);
  if (poison && ports.poison === 'skip') {
    if (await buried(ports, lease, async () => message, context.source, failure, context)) {
      logPoison('skip', context, ref, arrival.number, attempts, failure.error);
      const behind = { ref, context: waits };
      const isSafe = await settle(ports, behind, lease, stretchOf([arrival]), next, { as: 'given up' });
      return isSafe(arrival.number)
        ? { kind: 'deadLetter', error: failure.error, published: true }
        : lostOutcome();
    }
  }
  const halt = poison && ports.poison === 'halt' ? haltOf(failure.error) : undefined;
  // A room that does not answer: the redelivery is its retry then, as for what is too large.
  const holdable = await heldForm(ports, arrival, message, context).catch(() => undefined);
  const query = { from: arrival.number, limit: 2 };
  const base = freshKey(ports.start);
  const decide = failing(lease.owner, before, arrival, holdable, failure, ports, halt);
  const result = await settledWithin(ports, lease.deadline, () =>
    ports.store.transact(ref, base, query, decide),
  );
  // Lost and safe: also where the reply to this very commit was lost.
  if (halt !== undefined && result.kind !== 'conflict' && !(result.kind === 'lost' && !result.safe)) {
    logPoison('halt', context, ref, arrival.number, attempts, failure.error);
  }
  switch (result.kind) {
    case 'kept':
      if (halt !== undefined) return ack('held');
      logFailure(context, ref, arrival.number, result.attempts, failure.error);
      requestWake(ports, context, ref, result.nextTryAt);
      return ack('held');
    case 'notKept':
      // Too large to be stored: the redelivery is its retry, and the subscription's policy its pause.
      logFailure(context, ref, arrival.number, result.attempts, failure.error);
      return retry(new TransientError('ORDER_HEAD_FAILED', textOf(failure.error), { cause: failure.error }));
    case 'conflict':
      return deadLetter(conflict(arrival));
    case 'lost':
      return result.safe
        ? ack('held')
        : retry(leaseLost('the lease was lost while the handler ran', failure.error));
  }
}
