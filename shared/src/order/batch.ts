/**
 * A batch: consecutive numbers of one stream that run one after the other under one lease. What became of them is
 * written by a commit afterwards; a crash before that runs them again, in their order.
 *
 * A delivery runs in its own asynchronous context, trace and time. A held message has no delivery: it runs in the time
 * of the batch's host, which is entered first, with the message's own span inside it. Its signal is aborted when the
 * lease's local deadline or the host's passes, or when the lease is known to be lost; a handler that does not listen is
 * left behind a second later, and nothing is written for it.
 */
import type { Context } from '../handler.ts';
import { type Outcome, outcomeOf, retry } from '../outcome.ts';
import type { Message } from '../message.ts';
import { observeHeld } from '../telemetry/stages.ts';
import type { Clock } from '../clock.ts';
import { ConfigError, leaseLost } from '../errors.ts';
import type { Delivery, Visit, VisitContext } from './mailbox.ts';
import type { StreamPolicy } from './options.ts';
import {
  deadLetterPublisher,
  exhausted,
  failureOf,
  isDeadLettered,
  judgeFailure,
  loadHeld,
  type Verdict,
} from './failure.ts';
import { load } from './stored-form.ts';
import type { HeldMessage, StreamRef } from './stream-store.ts';

/** One number of a batch: a delivery, or a message that is held. */
export type Entry = Readonly<{ number: number; hash: string }> &
  (
    | Readonly<{ delivery: Delivery; held?: undefined }>
    | Readonly<{ delivery?: undefined; held: HeldMessage }>
  );

export type Batch = Readonly<{
  /** The name of its lease. */
  owner: string;
  entries: readonly Entry[];
  /** Present where an entry is held. */
  host: Delivery | Visit | undefined;
  /** Attempts of the first number before this start. */
  attempts: number;
  /** Its processes have died so often that it is not started again: the policy for poison applies. */
  isExhausted: boolean;
  /** It runs in its stream's turn among those whose next number may end the process. */
  needsTurn: boolean;
}>;

/** What has become of a batch so far. `done` grows while it runs. */
export type Progress = {
  readonly owner: string;
  /** The batch's host, where that is a delivery: it stays unanswered until the batch has ended. */
  readonly host: Delivery | Visit | undefined;
  readonly done: Readonly<{ entry: Entry; outcome: Outcome }>[];
  /** Absent where the batch ended because all have run, or for want of time. */
  end?: BatchEnd;
};

export type BatchEnd =
  | Readonly<{ kind: 'failed'; entry: Entry; verdict: Verdict }>
  /** It is poison, and its dead letter is confirmed. */
  | Readonly<{ kind: 'skipped'; entry: Entry; verdict: Verdict; outcome: Outcome }>
  /** Its handler ignores its signal and may still be writing. */
  | Readonly<{ kind: 'hung'; entry: Entry }>;

type Ports = Pick<StreamPolicy, 'clock' | 'payloads' | 'deadLetters' | 'onPoison' | 'leaseMs'> &
  Parameters<typeof judgeFailure>[0];

export const newProgress = ({ owner, host }: Batch): Progress => ({ owner, host, done: [] });

/**
 * Runs the batch, and writes into `progress` what has become of it; never rejects. `stop` is aborted when no further
 * number may start, `lost` when another process has the lease. It ends after a third of the lease, so that the commit
 * behind it has its time.
 */
export async function runBatch(
  ports: Ports,
  ref: StreamRef,
  lease: Lease,
  batch: Batch,
  progress: Progress,
  signals: Readonly<{ stop: AbortSignal; lost: AbortSignal }>,
  onDone: () => void,
): Promise<void> {
  const { clock } = ports;
  const endsAt = clock.monotonic() + ports.leaseMs / 3;
  for (const entry of batch.entries) {
    const now = clock.monotonic();
    const isFirst = progress.done.length === 0;
    // The first one starts as long as there is a lease: a batch with little time would never make progress.
    const isLate = lease.isOver() || (!isFirst && now >= endsAt);
    const host = entry.delivery ?? batch.host;
    if (isLate || signals.stop.aborted || signals.lost.aborted || host === undefined || host.isOver()) return;
    if (entry.held !== undefined && now >= host.startUntil) return;
    const attempts = isFirst ? batch.attempts : 0;
    const ran =
      isFirst && batch.isExhausted ? undefined : await runEntry(ports, lease, signals.lost, entry, host);
    if (ran?.kind === 'hung') {
      progress.end = { kind: 'hung', entry };
      return;
    }
    if (ran?.outcome.kind === 'ack') {
      progress.done.push({ entry, outcome: ran.outcome });
      onDone();
      continue;
    }
    const failure = ran === undefined ? exhausted(attempts) : failureOf(ran.outcome, ran.aborted);
    const verdict = judgeFailure(ports, attempts, failure);
    progress.end = await ended(ports, ref, lease, signals.lost, entry, host, verdict);
    return;
  }
}

function runEntry(
  { clock, payloads }: Ports,
  lease: Lease,
  lost: AbortSignal,
  entry: Entry,
  host: Delivery | Visit,
): Promise<Ran> {
  const { delivery, held } = entry;
  return host.within(() =>
    runUnderLease(clock, lease, lost, sourceOf(entry), host.context, async (inner) => {
      if (held === undefined) return host.next(delivery.message, inner);
      // Decoded inside the run: bytes that no reader understands are a failure of their number like any other.
      const message = await load(payloads, held);
      assertInTime(clock, inner);
      return observeHeld(message, () => host.next(message, inner));
    }),
  );
}

const sourceOf = ({ delivery, held }: Entry): string => delivery?.context.source ?? held?.source ?? '';

/** Under the policy `skip` the dead letter is published while the lease still keeps others from the stream. */
async function ended(
  ports: Ports,
  ref: StreamRef,
  lease: Lease,
  lost: AbortSignal,
  entry: Entry,
  host: Delivery | Visit,
  verdict: Verdict,
): Promise<BatchEnd> {
  const { failure, isPoison } = verdict;
  const failed: BatchEnd = { kind: 'failed', entry, verdict };
  if (!isPoison || ports.onPoison !== 'skip') return failed;
  if (failure.published) {
    const outcome: Outcome = { kind: 'deadLetter', error: failure.error, published: true };
    return { kind: 'skipped', entry, verdict, outcome };
  }
  const publishDeadLetter = deadLetterPublisher(ports, failure.error);
  const message = (): Promise<Message> =>
    entry.held === undefined
      ? Promise.resolve(entry.delivery.message)
      : loadHeld(ports.payloads, ref, entry.held);
  const ran = await host.within(() =>
    runUnderLease(ports.clock, lease, lost, sourceOf(entry), host.context, async (inner: Context) => {
      const poison = await message();
      assertInTime(ports.clock, inner);
      return publishDeadLetter(poison, inner);
    }),
  );
  if (ran.kind !== 'finished' || !isDeadLettered(ran.outcome)) return failed;
  return { kind: 'skipped', entry, verdict, outcome: ran.outcome };
}

type Lease = Readonly<{
  owner: string;
  /** The version of the commit that wrote the lease: greater for every later lease of the stream. */
  token: string;
  /** Monotonic, counted from the sending of that commit: no number is started after this. */
  deadline: number;
  /** By the clock that has gone further: a machine may have been suspended. */
  isOver(): boolean;
}>;

type Ran =
  | Readonly<{ kind: 'finished'; outcome: Outcome; aborted: boolean }>
  /** The handler ignores its signal. It may still be writing. */
  | Readonly<{ kind: 'hung' }>;

const GRACE_MS = 1_000;

/** `lost`: aborted when another process has the lease. */
async function runUnderLease(
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
  let abandon = (): void => undefined;
  const hung = new Promise<'hung'>((resolve) => (abandon = () => resolve('hung')));
  let cancelAbandon = (): void => undefined;
  const abort = (): void => {
    if (controller.signal.aborted) return;
    controller.abort(leaseLost('the time of the lease or of the delivery is over'));
    cancelAbandon = clock.after(GRACE_MS, abandon);
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
    cancelAbandon();
    for (const signal of [context.signal, lost]) signal.removeEventListener('abort', abort);
  }
}

/**
 * Throws `LEASE_LOST` once the time of the run is over. For what waits under the lease before it calls the handler: by
 * then another process may have the stream. The clock is asked too, because an answer may come before the timer.
 */
function assertInTime(clock: Clock, { signal, deadline }: Context): void {
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
    // The outcome of a held message goes nowhere: what it wants published would be lost silently.
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
