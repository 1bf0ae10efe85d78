/**
 * The port of the job store: what a worker, a writer and an operator ask of the database.
 *
 * Every method is one commit. One that rejects with TransientError `STORE_UNAVAILABLE` has an unknown outcome: it may have
 * been applied, or may be applied later. Only the store's clock decides when a lease ends, when a job is due and when it
 * is tried again: a caller passes lengths of time and never a time of its own clock.
 */
import { PermanentError } from '../errors.ts';
import type { ClaimedJob, Completion, Enqueued, Job, JobError, JobState, NewJob } from './job.ts';
import type { Vitals } from './health.ts';

/** A run's right to its job: each write of a worker is conditional on it. */
export type HeldJob = Readonly<{ id: string; token: string }>;

type Renewal = HeldJob & Readonly<{ leaseMs: number }>;

/** How a run ended. What also publishes or enqueues is committed by `begin` instead. */
export type Ending = Readonly<
  | { kind: 'done' }
  /** Another run after `delayMs`, or dead after the last one. `counts: false` gives the attempt back. */
  | { kind: 'failed'; error: JobError; delayMs: number; counts: boolean }
  | { kind: 'dead'; error: JobError }
  /** Ready at once for another process, and the attempt is given back: the handler was not at fault. */
  | { kind: 'released' }
  /** A cancellation that was asked for has come into effect. */
  | { kind: 'cancelled' }
>;

export type Settlement = Readonly<{ held: HeldJob; ending: Ending }>;

/**
 * At most so many jobs of the role run at a time, or start in any time of `perMs`; and of those with one limit key. What was
 * claimed by another process before is counted: claims of a role with limits are made one after the other.
 */
export type ClaimLimits = Readonly<{
  running?: number;
  runningPerKey?: number;
  starts?: Readonly<{ most: number; perMs: number }>;
  startsPerKey?: Readonly<{ most: number; perMs: number }>;
}>;

export type ClaimQuery = Readonly<{
  roles: readonly Readonly<{ role: string; leaseMs: number; limits?: ClaimLimits }>[];
  /** At most so many jobs, from 1. */
  limit: number;
  /** Whether one of them may be a suspect, a job with a crash. Never more than one. */
  suspect: boolean;
  /**
   * A ready job goes before one whose priority is `n` higher and which became ready more than `n * ageingMs` after it.
   * Infinity: strictly by priority.
   */
  ageingMs: number;
}>;

export type Exchange = Readonly<{
  renew: readonly Renewal[];
  settle: readonly Settlement[];
  claim?: ClaimQuery;
}>;

/** Positions are those of the question. */
export type ExchangeAnswer = Readonly<{
  renewed: readonly Renewed[];
  settled: readonly Settled[];
  claimed: readonly ClaimedJob[];
}>;

export type Renewed = Readonly<
  | { kind: 'renewed'; cancelAsked: boolean }
  /** The job has another token, or does not run: the run has lost it. */
  | { kind: 'lost' }
>;

export type Settled = Readonly<
  | { kind: 'settled'; state: JobState }
  /** This very run has been settled before, for example by a call whose reply was lost: `state` says how. */
  | { kind: 'already'; state: JobState }
  /** The job was taken from this run. Nothing changed. */
  | { kind: 'stolen' }
  /** The database does not take this settlement, and no repetition will change that. Nothing changed. */
  | { kind: 'refused'; error: unknown }
>;

export const keyConflict = (first: string): PermanentError =>
  new PermanentError('KEY_CONFLICT', `the key of a next job belongs to job ${first}, which is another one`);

/** A transaction in which a handler writes, and by whose commit its job is done. */
export type JobTransaction<Tx> = Readonly<{
  tx: Tx;
  /**
   * Commits the handler's writes, the job as done, its log row, its messages as rows of the outbox and its next jobs, all or
   * nothing. `stolen` and `refused` have rolled all of it back. `refused` carries PermanentError `KEY_CONFLICT` for a next job
   * whose key belongs to another, and what the outbox says of a message. Rejects with `STORE_UNAVAILABLE`: it may be committed.
   */
  commit(completion: Completion): Promise<Settled>;
  /** Never rejects. Does nothing after `commit`. */
  rollback(): Promise<void>;
}>;

/** What one pass over jobs whose time or lease is over has changed. */
export type Rescued = Readonly<{
  /** Due jobs that became ready. */
  promoted: number;
  /** Expired runs whose jobs are ready again, dead (`CRASHED`), or cancelled as was asked. */
  rescued: number;
  dead: number;
  cancelled: number;
  /** More may be due. */
  more: boolean;
}>;

export type DeadJob = Job & Readonly<{ reason: JobError; diedMs: number }>;
export type DeadPage = Readonly<{ items: readonly DeadJob[] /** Absent on the last page. */; next?: string }>;
type DeadQuery = Readonly<{
  role?: string;
  limit: number /** `next` of the page before. */;
  after?: string;
}>;

/** How many jobs stand where, of one role or of all. A count ends at `MOST_COUNTED` and then reads as "or more". */
export type Depths = Readonly<{
  ready: number;
  waiting: number;
  running: number;
  dead: number;
  suspects: number;
}>;
export const MOST_COUNTED = 10_001;

/** A recurring job: its role and name, and the expression by which its due times are reckoned. */
export type RecurrenceId = Readonly<{ role: string; name: string; cron: string }>;

export type Recur = Readonly<{
  id: RecurrenceId;
  /** The due time that `recurrences` answered, and the one up to which all is decided now. Milliseconds since the epoch. */
  fromMs: number;
  toMs: number;
  /** Each with a key. */
  jobs: readonly NewJob[];
}>;

/** Rows that were deleted: of expired keys, and of the log. */
export type Tidied = Readonly<{ keys: number; logged: number }>;

/** `Tx` is the store's transaction. */
export type JobWriter<Tx> = Readonly<{
  /**
   * Writes jobs in the caller's transaction. Answers in the order of `jobs`. A key that another transaction is writing is
   * waited for; keys are taken in one order, so that two batches never wait for each other. Rejects with PermanentError
   * `INVALID_JOB` or `LIMIT_EXCEEDED` before anything is written.
   */
  write(tx: Tx, jobs: readonly NewJob[]): Promise<readonly Enqueued[]>;
}>;

export type JobStore<Tx> = JobWriter<Tx> &
  Readonly<{
    /** As `write`, in a commit of its own. Rejects with STORE_UNAVAILABLE, too: the jobs may be there. */
    submit(jobs: readonly NewJob[]): Promise<readonly Enqueued[]>;
    /**
     * One commit: settles, renews, claims. `owner` names a process start and `call` one call of it, from 1 upwards; a claim
     * keeps both. A claim counts an attempt and is durable once this answers. What is being settled here is not claimed here.
     */
    exchange(owner: string, call: number, what: Exchange): Promise<ExchangeAnswer>;
    /** What a call of unknown outcome has claimed, if it was applied. One that is applied later lapses with its lease. */
    adopt(owner: string, call: number): Promise<readonly ClaimedJob[]>;
    /** For a running job. Rejects with TransientError `STORE_UNAVAILABLE` where no transaction can be had. */
    begin(held: HeldJob): Promise<JobTransaction<Tx>>;
    /**
     * Makes due jobs ready, and decides about at most `limit` runs whose lease is over. None of them before a minute after
     * the store's own start: what could not be renewed while the store was away has not crashed.
     */
    rescue(limit: number): Promise<Rescued>;
    /** The row is locked and then decided about: of a cancellation and a claim at once, one sees the other. */
    cancel(id: string): Promise<'cancelled' | 'requested' | 'tooLate'>;
    /** Newest first. */
    dead(query: DeadQuery): Promise<DeadPage>;
    /** Dead jobs are ready again under their ID and key, without attempts and crashes. Answers how many were dead. */
    relaunch(ids: readonly string[]): Promise<number>;
    /** Dead jobs are gone; their keys expire. Answers how many were dead. */
    discard(ids: readonly string[]): Promise<number>;
    look(role?: string): Promise<Depths>;
    /** What `health` is judged by, over the last `windowMs`. */
    vitals(windowMs: number): Promise<Vitals>;
    /**
     * The store's time, and up to which due time each recurrence is decided, in the order of the question: of one that is not
     * known yet the store's time, which is kept, or undefined while another process is keeping it. Milliseconds since the epoch.
     */
    recurrences(
      ids: readonly RecurrenceId[],
    ): Promise<Readonly<{ nowMs: number; madeMs: readonly (number | undefined)[] }>>;
    /**
     * One commit: the recurrence is decided up to `toMs`, and its jobs are enqueued; a key that is taken counts as made. False,
     * and nothing has changed, where it stands elsewhere than at `fromMs`: another process has decided.
     */
    recur(what: Recur): Promise<boolean>;
    /** Deletes what has expired, in small batches, and takes the sample of the minute. Any number of processes at once. */
    tidy(): Promise<Tidied>;
    /** Tells listening workers that a role has jobs: after the commit, and a hint only. */
    wake(role: string): Promise<void>;
    /** Calls `woken` for every wake-up until `signal` is aborted, and with no role after a connection was made anew. */
    listen?(woken: (role?: string) => void, signal: AbortSignal): Promise<void>;
  }>;
