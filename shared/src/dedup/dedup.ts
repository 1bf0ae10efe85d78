/**
 * Once: the handler's effect happens once per message, however often it is published or delivered.
 *
 * A delivery claims the message, runs the handler under a lease, and completes the claim only after the handler has
 * acknowledged; whatever the handler wanted published must be published by then. A crash in between costs a rerun after
 * the lease, never the message. A duplicate of a completed message is acknowledged without running; one of a message in
 * progress waits, and is never acknowledged before the work is done.
 */
import { systemClock } from '../clock.ts';
import { inProgressElsewhere, PermanentError, TransientError } from '../errors.ts';
import type { Context, Middleware } from '../handler.ts';
import { ack, deadLetter, type Outcome, retry } from '../outcome.ts';
import type { ClaimRequest, ClaimStore } from './claim-store.ts';
import { identify } from './identity.ts';
import { type Delivery, runClaimed } from './run-claimed.ts';
import { type DedupOptions, dedupSettings, SUBSCRIPTION_RETENTION_MS } from './settings.ts';
import { sharedPolls, type Waited } from './shared-polls.ts';

/**
 * Place it outside what publishes (`publishing`, an inner `deadLettering`), inside an outer `deadLettering`.
 * Throws ConfigError when an option is invalid. Outcomes of its own: ack `duplicate`; retry with
 * IN_PROGRESS_ELSEWHERE, LEASE_LOST or STORE_UNAVAILABLE; dead letter `DEDUP_CONFLICT` and `INVALID_ATTRIBUTE`.
 */
export function dedup(store: ClaimStore, options: DedupOptions = {}): Middleware {
  const { clock = systemClock() } = options;
  const settings = dedupSettings(options);
  const polls = sharedPolls(store, clock);
  const run = runClaimed(store, clock, settings);
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
