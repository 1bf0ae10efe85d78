/**
 * Running the handler of a claimed message under its lease, and settling the claim by what comes out.
 *
 * The claim is completed only after the handler has acknowledged, and released at once when it has not. A completion of
 * unknown outcome is neither: it may still arrive, and until then the claim lapses by itself.
 */
import { type Clock, elapsedMs, type Moment, sleep } from '../clock.ts';
import { ConfigError, leaseLost } from '../errors.ts';
import type { Context, Handler } from '../handler.ts';
import type { Message } from '../message.ts';
import { type Outcome, outcomeOf, retry } from '../outcome.ts';
import { ATTR, count, isMeasured, record } from '../telemetry/instruments.ts';
import { outcomeAttributes } from '../telemetry/spans.ts';
import type { ClaimAnswer, ClaimStore, HeldClaim } from './claim-store.ts';
import type { Identity } from './identity.ts';
import { holdLease } from './lease.ts';
import type { DedupSettings } from './settings.ts';

type Delivery = Readonly<{ message: Message; context: Context; identity: Identity; next: Handler }>;

/** `sentAt`: when the claim was sent; of an adopted one, its owner's first attempt. */
export type RunClaimed = (
  delivery: Delivery,
  claimed: Extract<ClaimAnswer, { kind: 'claimed' }>,
  sentAt: Moment,
) => Promise<Outcome>;

/** A completion of unknown outcome is tried this often in all; repeating it changes nothing. */
const COMPLETION_ATTEMPTS = 3;
const COMPLETION_PAUSE_MS = 1_000;

export function runClaimed(store: ClaimStore, clock: Clock, settings: DedupSettings): RunClaimed {
  return async ({ message, context, next }, claimed, sentAt) => {
    const obstacle = reasonNotToStart(clock, sentAt, context, settings);
    if (obstacle !== undefined) {
      await release(store, claimed.held, context);
      return retry(leaseLost(`the work was not begun under its claim: ${obstacle}`));
    }
    const lease = holdLease(store, clock, {
      held: claimed.held,
      sentAt,
      deliveryDeadline: context.deadline,
      parent: context.signal,
      log: context.log,
    });
    const began = clock.monotonic();
    const attributes = { [ATTR.consumer]: context.consumer, [ATTR.capability]: 'once' };
    let outcome: Outcome;
    try {
      outcome = await next(message, {
        ...context,
        fencingToken: claimed.fencingToken,
        // Made when the handler asks for it.
        get signal() {
          return lease.signal;
        },
      });
    } catch (error) {
      outcome = outcomeOf(error);
    }
    const isLost = lease.isLost();
    if (isMeasured()) {
      record('handler', clock.monotonic() - began, { ...attributes, ...outcomeAttributes(outcome) });
    }
    if (isLost) count('leasesLost', attributes);
    const held = await lease.stop();
    if (outcome.kind === 'ack' && outcome.publish !== undefined && outcome.publish.length > 0) {
      const text = 'dedup got messages that no stage has published; put publishing inside it';
      outcome = retry(new ConfigError('NOT_PUBLISHED', text));
    }
    if (outcome.kind !== 'ack') {
      await release(store, held, context);
      const ours = outcome.kind === 'retry' && isLost;
      return ours ? retry(leaseLost('the lease was lost while the handler ran', outcome.error)) : outcome;
    }
    try {
      await complete(store, clock, held, context);
      return outcome;
    } catch (error) {
      // Never released: the completion may still arrive, and a release would make the record vanish and run again.
      return retry(error);
    }
  };
}

/** Says which setting is at fault, because one that is always too small lets no message through. */
export function reasonNotToStart(
  clock: Clock,
  sentAt: Moment,
  { deadline, signal }: Context,
  { leaseMs, minimumHandlerMs }: DedupSettings,
): string | undefined {
  const [now, sinceMs] = [clock.monotonic(), elapsedMs(clock, sentAt)];
  if (sinceMs >= leaseMs) {
    return `the store answered after ${Math.round(sinceMs)} ms, which is not within the lease (${leaseMs} ms)`;
  }
  if (now > deadline - minimumHandlerMs) {
    const leftMs = Math.max(0, Math.round(deadline - now));
    return `${leftMs} ms of the delivery are left, less than minimumHandlerTime (${minimumHandlerMs} ms)`;
  }
  return signal.aborted ? 'the delivery is over' : undefined;
}

async function complete(store: ClaimStore, clock: Clock, held: HeldClaim, context: Context): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      // Taken over meanwhile: this handler has finished all the same, and the other run has its own record.
      if ((await store.complete(held)) === 'stolen') {
        context.log.warn('a claim was taken over before it was completed: the work may be done twice', {
          event: 'dedup_stolen',
          key: held.request.key,
        });
        count('possibleDuplicates', { [ATTR.consumer]: context.consumer, [ATTR.reason]: 'dedup_stolen' });
      }
      return;
    } catch (error) {
      const late = clock.monotonic() + COMPLETION_PAUSE_MS >= context.deadline;
      if (attempt === COMPLETION_ATTEMPTS || late || context.signal.aborted) throw error;
      await sleep(clock, COMPLETION_PAUSE_MS, context.signal);
    }
  }
}

async function release(store: ClaimStore, held: HeldClaim, context: Context): Promise<void> {
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
}
