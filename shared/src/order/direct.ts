/**
 * Runs the next number of an idle key without storing it: the common case, three reads and two writes.
 *
 * The delivery is acknowledged only after a commit, its own or one that it read, that shows its number as done,
 * skipped or held. A crash leaves the lease to expire; the redelivery is held and a sweep runs it.
 */
import { leaseLost, TransientError, textOf } from '../errors.ts';
import type { Context, Handler } from '../handler.ts';
import { ack, deadLetter, type Outcome, retry } from '../outcome.ts';
import type { Message } from '../message.ts';
import { failing, settling } from './decisions.ts';
import { drain } from './drain.ts';
import { discard, heldForm } from './hold.ts';
import { freshKey } from './key-state.ts';
import { type Lease, reread, settledWithin } from './lease.ts';
import type { Ports } from './options.ts';
import type { KeyRef } from './order-store.ts';
import { type Arrival, conflict } from './place.ts';
import { buried, haltOf, logPoison } from './poison.ts';
import { logFailure, requestWake } from './report.ts';
import { type Failure, failureOf, headRetry, isPoison } from './retry-policy.ts';
import { runUnderLease } from './run.ts';

export type Delivery = Readonly<{ ref: KeyRef; arrival: Arrival; message: Message; context: Context }>;

export async function runDirect(
  ports: Ports,
  delivery: Delivery,
  lease: Lease,
  next: Handler,
): Promise<Outcome> {
  const { context, message } = delivery;
  const ran = await runUnderLease(ports.clock, lease, context.source, context, (inner) =>
    next(message, inner),
  );
  if (ran.kind === 'hung') return retry(leaseLost('the handler went on after its time was over'));
  if (ran.outcome.kind !== 'ack') {
    return fail(ports, delivery, lease, next, failureOf(ran.outcome, ran.aborted));
  }
  return settle(ports, delivery, lease, next, ran.outcome);
}

/** `outcome` is what the delivery answers once its number is done, or given up and its dead letter published. */
async function settle(
  ports: Ports,
  delivery: Delivery,
  lease: Lease,
  next: Handler,
  outcome: Outcome,
): Promise<Outcome> {
  const { ref, arrival, context } = delivery;
  const sentAt = ports.clock.monotonic();
  const query = { from: arrival.number, limit: 2 };
  const base = freshKey(ports.start);
  const decide = settling(lease.owner, arrival, ports.leaseMs, outcome.kind === 'ack' ? 'done' : 'given up');
  const settled = await settledWithin(ports, lease.deadline, () =>
    ports.store.transact(ref, base, query, decide),
  );
  if (settled.kind === 'lost') {
    // Acknowledging a number that nothing shows as done would leave the stream waiting for it for ever.
    return settled.safe
      ? outcome
      : retry(leaseLost('the lease was lost before the message was counted as done'));
  }
  if (settled.foreign) {
    context.log.error('in order: a held message has other content under a number that is done; it is kept', {
      code: 'SEQUENCE_CONFLICT',
      consumer: ref.consumer,
      sequenceKey: ref.key,
      sequence: arrival.number,
    });
  }
  await discard(ports.payloads, context, [settled.removed]);
  if (settled.more) await drainBehind(ports, delivery, lease, sentAt, next);
  return outcome;
}

/** The number is counted as done, so nothing that happens here concerns its delivery. */
async function drainBehind(
  ports: Ports,
  { ref, context }: Delivery,
  lease: Lease,
  sentAt: number,
  next: Handler,
): Promise<void> {
  try {
    const renewed = await reread(ports, ref, lease, sentAt);
    if (renewed !== undefined) await drain(ports, ref, renewed, next, context);
  } catch (error) {
    context.log.warn('in order: a drain was cut short; the sweep goes on with it', {
      sequenceKey: ref.key,
      error: textOf(error),
    });
  }
}

async function fail(
  ports: Ports,
  delivery: Delivery,
  lease: Lease,
  next: Handler,
  failure: Failure,
): Promise<Outcome> {
  const { ref, arrival, message, context } = delivery;
  const { attempts } = headRetry(ports, lease.state.attempts, failure);
  const poison = isPoison(ports.maxAttempts, attempts, failure);
  if (poison && ports.poison === 'skip') {
    if (await buried(ports, lease, async () => message, context.source, failure, context)) {
      logPoison('skip', context, ref, arrival.number, attempts, failure.error);
      return settle(ports, delivery, lease, next, {
        kind: 'deadLetter',
        error: failure.error,
        published: true,
      });
    }
  }
  const halt = poison && ports.poison === 'halt' ? haltOf(failure.error) : undefined;
  // A room that does not answer: the redelivery is its retry then, as for what is too large.
  const holdable = await heldForm(ports, arrival, message, context).catch(() => undefined);
  const query = { from: arrival.number, limit: 2 };
  const base = freshKey(ports.start);
  const decide = failing(lease.owner, arrival, holdable, failure, ports, halt);
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
