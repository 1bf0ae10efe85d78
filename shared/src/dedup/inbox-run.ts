/**
 * Running a handler within a transaction under its claim, so that its writes, the claim as done and what it wants
 * published are committed together or not at all.
 *
 * No lock is held on the claim while the handler runs, so the heartbeat goes on beside it; the commit is refused if the
 * claim has another revision by then. The heartbeat pauses for the commit, because a renewal would change the revision.
 * After a commit without an answer the claim is taken away under its revision before anything is said about the
 * message: what arrives later is refused.
 */
import type { Clock, Moment } from '../clock.ts';
import { leaseLost, textOf, TransientError } from '../errors.ts';
import { type Context, noOutcome } from '../handler.ts';
import type { Message } from '../message.ts';
import { ack, isOutcome, type Outcome, outcomeOf, retry } from '../outcome.ts';
import type { Row } from '../outbox/rows.ts';
import { publishing } from '../publish/publishing.ts';
import { ATTR, count, record } from '../telemetry/instruments.ts';
import { outcomeAttributes } from '../telemetry/spans.ts';
import type { HeldClaim } from './claim-store.ts';
import type { Claimed, Received } from './claiming.ts';
import { deadlineSignal } from './deadline-signal.ts';
import type { Completion, InboxStore } from './inbox-store.ts';
import { holdLease, type Lease } from './lease.ts';
import { rowCollector } from './outbox-rows.ts';
import { reasonNotToStart } from './run-claimed.ts';
import type { DedupSettings } from './settings.ts';
import { unlessAborted } from '../async/time-limit.ts';
import { withSilenceLimit } from './silence-limit.ts';

export type InboxContext<Tx> = Context &
  Readonly<{
    transaction: Tx;
    /**
     * Calls `work` once this call's writes are committed, before anything is published: for a metric or a line of the log
     * that is about what has happened. Of a call whose writes are dropped it is not called, and not at all where the
     * process dies, or does not learn that the commit was applied; so nothing that must happen belongs into it. What it
     * throws is logged.
     */
    afterCommit(work: () => void): void;
  }>;
export type InboxHandler<Tx> = (message: Message, context: InboxContext<Tx>) => Promise<Outcome>;

type Ran =
  | Readonly<{
      kind: 'committed';
      outcome: Outcome;
      /** Absent when the answer to the commit was lost: they are in the store. */
      rows?: readonly Row[];
    }>
  | Readonly<{ kind: 'rolledBack'; outcome: Outcome }>;

export type RunInTransaction = (received: Received, claimed: Claimed, sentAt: Moment) => Promise<Ran>;

export type InboxRunOptions = Readonly<{
  clock: Clock;
  settings: DedupSettings;
  hasPublisher: boolean;
  maxBytes: number;
  project: string | undefined;
}>;

/** Ends the client's attempts with an error that it does not try again for. */
class RolledBack extends Error {}

export function runInTransaction<Tx>(
  store: InboxStore<Tx>,
  handler: InboxHandler<Tx>,
  options: InboxRunOptions,
): RunInTransaction {
  const { clock, settings } = options;

  /** One run of the handler; throws what it threw. */
  const run = async (
    transaction: Tx,
    { message, context }: Received,
    { held, fencingToken }: Claimed,
    lease: Lease,
  ): Promise<Readonly<{ outcome: Outcome; rows: readonly Row[]; wanted: readonly (() => void)[] }>> => {
    const { transactionMs, maxMessageBytes } = store;
    const project = options.project ?? store.outbox.project();
    const collector = rowCollector(held.request, { ...options, maxMessageBytes, project });
    const late = (): unknown =>
      new TransientError('TRANSACTION_TIMED_OUT', `the handler took longer than ${transactionMs} ms`);
    const guard = deadlineSignal(clock, lease.signal, clock.monotonic() + transactionMs, late);
    const { signal } = guard;
    const inner = { ...context, signal, fencingToken };
    const wanted: (() => void)[] = [];
    const afterCommit = (call: () => void): void => void wanted.push(call);
    const work = publishing(collector, { maxBytes: options.maxBytes })(async () => {
      const outcome: unknown = await handler(message, { ...inner, transaction, afterCommit });
      if (isOutcome(outcome)) return outcome;
      throw noOutcome(outcome, context.isLastTry === true);
    });
    const began = clock.monotonic();
    let outcome: Outcome | undefined;
    try {
      outcome = await unlessAborted(signal, () => work(message, inner));
      signal.throwIfAborted();
      return { outcome, rows: collector.rows, wanted };
    } catch (error) {
      outcome = outcomeOf(error);
      throw error;
    } finally {
      guard.close();
      if (outcome !== undefined) measure(context, clock.monotonic() - began, outcome, lease);
    }
  };

  return async (received, claimed, sentAt) => {
    const { context } = received;
    let { held } = claimed;
    const obstacle = reasonNotToStart(clock, sentAt, context, settings);
    if (obstacle !== undefined) {
      await withdraw(store, held, context);
      const error = leaseLost(`the work was not begun under its claim: ${obstacle}`);
      return { kind: 'rolledBack', outcome: retry(error) };
    }
    const { deadline: deliveryDeadline, signal: parent, log } = context;
    const lease = holdLease(store, clock, { held, sentAt, deliveryDeadline, parent, log });
    let attempts = 0;
    let isOver = false;
    let said: Outcome | undefined;
    let rows: readonly Row[] = [];
    // Of the latest call of the handler: of several, only its writes can have been committed.
    let wanted: readonly (() => void)[] = [];

    const confirmed = async (): Promise<HeldClaim> => {
      const status = await store.look(held);
      if (status.kind === 'held') return status.held;
      throw status.kind === 'lost' ? leaseLost('another delivery has the claim') : new RolledBack();
    };
    const attempt = async (transaction: Tx): Promise<Completion> => {
      if (isOver) throw new RolledBack();
      attempts += 1;
      said = undefined;
      if (attempts > 1) {
        lease.signal.throwIfAborted();
        // The attempt before may have been committed and its reply lost: then the handler need not run again.
        held = await confirmed();
        lease.resume();
      }
      ({ outcome: said, rows, wanted } = await run(transaction, received, claimed, lease));
      if (said.kind !== 'ack') throw new RolledBack();
      const paused = await lease.pause();
      held = paused.certain ? paused.held : await confirmed();
      lease.signal.throwIfAborted();
      return { held, rows };
    };

    let failure: unknown;
    try {
      await withSilenceLimit(clock, (watch) => store.transact((tx) => watch(() => attempt(tx))));
      callEach(wanted, context);
      return { kind: 'committed', outcome: said ?? ack(), rows };
    } catch (error) {
      failure = error;
    } finally {
      isOver = true;
      held = await lease.stop();
    }
    const end = await withdraw(store, held, context);
    if (end === 'completed') {
      callEach(wanted, context);
      return { kind: 'committed', outcome: ack() };
    }
    const outcome = outcomeAfter({ end, said, failure, isLost: lease.isLost() });
    return { kind: 'rolledBack', outcome };
  };
}

function callEach(wanted: readonly (() => void)[], { log }: Context): void {
  for (const call of wanted) {
    try {
      call();
    } catch (error) {
      log.warn('what a handler wanted after its commit failed', { error: textOf(error) });
    }
  }
}

type Failed = Readonly<{
  end: 'withdrawn' | 'lost' | 'unknown';
  said: Outcome | undefined;
  failure: unknown;
  isLost: boolean;
}>;

/** What to say of a message none of whose attempts is known to be committed. */
function outcomeAfter({ end, said, failure, isLost }: Failed): Outcome {
  const refused = said === undefined || said.kind === 'ack' ? outcomeOf(failure) : said;
  if (end === 'lost' || (isLost && refused.kind === 'retry')) {
    return retry(leaseLost('the lease was lost while the handler ran', failure));
  }
  // Another delivery, or a commit of this one that is still on its way, may do the work: the message must not be
  // dead-lettered.
  if (end === 'unknown' && refused.kind === 'deadLetter') return retry(refused.error);
  return refused;
}

/** `unknown`: the claim lapses by itself after its lease. */
async function withdraw<Tx>(
  store: InboxStore<Tx>,
  held: HeldClaim,
  { log }: Context,
): Promise<Failed['end'] | 'completed'> {
  try {
    return await store.withdraw(held);
  } catch (error) {
    const { key } = held.request;
    log.warn('a claim could not be released', { event: 'dedup_release_failed', key, error: textOf(error) });
    return 'unknown';
  }
}

function measure(context: Context, milliseconds: number, outcome: Outcome, lease: Lease): void {
  const attributes = { [ATTR.consumer]: context.consumer, [ATTR.capability]: 'once' };
  record('handler', milliseconds, { ...attributes, ...outcomeAttributes(outcome) });
  if (lease.isLost()) count('leasesLost', attributes);
}
