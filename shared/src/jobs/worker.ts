/**
 * A worker: claims jobs of its roles, runs their handlers under leases, renews and settles, in one conversation with the
 * store. At least once: a job whose process dies is run again after its lease; what a handler commits through
 * `transaction` counts once.
 *
 * One call of the store at a time carries every renewal, settlement and claim that is due. A call of unknown outcome is
 * asked about (`adopt`) before anything else is claimed; what was to be settled is sent again.
 *
 * A run whose lease has ended is dropped, and the store counts a crash. Where it ended because the store did not answer
 * renewals, the job is released instead, which counts if no other process has it by then.
 */
import { randomUUID } from 'node:crypto';
import { type Growth, pauseAfter } from '../async/backoff.ts';
import { elapsedMs, type Moment, momentOf, sleep } from '../clock.ts';
import { codeOf, textOf } from '../errors.ts';
import { port } from '../options.ts';
import { drainOnSigterm } from '../receive/drain-on-sigterm.ts';
import type { ClaimedJob } from './job.ts';
import type { ClaimQuery, Ending, HeldJob, JobStore, Settled } from './job-store.ts';
import { maintenance } from './maintenance.ts';
import { measureRun, measureStart } from './measures.ts';
import { endOfRefusal } from './outcome.ts';
import { RECURRENCE_RULES } from './recurrence.ts';
import { recurringJobs } from './recurring.ts';
import { type Run, startRun } from './run.ts';
import { reportLostLease, reportSettled, reportStolen } from './report.ts';
import {
  type RoleOptions,
  type WorkerOptions,
  type WorkerSettings,
  workerSettings,
} from './worker-options.ts';

export type Worker = Readonly<{
  /** Random for each start: the owner of this worker's leases. */
  owner: string;
  /** Jobs in flight. */
  running(): number;
  /**
   * No more claims; resolves when the runs have ended, or were aborted after the grace and their jobs released. Never
   * rejects. A second call has the same promise.
   */
  stop(): Promise<void>;
}>;

/** What a worker decides by: replaced one at a time where a test wants to see that a rule is needed. */
export type WorkerRules = Readonly<{
  /** From when a lease counts: `sent` is when the call was sent, `arrived` when its answer was read. */
  leaseFrom(sent: Moment, arrived: Moment): Moment;
  /** Whether a handler may start with so much of its lease left. */
  mayStart(leftMs: number, leaseMs: number): boolean;
  /** Whether a suspect may be claimed beside those in flight. */
  asksForSuspect(suspectsInHand: number): boolean;
  /** Whether a claim of unknown outcome is asked about. */
  adopts: boolean;
}>;

export const WORKER_RULES: WorkerRules = {
  leaseFrom: (sent) => sent,
  mayStart: (leftMs, leaseMs) => leftMs >= leaseMs / 3,
  asksForSuspect: (suspectsInHand) => suspectsInHand === 0,
  adopts: true,
};

/** Settlements of one call, so that a statement stays small. */
const MOST_SETTLEMENTS = 500;
const PAUSES: Growth = { minMs: 200, maxMs: 5_000 };
/** After the grace: for handlers to react to the abort, and for the releases to be sent. */
const LAST_CALLS_MS = 7_000;

/**
 * Starts at once. Throws ConfigError for an option that is not valid.
 *
 * @example
 * const running = worker(jobStore, {
 *   ingest: { runTimeout: '45m', handle: { scene: async (job, { signal }) => ack() } },
 * }, { concurrency: 4 });
 * await running.stop();
 */
export function worker<Tx>(
  store: JobStore<Tx>,
  roles: Readonly<Record<string, RoleOptions<Tx>>>,
  options: WorkerOptions = {},
): Worker {
  port(
    ['exchange', 'adopt', 'begin', 'rescue', 'recurrences', 'recur', 'tidy', 'vitals'],
    'a job store, for example postgresJobs(pool)',
  )('store', store);
  return workerBy(WORKER_RULES, store, workerSettings(roles, options));
}

export function workerBy<Tx>(rules: WorkerRules, store: JobStore<Tx>, settings: WorkerSettings<Tx>): Worker {
  const { clock, log, random, concurrency } = settings;
  const owner = randomUUID();
  const shortestLeaseMs = Math.min(...[...settings.roles.values()].map(({ leaseMs }) => leaseMs));
  const runs = new Set<Run>();
  const unsettled = new Map<string, Readonly<{ job: ClaimedJob; ending: Ending }>>();
  const stopped = new AbortController();
  let calls = 0;
  let claimAtMs = clock.monotonic();
  /** When the last call was sent that the store did not answer. */
  let unansweredMs = -Infinity;
  /** Calls in a row that the store did not answer. */
  let failures = 0;
  let isStopping = false;
  let lastMs = Infinity;
  let nap = new AbortController();
  let isNudged = false;

  const nudge = (): void => {
    isNudged = true;
    nap.abort();
  };
  const keyOf = ({ id, token }: HeldJob): string => `${id} ${token}`;
  const isOver = (): boolean =>
    isStopping && ((runs.size === 0 && unsettled.size === 0) || clock.monotonic() >= lastMs);
  const claimNow = (): void => {
    claimAtMs = Math.min(claimAtMs, clock.monotonic());
    nudge();
  };
  const pause = async (milliseconds: number): Promise<void> => {
    nap = new AbortController();
    await sleep(clock, milliseconds, nap.signal);
  };

  /** The end of its run may have made room. */
  const isLimited = ({ role }: ClaimedJob): boolean => settings.roles.get(role)?.limits !== undefined;

  const settleLater = (job: ClaimedJob, ending: Ending): void => {
    unsettled.set(keyOf(job), { job, ending });
    nudge();
  };

  const start = (job: ClaimedJob, sent: Moment): void => {
    const role = settings.roles.get(job.role);
    if (role === undefined) return;
    if (isStopping || !rules.mayStart(role.leaseMs - elapsedMs(clock, sent), role.leaseMs)) {
      return settleLater(job, { kind: 'released' });
    }
    const handler = Object.hasOwn(role.handle, job.kind) ? role.handle[job.kind] : undefined;
    const run = startRun({ store, clock, log, random }, job, sent, { ...role, handler });
    runs.add(run);
    measureStart(job);
    const startedMs = clock.monotonic();
    void run.ended.then((end) => {
      runs.delete(run);
      measureRun(job.role, clock.monotonic() - startedMs);
      nudge();
      if (end.kind === 'settle') settleLater(job, end.ending);
      else if (end.kind === 'settled') answered(job, { kind: 'done' }, end.answer);
      // A call went unanswered since the lease was last confirmed: that is the fault of the store, so no crash.
      else if (run.confirmedMs() <= unansweredMs) settleLater(job, { kind: 'released' });
      else reportLostLease(log, job);
      if (end.kind === 'settled' && isLimited(job)) claimNow();
    });
  };

  const answered = (job: ClaimedJob, ending: Ending, answer: Settled): void => {
    switch (answer.kind) {
      case 'settled':
      case 'already':
        return reportSettled(log, job, ending, answer);
      case 'stolen':
        return reportStolen(log, job);
      case 'refused': {
        const { roles } = settings;
        const backoff = roles.get(job.role)?.backoff ?? { minMs: 0, maxMs: 0 };
        const next = endOfRefusal(answer.error, job, backoff, random());
        log.error('the store does not take the end of a job', {
          event: 'job_refused',
          job: job.id,
          error: textOf(answer.error),
        });
        // What is refused twice lapses with its lease, and is counted as a crash there.
        if (ending.kind === 'done') settleLater(job, next);
      }
    }
  };

  const claimQuery = (): ClaimQuery | undefined => {
    const limit = concurrency - runs.size;
    if (isStopping || limit <= 0 || clock.monotonic() < claimAtMs) return undefined;
    const suspects = [...runs].filter(({ job }) => job.crashes > 0).length;
    return {
      roles: [...settings.roles].map(([role, { leaseMs, limits }]) => ({
        role,
        leaseMs,
        ...(limits !== undefined && { limits }),
      })),
      limit,
      suspect: rules.asksForSuspect(suspects),
      ageingMs: settings.ageingMs,
    };
  };

  /** One call with all that is due. False: there was nothing to say. */
  const talk = async (): Promise<boolean> => {
    const due = [...runs].filter((run) => run.renewAtMs() <= clock.monotonic());
    const settling = [...unsettled.values()].slice(0, MOST_SETTLEMENTS);
    const query = claimQuery();
    if (due.length === 0 && settling.length === 0 && query === undefined) return false;
    calls += 1;
    const call = calls;
    const sent = momentOf(clock);
    try {
      const answer = await store.exchange(owner, call, {
        renew: due.map(({ held, leaseMs }) => ({ ...held, leaseMs })),
        settle: settling.map(({ job: { id, token }, ending }) => ({ held: { id, token }, ending })),
        ...(query !== undefined && { claim: query }),
      });
      failures = 0;
      const counted = rules.leaseFrom(sent, momentOf(clock));
      for (const [index, run] of due.entries()) {
        const renewal = answer.renewed[index];
        if (renewal?.kind !== 'renewed') run.abort('LEASE_LOST');
        else run.renewed(counted);
        if (renewal?.kind === 'renewed' && renewal.cancelAsked) run.abort('CANCELLED');
      }
      for (const [index, { job, ending }] of settling.entries()) {
        unsettled.delete(keyOf(job));
        const settled = answer.settled[index];
        if (settled !== undefined) answered(job, ending, settled);
      }
      if (query !== undefined) {
        const isFull = answer.claimed.length >= query.limit;
        claimAtMs = clock.monotonic() + (isFull ? 0 : jittered(settings.pollMs, random()));
      }
      if (settling.some(({ job }) => isLimited(job))) claimAtMs = clock.monotonic();
      for (const job of answer.claimed) start(job, counted);
    } catch (error) {
      log.warn('the job store did not answer', { event: 'job_store_unavailable', code: codeOf(error) });
      // What comes later than that was held up in this process, which may be the fault of a job.
      if (elapsedMs(clock, sent) < shortestLeaseMs / 3) unansweredMs = sent.monotonicMs;
      await recover(query === undefined || !rules.adopts ? undefined : call, sent);
    }
    return true;
  };

  /** Asks until it is known what the call has claimed; without a claim it only waits, longer each time. */
  const recover = async (call: number | undefined, sent: Moment): Promise<void> => {
    while (clock.monotonic() < lastMs) {
      failures += 1;
      await sleep(clock, jittered(pauseAfter(failures, PAUSES), random()));
      if (call === undefined) return;
      try {
        const adopted = await store.adopt(owner, call);
        for (const job of adopted) start(job, sent);
        return;
      } catch (error) {
        log.warn('the job store did not answer', { event: 'job_store_unavailable', code: codeOf(error) });
      }
    }
  };

  const loop = async (): Promise<void> => {
    while (!isOver()) {
      isNudged = false;
      if ((await talk()) || isNudged) continue;
      const times = [...runs].map((run) => run.renewAtMs());
      if (!isStopping && runs.size < concurrency) times.push(claimAtMs);
      if (isStopping) times.push(lastMs);
      await pause(Math.max(0, Math.min(...times, clock.monotonic() + settings.pollMs) - clock.monotonic()));
    }
  };

  const kept = maintenance(store, settings, {
    stop: stopped.signal,
    due: claimNow,
    inHand: () => [...runs].map(({ job }) => job.kind),
    recurring: recurringJobs(RECURRENCE_RULES, store, settings.recurring, { clock, log }),
  });
  const listening = store.listen?.((role) => {
    if (role === undefined || settings.roles.has(role)) claimNow();
  }, stopped.signal);
  const looping = loop();

  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopping ??= drain());
  const drain = async (): Promise<void> => {
    isStopping = true;
    lastMs = clock.monotonic() + settings.graceMs + LAST_CALLS_MS;
    nudge();
    const graceEnd = new AbortController();
    const endGrace = (): void => graceEnd.abort();
    // The first SIGTERM has been received; the next one ends the grace.
    if (settings.drainOnSigterm) process.on('SIGTERM', endGrace);
    const graceOver = new AbortController();
    void sleep(clock, settings.graceMs, AbortSignal.any([graceEnd.signal, graceOver.signal])).then(() => {
      lastMs = Math.min(lastMs, clock.monotonic() + LAST_CALLS_MS);
      for (const run of runs) run.abort('STOPPING');
      nudge();
    });
    await looping;
    graceOver.abort();
    stopped.abort();
    process.off('SIGTERM', endGrace);
    takeBack();
    await Promise.allSettled([kept, listening]);
  };
  const takeBack = settings.drainOnSigterm ? drainOnSigterm(stop) : (): void => {};

  return { owner, running: () => runs.size, stop };
}

/** A fifth more or less, so that processes that started together come apart. */
const jittered = (milliseconds: number, random: number): number => milliseconds * (0.8 + random * 0.4);
