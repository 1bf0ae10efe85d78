/**
 * Runs the handler for one number under a lease. The signal is aborted when the lease's local deadline or the
 * delivery's passes; a handler that does not listen is left behind a second later, and nothing is written for it.
 */
import type { Clock } from '../clock.ts';
import { ConfigError, leaseLost } from '../errors.ts';
import type { Context } from '../handler.ts';
import { type Outcome, outcomeOf, retry } from '../outcome.ts';
import type { Lease } from './lease.ts';

export type Ran =
  | Readonly<{ kind: 'finished'; outcome: Outcome; aborted: boolean }>
  /** The handler ignores its signal. It may still be writing. */
  | Readonly<{ kind: 'hung' }>;

const GRACE_MS = 1_000;

export async function runUnderLease(
  clock: Clock,
  lease: Lease,
  source: string,
  context: Context,
  handle: (context: Context) => Promise<Outcome>,
): Promise<Ran> {
  const deadline = Math.min(lease.deadline, context.deadline);
  const left = deadline - clock.monotonic();
  if (left <= 0 || context.signal.aborted) {
    const error = leaseLost(
      'the time of the lease or of the delivery was over before the handler was called',
    );
    return { kind: 'finished', outcome: retry(error), aborted: true };
  }
  const controller = new AbortController();
  const abort = (): void => controller.abort(leaseLost('the time of the lease or of the delivery is over'));
  const cancelAbort = clock.after(left, abort);
  context.signal.addEventListener('abort', abort, { once: true });
  const inner: Context = {
    consumer: context.consumer,
    source,
    now: context.now,
    deadline,
    signal: controller.signal,
    log: context.log,
    fencingToken: lease.token,
  };
  let cancelHung = (): void => undefined;
  const hung = new Promise<'hung'>((resolve) => {
    cancelHung = clock.after(left + GRACE_MS, () => resolve('hung'));
  });
  try {
    const outcome = await Promise.race([outcomeFrom(handle, inner), hung]);
    if (outcome === 'hung') return { kind: 'hung' };
    return { kind: 'finished', outcome, aborted: controller.signal.aborted };
  } finally {
    cancelAbort();
    cancelHung();
    context.signal.removeEventListener('abort', abort);
  }
}

/**
 * Throws `LEASE_LOST` once the time of the run is over. For what waits under the lease before it calls the handler: by
 * then another may have it. The clock is asked too, because the answer may come before the timer.
 */
export function assertInTime(clock: Clock, { signal, deadline }: Context): void {
  if (signal.aborted || clock.monotonic() >= deadline) {
    throw leaseLost('the time of the lease or of the delivery was over before the message was read');
  }
}

async function outcomeFrom(
  handle: (context: Context) => Promise<Outcome>,
  context: Context,
): Promise<Outcome> {
  try {
    const outcome = await handle(context);
    // A held message's outcome goes to nobody outside: what it wants published would be lost without a word.
    if (outcome.kind === 'ack' && outcome.publish !== undefined && outcome.publish.length > 0) {
      const accepted = 'put the publishing middleware inside inOrder';
      return retry(
        new ConfigError('NOT_PUBLISHED', `the outcome still has messages to publish; ${accepted}`),
      );
    }
    return outcome;
  } catch (error) {
    return outcomeOf(error);
  }
}
