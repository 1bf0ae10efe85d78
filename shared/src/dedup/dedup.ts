/**
 * Once: the handler's effect happens once per message, however often it is published or delivered.
 *
 * A delivery claims the message, runs the handler under a lease, and completes the claim only after the handler has
 * acknowledged; whatever the handler wanted published must be published by then. A crash in between costs a rerun after
 * the lease, never the message. A duplicate of a completed message is acknowledged without running; one of a message in
 * progress waits, and is never acknowledged before the work is done.
 */
import { sleep } from '../clock.ts';
import { ConfigError, inProgressElsewhere, leaseLost, PermanentError, TransientError } from '../errors.ts';
import type { Context, Handler, Middleware } from '../handler.ts';
import type { Message } from '../message.ts';
import { ack, deadLetter, type Outcome, outcomeOf, retry } from '../outcome.ts';
import type { ClaimAnswer, ClaimRequest, ClaimStore, HeldClaim } from './claim-store.ts';
import { identify, type Identity } from './identity.ts';
import { holdLease } from './lease.ts';
import { type DedupOptions, dedupSettings, SUBSCRIPTION_RETENTION_MS } from './settings.ts';
import { sharedPolls, type Waited } from './shared-polls.ts';

/** A completion of unknown outcome is tried this often in all; repeating it changes nothing. */
const COMPLETION_ATTEMPTS = 3;
const COMPLETION_PAUSE_MS = 1_000;

type Claimed = Extract<ClaimAnswer, { kind: 'claimed' }>;
type Delivery = Readonly<{ message: Message; context: Context; identity: Identity; next: Handler }>;

/**
 * Place it outside what publishes (`publishing`, an inner `deadLettering`), inside an outer `deadLettering`.
 * Throws ConfigError when an option is invalid. Outcomes of its own: ack `duplicate`; retry with
 * IN_PROGRESS_ELSEWHERE, LEASE_LOST or STORE_UNAVAILABLE; dead letter `DEDUP_CONFLICT` and `INVALID_ATTRIBUTE`.
 */
export function dedup(store: ClaimStore, options: DedupOptions): Middleware {
  const { clock } = options;
  const settings = dedupSettings(options);
  const polls = sharedPolls(store, clock);
  let warned = settings.retentionMs >= SUBSCRIPTION_RETENTION_MS;

  const latestStart = (context: Context): number => context.deadline - settings.minimumHandlerMs;

  const unguarded = (delivery: Delivery, reason: string, event: string): Promise<Outcome> => {
    const { message, context, identity, next } = delivery;
    context.log.warn(reason, { event, key: identity.key, messageId: message.id });
    return next(message, { ...context, possibleDuplicate: true });
  };

  const conflict = (delivery: Delivery, firstId: string): Promise<Outcome> | Outcome => {
    const { message, identity } = delivery;
    const text = `${identity.name} was used by message ${firstId} with other data than that of message ${message.id}`;
    switch (settings.onConflict) {
      case 'process':
        return unguarded(delivery, text, 'dedup_conflict');
      case 'ack':
        delivery.context.log.warn(text, { event: 'dedup_conflict', key: identity.key });
        return ack('duplicate');
      case 'deadLetter':
        return deadLetter(new PermanentError('DEDUP_CONFLICT', text));
    }
  };

  const release = async (held: HeldClaim, context: Context): Promise<void> => {
    try {
      await store.release(held);
    } catch (error) {
      // It lapses by itself after the lease.
      const { key } = held.request;
      context.log.warn('a claim could not be released', {
        event: 'dedup_release_failed',
        key,
        error: String(error),
      });
    }
  };

  const complete = async (held: HeldClaim, context: Context): Promise<void> => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        // Taken over meanwhile: this handler has finished all the same, and the other run has its own record.
        if ((await store.complete(held)) === 'stolen') {
          context.log.warn('a claim was taken over before it was completed: the work may be done twice', {
            event: 'dedup_stolen',
            key: held.request.key,
          });
        }
        return;
      } catch (error) {
        const late = clock.monotonic() + COMPLETION_PAUSE_MS >= context.deadline;
        if (attempt === COMPLETION_ATTEMPTS || late || context.signal.aborted) throw error;
        await sleep(clock, COMPLETION_PAUSE_MS, context.signal);
      }
    }
  };

  const run = async (delivery: Delivery, claimed: Claimed, sentAt: number): Promise<Outcome> => {
    const { message, context, next } = delivery;
    const now = clock.monotonic();
    if (now >= sentAt + settings.leaseMs || now > latestStart(context) || context.signal.aborted) {
      await release(claimed.held, context);
      return retry(leaseLost('the claim came too late to begin the work under it'));
    }
    const lease = holdLease(store, clock, {
      held: claimed.held,
      sentAt,
      deliveryDeadline: context.deadline,
      parent: context.signal,
      log: context.log,
    });
    const { signal } = lease;
    let outcome: Outcome;
    try {
      outcome = await next(message, { ...context, signal, fencingToken: claimed.fencingToken });
    } catch (error) {
      outcome = outcomeOf(error);
    }
    const isLost = lease.isLost();
    const held = await lease.stop();
    if (outcome.kind === 'ack' && outcome.publish !== undefined && outcome.publish.length > 0) {
      const text = 'dedup got messages that nobody has published; put publishing inside it';
      outcome = retry(new ConfigError('UNPUBLISHED', text));
    }
    if (outcome.kind !== 'ack') {
      await release(held, context);
      const ours = outcome.kind === 'retry' && isLost;
      return ours ? retry(leaseLost('the lease was lost while the handler ran', outcome.error)) : outcome;
    }
    try {
      await complete(held, context);
      return outcome;
    } catch (error) {
      // Never released: the completion may still arrive, and a release would make the record vanish and run again.
      return retry(error);
    }
  };

  const claimOrWait = async (request: ClaimRequest, context: Context): Promise<Waited> => {
    const sentAt = clock.monotonic();
    const answer = await store.claim({ ...request, mayTakeOver: sentAt <= latestStart(context) });
    const until = Math.min(clock.monotonic() + settings.waitBudgetMs, latestStart(context));
    const waited = await polls.wait(request, { answer, sentAt }, until, context.signal);
    const { kind } = waited.answer;
    // An adopted claim may date from this delivery's first attempt.
    return kind === 'claimed' && waited.answer.adopted ? { ...waited, sentAt } : waited;
  };

  const act = async (delivery: Delivery, { answer, sentAt }: Waited): Promise<Outcome> => {
    const { identity } = delivery;
    switch (answer.kind) {
      case 'claimed':
        try {
          return await run(delivery, answer, sentAt);
        } finally {
          polls.wake(identity.key);
        }
      case 'inProgress':
        return retry(inProgressElsewhere(`${identity.name} is being worked on by another delivery`));
      case 'duplicate':
        return ack('duplicate');
      case 'conflict':
        return conflict(delivery, answer.messageId);
      case 'foreign':
        return unguarded(
          delivery,
          `the record of ${identity.name} is not ours: ${answer.what}`,
          'dedup_foreign',
        );
    }
  };

  return (next) => async (message, context) => {
    const identity = identify(message, context);
    const delivery: Delivery = { message, context, identity, next };
    if (!warned) {
      warned = true;
      context.log.warn('retention is shorter than a subscription keeps messages by default (7 days)', {
        event: 'dedup_short_retention',
        retentionMs: settings.retentionMs,
      });
    }
    const { key, fingerprint } = identity;
    const { leaseMs, retentionMs } = settings;
    const owner = settings.newOwner();
    const messageId = message.id;
    const request = { key, owner, fingerprint, messageId, leaseMs, retentionMs, mayTakeOver: true };
    let waited: Waited;
    try {
      waited = await claimOrWait(request, context);
    } catch (error) {
      const isDown = error instanceof TransientError && error.code === 'STORE_UNAVAILABLE';
      if (!isDown || settings.onStoreUnavailable === 'retry') return retry(error);
      return unguarded(delivery, `the claim store is down: ${error.message}`, 'dedup_store_unavailable');
    }
    return act(delivery, waited);
  };
}
