/**
 * One run of a job: its handler, under a lease that is counted from the sending of the claim or of the last confirmed
 * renewal, on this process's own clocks.
 *
 * A run ends in one way: with its outcome, or with the reason for which its signal was aborted. After the end of its lease
 * nothing more is sent for it: what it has done may be done again, and the store says so by a crash. A handler that goes on
 * after the abort keeps no slot; its token is old.
 */
import { type Clock, elapsedMs, type Moment, sleep } from '../clock.ts';
import { deadlineSignal } from '../dedup/deadline-signal.ts';
import { codeOf, ConfigError, leaseLost, storeUnavailable, TransientError } from '../errors.ts';
import { type Log, withFields } from '../log.ts';
import { type Backoff, backoffMs } from './decide.ts';
import type { ClaimedJob, Completion } from './job.ts';
import type { Ending, HeldJob, JobStore, JobTransaction, Settled } from './job-store.ts';
import {
  endOf,
  endOfRefusal,
  jobError,
  type JobContext,
  type JobHandler,
  type JobOutcome,
  outcomeOfRun,
} from './outcome.ts';

export type RunSettings<Tx> = Readonly<{
  leaseMs: number;
  maxRunMs: number;
  backoff: Backoff;
  handler: JobHandler<Tx> | undefined;
}>;

export type RunPorts<Tx> = Readonly<{
  store: Pick<JobStore<Tx>, 'begin'>;
  clock: Clock;
  log: Log;
  random: () => number;
}>;

/** How a run has ended, for the worker. */
type RunEnd = Readonly<
  /** To be sent to the store. */
  | { kind: 'settle'; ending: Ending }
  /** The store has answered already. */
  | { kind: 'settled'; answer: Settled }
  /** The lease is lost. */
  | { kind: 'dropped' }
>;

export type Run = Readonly<{
  job: ClaimedJob;
  held: HeldJob;
  leaseMs: number;
  /** When to renew next, on the monotonic clock; Infinity while nothing is to be renewed. */
  renewAtMs(): number;
  /** When the claim or the last confirmed renewal was sent, on the monotonic clock. */
  confirmedMs(): number;
  /** A renewal that was sent then was confirmed. */
  renewed(sent: Moment): void;
  /** The job was taken over, cancelled, or the process ends. */
  abort(reason: Abort): void;
  /** Never rejects. */
  ended: Promise<RunEnd>;
}>;

type Abort = 'LEASE_LOST' | 'CANCELLED' | 'STOPPING' | 'RUN_TOO_LONG';

/** What a handler may still say after its signal was aborted because the process ends. */
const LAST_WORD_MS = 1_000;
const COMMIT_PAUSE_MS = 500;

const TEXTS: Readonly<Record<Abort, string>> = {
  LEASE_LOST: 'the lease is over: the job may be run elsewhere',
  CANCELLED: 'the job was cancelled',
  STOPPING: 'the process ends',
  RUN_TOO_LONG: 'the run took longer than its runTimeout',
};

const reasonFor = (abort: Abort): TransientError =>
  abort === 'LEASE_LOST' ? leaseLost(TEXTS[abort]) : new TransientError(abort, TEXTS[abort]);

export function startRun<Tx>(
  ports: RunPorts<Tx>,
  job: ClaimedJob,
  claimSent: Moment,
  settings: RunSettings<Tx>,
): Run {
  const { store, clock, random } = ports;
  const { leaseMs, backoff, handler } = settings;
  const log = withFields(ports.log, { job: job.id, role: job.role, kind: job.kind, attempt: job.attempt });
  const held: HeldJob = { id: job.id, token: job.token };
  let sent = claimSent;
  let phase: 'running' | 'committing' | 'over' = 'running';
  let opened: Promise<JobTransaction<Tx>> | undefined;

  const isExpired = (): boolean => elapsedMs(clock, sent) >= leaseMs;
  const guard = deadlineSignal(
    clock,
    new AbortController().signal,
    sent.monotonicMs + leaseMs,
    () => reasonFor('LEASE_LOST'),
    isExpired,
  );
  const abort = (reason: Abort): void => guard.abort(reasonFor(reason));
  const cancelMaxRun = clock.after(settings.maxRunMs, () => abort('RUN_TOO_LONG'));

  const context: JobContext<Tx> = {
    signal: guard.signal,
    get fencingToken() {
      if (isExpired()) throw reasonFor('LEASE_LOST');
      return job.token;
    },
    log,
    now: () => clock.now(),
    isLastTry: job.attempt >= job.maxAttempts,
    async transaction() {
      guard.signal.throwIfAborted();
      opened ??= store.begin(held);
      return (await opened).tx;
    },
  };

  const rollback = async (): Promise<void> => {
    try {
      await (await opened)?.rollback();
    } catch {
      // It could not be begun.
    }
  };

  /** Commits with the handler's own writes, if it has any. Those are committed once or not at all, so never again. */
  const commit = async (completion: Completion): Promise<RunEnd> => {
    phase = 'committing';
    for (;;) {
      if (isExpired()) {
        await rollback();
        return { kind: 'dropped' };
      }
      try {
        const answer = await (await (opened ?? store.begin(held))).commit(completion);
        if (answer.kind !== 'refused') return { kind: 'settled', answer };
        return { kind: 'settle', ending: endOfRefusal(answer.error, job, backoff, random()) };
      } catch (error) {
        const isUnknown = error instanceof TransientError && error.code === 'STORE_UNAVAILABLE';
        log.warn('the completion of a job was not confirmed', {
          event: 'job_commit_unknown',
          code: codeOf(error),
        });
        if (opened !== undefined || !isUnknown) {
          // If it was committed after all, the store answers this with `already`.
          await rollback();
          const delayMs = backoffMs(job.attempt, backoff, random());
          const cause = isUnknown ? storeUnavailable('the outcome of the commit is unknown', error) : error;
          return {
            kind: 'settle',
            ending: { kind: 'failed', error: jobError(cause), delayMs, counts: false },
          };
        }
        await sleep(clock, COMMIT_PAUSE_MS);
      }
    }
  };

  const finish = async (outcome: JobOutcome): Promise<RunEnd> => {
    const end = endOf(outcome, job, backoff, random());
    if (end.kind === 'complete') return commit(end.completion);
    if (end.ending.kind === 'done' && opened !== undefined) return commit({ publish: [], enqueue: [] });
    await rollback();
    return { kind: 'settle', ending: end.ending };
  };

  const aborted = (): Promise<'aborted'> =>
    new Promise((resolve) => {
      const { signal } = guard;
      if (signal.aborted) return resolve('aborted');
      signal.addEventListener('abort', () => resolve('aborted'), { once: true });
    });

  const afterAbort = async (working: Promise<JobOutcome>): Promise<RunEnd> => {
    const reason = codeOf(guard.signal.reason) as Abort;
    if (reason === 'STOPPING') {
      const last = await Promise.race([working, sleep(clock, LAST_WORD_MS)]);
      if (last?.kind === 'ack' && !isExpired()) return finish(last);
    }
    await rollback();
    switch (reason) {
      case 'LEASE_LOST':
        return { kind: 'dropped' };
      case 'CANCELLED':
        return { kind: 'settle', ending: { kind: 'cancelled' } };
      case 'STOPPING':
        return { kind: 'settle', ending: { kind: 'released' } };
      case 'RUN_TOO_LONG': {
        const delayMs = backoffMs(job.attempt, backoff, random());
        const error = { code: reason, text: TEXTS[reason] };
        return { kind: 'settle', ending: { kind: 'failed', error, delayMs, counts: true } };
      }
    }
  };

  const run = async (): Promise<RunEnd> => {
    const working = outcomeOfRun(async () => {
      if (handler === undefined) throw noHandler(job);
      return handler(job, context);
    });
    const first = await Promise.race([working, aborted()]);
    // After a stall the handler's answer may be read before the timer of its deadline.
    return first === 'aborted' || guard.isAborted() ? afterAbort(working) : finish(first);
  };
  const over = async (): Promise<RunEnd> => {
    try {
      return await run();
    } finally {
      phase = 'over';
      cancelMaxRun();
      guard.close();
    }
  };

  return {
    job,
    held,
    leaseMs,
    renewAtMs: () => (phase === 'running' && !guard.isAborted() ? sent.monotonicMs + leaseMs / 3 : Infinity),
    confirmedMs: () => sent.monotonicMs,
    renewed(moment) {
      sent = moment;
      guard.moveTo(moment.monotonicMs + leaseMs);
    },
    abort,
    ended: over(),
  };
}

/** A deployment's fault: another version of the worker may have it, so the job waits. */
const noHandler = ({ role, kind }: ClaimedJob): ConfigError =>
  new ConfigError('HANDLER_MISSING', `role ${role} has no handler for kind ${kind}`);
