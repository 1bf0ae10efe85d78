/**
 * From a delivery to what its claim allows: takes the claim or waits for it, and continues with the steps of one way of
 * working. A delivery is never acknowledged here before the work on its key is recorded as done.
 */
import { type Clock, type Moment, momentOf } from '../clock.ts';
import { inProgressElsewhere, PermanentError, TransientError } from '../errors.ts';
import type { Context, Handler } from '../handler.ts';
import type { Message } from '../message.ts';
import { ack, deadLetter, type Outcome, retry } from '../outcome.ts';
import { ATTR, count, record } from '../telemetry/instruments.ts';
import { observeStage } from '../telemetry/stages.ts';
import type { ClaimAnswer, ClaimRequest, ClaimStore } from './claim-store.ts';
import { type Identity, identify } from './identity.ts';
import { type DedupSettings, SUBSCRIPTION_RETENTION_MS } from './settings.ts';
import { answerFor, sharedPolls, type Waited } from './shared-polls.ts';

export type Received = Readonly<{ message: Message; context: Context; identity: Identity }>;
export type Claimed = Extract<ClaimAnswer, { kind: 'claimed' }>;

export type Steps = Readonly<{
  /** `sentAt`: when the claim was sent; of an adopted one, its owner's first attempt. */
  claimed(received: Received, answer: Claimed, sentAt: Moment): Promise<Outcome>;
  /** The work is done, by another delivery or an earlier one. */
  duplicate(received: Received): Promise<Outcome> | Outcome;
  /** No claim can guard this message; `reason` is a text for people. */
  unguarded(received: Received, reason: string, event: string): Promise<Outcome> | Outcome;
}>;

/** `store` measures its own calls. */
export function claiming(store: ClaimStore, clock: Clock, settings: DedupSettings, steps: Steps): Handler {
  const polls = sharedPolls(store, clock);
  const inFlight = new Map<string, Promise<ClaimAnswer>>();
  let warned = settings.retentionMs >= SUBSCRIPTION_RETENTION_MS;

  const latestStart = (context: Context): number => context.deadline - settings.minimumHandlerMs;

  const conflict = (received: Received, firstId: string): Promise<Outcome> | Outcome => {
    const { message, identity, context } = received;
    const text = `${identity.name} was used by message ${firstId} with other data than that of message ${message.id}`;
    count('conflicts', { [ATTR.consumer]: context.consumer });
    switch (settings.onConflict) {
      case 'process':
        return steps.unguarded(received, text, 'dedup_conflict');
      case 'ack':
        context.log.warn(text, { event: 'dedup_conflict', key: identity.key });
        return ack('duplicate');
      case 'deadLetter':
        return deadLetter(new PermanentError('DEDUP_CONFLICT', text));
    }
  };

  /**
   * Deliveries of one key that arrive while one of them asks do not ask too: whichever claims it, it is in progress for the
   * others, and what is done is done for all.
   */
  const claimOrShare = async (request: ClaimRequest, mayTakeOver: boolean): Promise<ClaimAnswer> => {
    const { key } = request;
    const other = inFlight.get(key);
    if (other !== undefined) return answerFor(await other, request);
    const own = store.claim({ ...request, mayTakeOver });
    inFlight.set(key, own);
    try {
      return await own;
    } finally {
      inFlight.delete(key);
    }
  };

  const claimOrWait = async (request: ClaimRequest, context: Context): Promise<Waited> => {
    const sentAt = momentOf(clock);
    const answer = await claimOrShare(request, sentAt.monotonicMs <= latestStart(context));
    if (answer.kind !== 'inProgress') return { answer, sentAt };
    const until = Math.min(clock.monotonic() + settings.waitBudgetMs, latestStart(context));
    const waitedSince = clock.monotonic();
    const waited = await polls.wait(request, { answer, sentAt }, until, context.signal);
    const { kind } = waited.answer;
    const attributes = { [ATTR.consumer]: context.consumer, [ATTR.answer]: kind };
    record('wait', clock.monotonic() - waitedSince, attributes);
    // An adopted claim may date from this delivery's first attempt.
    return kind === 'claimed' && waited.answer.adopted ? { ...waited, sentAt } : waited;
  };

  const act = async (received: Received, { answer, sentAt }: Waited): Promise<Outcome> => {
    const { identity } = received;
    const { consumer } = received.context;
    switch (answer.kind) {
      case 'claimed':
        if (answer.recovered) count('recoveries', { [ATTR.consumer]: consumer, [ATTR.capability]: 'once' });
        try {
          return await steps.claimed(received, answer, sentAt);
        } finally {
          polls.wake(identity.key);
        }
      case 'inProgress':
        return retry(inProgressElsewhere(`${identity.name} is being worked on by another delivery`));
      case 'duplicate':
        return steps.duplicate(received);
      case 'conflict':
        return conflict(received, answer.messageId);
      case 'unrecognised': {
        count('unrecognisedRecords', { [ATTR.consumer]: consumer });
        const text = `the record of ${identity.name} is not ours: ${answer.what}`;
        return steps.unguarded(received, text, 'dedup_unrecognised');
      }
    }
  };

  return observeStage('once', async (message, context) => {
    const identity = identify(message, context);
    const received: Received = { message, context, identity };
    if (!warned) {
      warned = true;
      context.log.warn('retention is shorter than a subscription keeps messages by default (7 days)', {
        event: 'dedup_short_retention',
        retentionMs: settings.retentionMs,
      });
    }
    const { key, fingerprint } = identity;
    const { leaseMs, retentionMs } = settings;
    const owner = settings.newId();
    const messageId = message.id;
    const request = { key, owner, fingerprint, messageId, leaseMs, retentionMs, mayTakeOver: true };
    let waited: Waited;
    try {
      waited = await claimOrWait(request, context);
    } catch (error) {
      const isDown = error instanceof TransientError && error.code === 'STORE_UNAVAILABLE';
      if (!isDown || settings.onStoreUnavailable === 'retry') return retry(error);
      const text = `the claim store is down: ${error.message}`;
      return steps.unguarded(received, text, 'dedup_store_unavailable');
    }
    return act(received, waited);
  });
}
