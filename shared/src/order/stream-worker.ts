/**
 * The worker of one stream in one process. It has a mailbox and one loop, and is in one of these states:
 *
 *   idle      entered when nothing waits for an answer and no batch is unsettled. Only `deliver` and `visit` end it.
 *   cycling   entered from idle and from running. A plan is made of all that has arrived, and committed (cycle.ts:
 *             reading, planning, looking, encoding, committing). Deliveries that arrive meanwhile join the next plan.
 *             A store that stays silent ends it: all that waits is refused, and comes again.
 *   running   entered when the commit has started a batch (batch.ts). It ends with the batch, and is interrupted by
 *             the checkpoint alone: once something has waited for a second, a commit beside the handler holds it, and
 *             counts what has run. A checkpoint starts nothing, changes no lease and never answers the batch's host.
 *
 * The loop lives only while something waits for an answer, so that it needs no time after a response: on a function an
 * instance may be frozen then, and would take a lease with it.
 */
import assert from 'node:assert/strict';
import { withTimeLimit } from '../async/time-limit.ts';
import { type Cancel, elapsedMs } from '../clock.ts';
import { leaseLost } from '../errors.ts';
import { silent } from '../log.ts';
import { type Outcome, retry } from '../outcome.ts';
import { newProgress, type Batch, type Progress, runBatch } from './batch.ts';
import { type Committed, type Inputs, streamCycle } from './cycle.ts';
import type { Delivery, Visit, VisitContext } from './mailbox.ts';
import type { StreamPolicy } from './options.ts';
import { type Complete, STOPPING, WAIT_MS } from './plan.ts';
import { reportEvents, requestWake } from './report.ts';
import { discard } from './stored-form.ts';
import type { HeldMessage, StreamRef } from './stream-store.ts';

export type StreamWorker = Readonly<{
  deliver(delivery: Delivery): void;
  /** False where the worker is not idle: the visit has nothing to do then. */
  visit(visit: Visit): boolean;
  /** Starts nothing any more, settles what runs, releases the stream, refuses the rest. Resolves when it is idle. */
  stop(): Promise<void>;
}>;

/** Wake-ups and discards are awaited so long before the answers that they belong to. */
const CHORES_MS = 3_000;

/** `onIdle` and `onBusy`: for a registry that drops idle workers only. `fits`: see cycle.ts. */
export function streamWorker(
  policy: StreamPolicy,
  ref: StreamRef,
  { onIdle, onBusy, fits }: Readonly<{ onIdle(): void; onBusy(): void; fits(bytes: number): boolean }>,
): StreamWorker {
  const { clock } = policy;
  const cycle = streamCycle(policy, ref, fits);
  const stop = new AbortController();
  let mailbox: readonly Delivery[] = [];
  let visiting: { readonly visit: Visit; taken: boolean; drained: number } | undefined;
  /** Of the batch that was started last, until a commit settles it. */
  let progress: Progress | undefined;
  let loop: Promise<void> | undefined;
  /** The log of what arrived last. */
  let latest: Pick<VisitContext, 'log'> = { log: silent };
  /** Called when something arrives, or has run, that a checkpoint may have to answer. */
  let notice = (): void => undefined;

  const inputs = (running?: Batch): Inputs => ({
    mailbox,
    visit: visiting?.visit,
    progress,
    running,
    isStopping: stop.signal.aborted,
  });
  const isWaitedFor = (): boolean =>
    visiting !== undefined || [...mailbox, ...unsettled()].some((one) => !one.isOver());
  /** Deliveries that have run, and the one that was kept as their host. */
  const unsettled = (): readonly Delivery[] => {
    const { done = [], end, host } = progress ?? {};
    const ran = [...done.map(({ entry }) => entry), end?.entry].flatMap((entry) => entry?.delivery ?? []);
    return host !== undefined && 'kept' in host && host.kept() !== undefined ? [...ran, host] : ran;
  };

  function wakeUp(): void {
    if (loop !== undefined) return notice();
    onBusy();
    loop = work();
  }

  async function work(): Promise<void> {
    // What arrives in the same turn of the process is one mailbox.
    await Promise.resolve();
    while (mailbox.length > 0 || visiting !== undefined || progress !== undefined) {
      try {
        const committed = await cycle.next(inputs, isWaitedFor);
        progress = undefined;
        if (committed.plan.batch?.needsTurn !== true) visiting?.visit.endTurn();
        conclude(committed.plan);
        if (committed.plan.batch !== undefined) await run(committed.plan.batch, committed);
      } catch (error) {
        refuseAll(error);
      }
    }
    // Not behind an await: a delivery that arrived in between would wake up a loop that has ended.
    loop = undefined;
    onIdle();
  }

  async function run(batch: Batch, { token, sentAt }: Committed): Promise<void> {
    const lease = {
      owner: batch.owner,
      token,
      deadline: sentAt.monotonicMs + policy.leaseMs,
      // The monotonic clock stops while a machine is suspended, and the lease does not.
      isOver: () => elapsedMs(clock, sentAt) >= policy.leaseMs,
    };
    const lost = new AbortController();
    const current = newProgress(batch);
    progress = current;
    let isRunning = true;
    const signals = { stop: stop.signal, lost: lost.signal };
    const ended = runBatch(policy, ref, lease, batch, current, signals, () => notice()).finally(() => {
      isRunning = false;
      notice();
    });
    while (isRunning) {
      await waitedLong(batch, current, () => isRunning);
      if (!isRunning) break;
      try {
        const { plan } = await cycle.next(
          () => inputs(batch),
          () => isRunning,
        );
        conclude(plan);
        if (plan.events.lost) lost.abort();
      } catch {
        // The commit behind the batch decides about all of it; until then its deliveries have their own timers.
        await ended;
      }
    }
    await ended;
    const begun = new Set([...current.done.map(({ entry }) => entry), current.end?.entry]);
    mailbox = [
      ...batch.entries.flatMap((entry) => (begun.has(entry) ? [] : (entry.delivery ?? []))),
      ...mailbox,
    ];
  }

  /** Resolves when a delivery that a checkpoint could answer has waited for a second, or the batch has ended. */
  function waitedLong(batch: Batch, { done }: Progress, isRunning: () => boolean): Promise<void> {
    // Behind the commit before it: a backlog has always waited, and is no reason for one commit after the other.
    const committedAt = clock.monotonic();
    return new Promise((resolve) => {
      let cancel: Cancel | undefined;
      const numbers = new Set(batch.entries.map(({ number }) => number));
      notice = () => {
        if (!isRunning()) return finish();
        if (cancel !== undefined) return;
        const waiting = mailbox.filter((one) => !numbers.has(one.arrival.number));
        const ran = done.flatMap(({ entry }) => entry.delivery ?? []);
        const since = [...waiting, ...ran]
          .filter((one) => one !== batch.host && !one.isOver())
          .map(({ arrivedAt }) => arrivedAt);
        if (since.length === 0) return;
        cancel = clock.after(Math.max(Math.min(...since), committedAt) + WAIT_MS - clock.monotonic(), finish);
      };
      const finish = (): void => {
        cancel?.();
        notice = () => undefined;
        resolve();
      };
      notice();
    });
  }

  /** What an applied commit means for those that wait. */
  function conclude(plan: Complete): void {
    const { answers, keep, batch, asksTurn, endsVisit, events } = plan;
    const taken = new Set([
      ...answers.map(({ delivery }) => delivery),
      ...(batch?.entries ?? []).map(({ delivery }) => delivery),
    ]);
    keep?.delivery.keep(keep.outcome);
    mailbox = mailbox.filter((one) => !taken.has(one) && one !== keep?.delivery && one !== asksTurn);
    if (batch !== undefined) for (const one of mailbox) one.passOver();
    reportEvents(policy, latest, ref, events);
    const visited = visiting;
    if (visited !== undefined) {
      visited.drained += events.drained;
      visited.taken ||= batch !== undefined || Object.keys(plan.fields).length > 0;
      if (endsVisit) visiting = undefined;
    }
    const isProgress =
      taken.size > 0 ||
      endsVisit ||
      keep !== undefined ||
      asksTurn !== undefined ||
      Object.keys(plan.fields).length > 0;
    assert.ok(
      isProgress || progress !== undefined,
      'a cycle that changes nothing would be repeated for ever',
    );
    const answer = (): void => {
      for (const { delivery, outcome } of answers) delivery.answer(outcome);
      if (asksTurn !== undefined && 'askTurn' in asksTurn) asksTurn.askTurn();
      if (endsVisit && visited !== undefined) {
        const { visit, taken, drained } = visited;
        visit.answer({ taken, drained, asksTurn: visit === asksTurn });
      }
    };
    const chores = choresOf(plan);
    if (chores.length === 0) return answer();
    // Awaited before the answers, because a function may get no time after the last one.
    void withTimeLimit(
      clock,
      CHORES_MS,
      () => Promise.all(chores),
      () => leaseLost('not done in time'),
    ).then(answer, answer);
  }

  function choresOf({ answers, remove, wakeAt }: Complete): readonly Promise<void>[] {
    // What is removed is done; so is what was stored for a delivery that was not held. A retry may be held yet.
    const stored = answers.flatMap(({ delivery, outcome }) =>
      isUnheld(outcome) ? (delivery.form() ?? []) : [],
    );
    const ended = [...remove, ...stored].filter((one): one is HeldMessage => one !== 'tooLarge');
    const large = ended.filter(({ payload }) => payload !== undefined);
    return [
      ...(large.length > 0 ? [discard(policy.payloads, latest, large)] : []),
      ...(wakeAt === undefined ? [] : [requestWake(policy, latest, ref, wakeAt)]),
    ];
  }

  /** Nothing is known of the store: what waits comes again, and what was safe already is answered. */
  function refuseAll(error: unknown): void {
    for (const one of [...unsettled(), ...mailbox]) one.answer(one.kept() ?? retry(error));
    mailbox = [];
    progress = undefined;
    visiting?.visit.refuse(error);
    visiting = undefined;
    cycle.forget();
  }

  return {
    deliver(delivery) {
      latest = delivery.context;
      if (stop.signal.aborted) return delivery.answer(STOPPING);
      mailbox = [...mailbox, delivery];
      wakeUp();
    },
    visit(visit) {
      if (loop !== undefined || stop.signal.aborted) return false;
      latest = visit.context;
      visiting = { visit, taken: false, drained: 0 };
      wakeUp();
      return true;
    },
    async stop() {
      stop.abort();
      await loop;
    },
  };
}

const isUnheld = (outcome: Outcome): boolean =>
  outcome.kind === 'deadLetter' || (outcome.kind === 'ack' && outcome.reason !== 'held');
