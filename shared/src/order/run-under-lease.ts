/**
 * Runs the handler for one number under a lease. Its signal is aborted when the lease's local deadline or the
 * delivery's passes, or when the lease is known to be lost; a handler that does not listen is left behind a second
 * later, and nothing is written for it.
 */
import type { Clock } from '../clock.ts';
import { ConfigError, leaseLost } from '../errors.ts';
import type { Context } from '../handler.ts';
import { type Outcome, outcomeOf, retry } from '../outcome.ts';
import type { VisitContext } from './visits.ts';

export type Lease = Readonly<{
  owner: string;
  /** The version of the commit that wrote the lease: greater for every later lease of the stream. */
  token: string;
  /** Monotonic, counted from the sending of that commit: no number is started after this. */
  deadline: number;
  /** By the clock that has gone further: a machine may have been suspended. */
  isOver(): boolean;
}>;

export type Ran =
  | Readonly<{ kind: 'finished'; outcome: Outcome; aborted: boolean }>
  /** The handler ignores its signal. It may still be writing. */
  | Readonly<{ kind: 'hung' }>;

const GRACE_MS = 1_000;

/** `lost`: aborted when another process has the lease. */
export async function runUnderLease(
  clock: Clock,
  lease: Lease,
  lost: AbortSignal,
  source: string,
  context: VisitContext,
  handle: (context: Context) => Promise<Outcome>,
): Promise<Ran> {
  const deadline = Math.min(lease.deadline, context.deadline);
  const left = deadline - clock.monotonic();
  if (left <= 0 || lease.isOver() || context.signal.aborted || lost.aborted) {
    return { kind: 'finished', outcome: retry(overError('the handler was called')), aborted: true };
  }
  const controller = new AbortController();
  let giveUp = (): void => undefined;
  const hung = new Promise<'hung'>((resolve) => (giveUp = () => resolve('hung')));
  let cancelGiveUp = (): void => undefined;
  const abort = (): void => {
    if (controller.signal.aborted) return;
    controller.abort(leaseLost('the time of the lease or of the delivery is over'));
    cancelGiveUp = clock.after(GRACE_MS, giveUp);
  };
  const cancelAbort = clock.after(left, abort);
  for (const signal of [context.signal, lost]) signal.addEventListener('abort', abort, { once: true });
  const { consumer, now, log } = context;
  const inner: Context = {
    consumer,
    source,
    now,
    deadline,
    signal: controller.signal,
    log,
    fencingToken: lease.token,
  };
  try {
    const outcome = await Promise.race([outcomeFrom(handle, inner), hung]);
    if (outcome === 'hung') return { kind: 'hung' };
    return { kind: 'finished', outcome, aborted: controller.signal.aborted };
  } finally {
    cancelAbort();
    cancelGiveUp();
    for (const signal of [context.signal, lost]) signal.removeEventListener('abort', abort);
  }
}

/**
 * Throws `LEASE_LOST` once the time of the run is over. For what waits under the lease before it calls the handler: by
 * then another process may have the stream. The clock is asked too, because an answer may come before the timer.
 */
export function assertInTime(clock: Clock, { signal, deadline }: Context): void {
  if (signal.aborted || clock.monotonic() >= deadline) throw overError('the message was read');
}

const overError = (before: string): Error =>
  leaseLost(`the time of the lease or of the delivery was over before ${before}`);

async function outcomeFrom(
  handle: (context: Context) => Promise<Outcome>,
  context: Context,
): Promise<Outcome> {
  try {
    const outcome = await handle(context);
    // The outcome of a held message goes nowhere: what it wants published would be lost without a word.
    if (outcome.kind === 'ack' && outcome.publish !== undefined && outcome.publish.length > 0) {
      const accepted = 'put the publishing middleware inside in-order delivery';
      return retry(
        new ConfigError('NOT_PUBLISHED', `the outcome still has messages to publish; ${accepted}`),
      );
    }
    return outcome;
  } catch (error) {
    return outcomeOf(error);
  }
}
