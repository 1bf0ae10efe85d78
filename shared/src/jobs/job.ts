/**
 * What a job is, and the words of this room.
 *
 * A **job** is a row that commits with the caller's data and is then worked at least once, under a lease, by whichever
 * process claims it. Its **state** is `ready` (a worker may claim it), `waiting` (for its time, or after a failure),
 * `running` (under a lease), or one of three ends: `done`, `dead`, `cancelled`. A **role** names a kind of worker, a
 * **kind** the handler within it. A **run** is one start of a handler; `attempts` counts the runs that count towards
 * `maxAttempts`, `crashes` those that ended with their lease. A job with a crash is a **suspect**. The **token** grows with every claim of a job.
 */
import { type Duration, toMilliseconds } from '../duration.ts';
import { PermanentError } from '../errors.ts';
import { byteLength, type OutgoingMessage } from '../message.ts';
import { shownValue } from '../shown-value.ts';

export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | Readonly<{ [name: string]: Json | undefined }>;

/** Higher runs first, except for what has waited longer (`ageing`). */
export type Priority = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9;

export type JobState = 'ready' | 'running' | 'waiting' | 'done' | 'dead' | 'cancelled';

export type NewJob = Readonly<{
  /** Which workers take it: 1 to 100 characters of letters, digits, `_`, `-` and `.`. */
  role: string;
  /** Which handler of the role runs it, of the same characters. */
  kind: string;
  /** A reference rather than the data: at most 8 KiB as JSON. */
  payload: Json;
  /** One job for each key, until 7 days after its end; at most 1,000 bytes. Without one every enqueue is a job. */
  key?: string;
  /**
   * What it shares limits with: the other jobs of its role with this text, for example a customer (1 to 200 bytes). Without
   * one it counts against the limits of the role alone.
   */
  limitKey?: string;
  /** Default 5. By custom 8 for a person who waits, 5 for what is scheduled, 2 for a backfill. */
  priority?: Priority;
  /** Not before so long after the enqueue, by the store's clock. */
  after?: Duration;
  /** Not before this time, by the store's clock. Not together with `after`. */
  at?: Date;
  /** Runs before the job is dead, default 3, at most 1,000. */
  maxAttempts?: number;
}>;

/** What became of one enqueue. */
export type Enqueued = Readonly<
  | { kind: 'enqueued'; id: string }
  /** A job with this key and this content is there already: a success. `state` is where that job stands. */
  | { kind: 'repeated'; id: string; state: JobState }
  /** The key belongs to a job with another role, kind or payload: nothing was written. */
  | { kind: 'conflict'; first: string }
>;

export type Job = Readonly<{
  id: string;
  role: string;
  kind: string;
  payload: Json;
  priority: Priority;
  /** This run, from 1. */
  attempt: number;
  maxAttempts: number;
  /** Runs of this job that ended with their process or its lease. */
  crashes: number;
  /** The store's times, milliseconds since the epoch: of the enqueue, and since when it was ready. */
  createdMs: number;
  readyMs: number;
}>;

export type ClaimedJob = Job &
  Readonly<{
    /** Digits; greater with each claim of this job, and never given twice. */
    token: string;
    /** The store's time of the claim, milliseconds since the epoch. */
    claimedMs: number;
  }>;

/** Why a run failed, as it is stored: the code is stable, the text is for people. */
export type JobError = Readonly<{ code: string; text: string }>;

/** What else is written when a job is done: all in one commit. */
export type Completion = Readonly<{
  publish: readonly OutgoingMessage[];
  enqueue: readonly NewJob[];
}>;

export const JOB_LIMITS = {
  payloadBytes: 8_192,
  keyBytes: 1_000,
  limitKeyBytes: 200,
  nameCharacters: 100,
  maxAttempts: 1_000,
  /** Jobs of one enqueue: what one statement takes without holding others up for long. */
  batch: 10_000,
} as const;

const DEFAULT_PRIORITY: Priority = 5;
const DEFAULT_ATTEMPTS = 3;
/** Runs that may end with their process before the job is dead, whatever `maxAttempts` says. */
export const MOST_CRASHES = 3;

export const PRIORITIES: readonly Priority[] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

/** A job as every store takes it: checked, with the defaults filled in and without a clock of the caller's. */
export type CheckedJob = Readonly<{
  role: string;
  kind: string;
  payload: Json;
  key: string | undefined;
  limitKey: string | undefined;
  priority: Priority;
  /** Milliseconds from now on the store's clock, or a time that the caller named. */
  delayMs: number;
  atMs: number | undefined;
  maxAttempts: number;
}>;

const NAME = /^[A-Za-z0-9_.-]{1,100}$/;

/** Throws PermanentError `INVALID_JOB` or `LIMIT_EXCEEDED`, naming the field. Nothing is written for any of them then. */
export function checkJobs(jobs: readonly NewJob[]): readonly CheckedJob[] {
  const given: unknown = jobs;
  if (!Array.isArray(given)) throw invalid('jobs', given, 'a list of jobs');
  if (jobs.length > JOB_LIMITS.batch) throw tooLarge('jobs', `${jobs.length} jobs`, `${JOB_LIMITS.batch}`);
  return jobs.map((job, index) => checkJob(`jobs[${index}]`, job));
}

function checkJob(path: string, job: NewJob): CheckedJob {
  const given: unknown = job;
  if (typeof given !== 'object' || given === null) throw invalid(path, given, 'role, kind and payload');
  const { role, kind, payload, key, limitKey, priority = DEFAULT_PRIORITY, after, at } = job;
  const { maxAttempts = DEFAULT_ATTEMPTS } = job;
  for (const name of Object.keys(job)) {
    if (!KNOWN.has(name)) throw new PermanentError('INVALID_JOB', `${path}.${name} is no part of a job`);
  }
  checkName(`${path}.role`, role);
  checkName(`${path}.kind`, kind);
  checkPayload(`${path}.payload`, payload);
  if (key !== undefined) checkKey(`${path}.key`, key, JOB_LIMITS.keyBytes);
  if (limitKey !== undefined) checkKey(`${path}.limitKey`, limitKey, JOB_LIMITS.limitKeyBytes);
  if (!PRIORITIES.includes(priority)) throw invalid(`${path}.priority`, priority, '0 to 9');
  if (!Number.isSafeInteger(maxAttempts) || maxAttempts < 1 || maxAttempts > JOB_LIMITS.maxAttempts) {
    throw invalid(`${path}.maxAttempts`, maxAttempts, `1 to ${JOB_LIMITS.maxAttempts}`);
  }
  if (after !== undefined && at !== undefined) throw invalid(`${path}.at`, at, 'one of after and at');
  const atMs = at === undefined ? undefined : timeOf(`${path}.at`, at);
  const delayMs = after === undefined ? 0 : toMilliseconds(after, `${path}.after`);
  return { role, kind, payload, key, limitKey, priority, delayMs, atMs, maxAttempts };
}

const KNOWN: ReadonlySet<string> = new Set([
  'role',
  'kind',
  'payload',
  'key',
  'limitKey',
  'priority',
  'after',
  'at',
  'maxAttempts',
] satisfies readonly (keyof NewJob)[]);

/** Throws PermanentError for what is no name of a role or a kind. */
export function checkName(path: string, name: unknown): void {
  if (typeof name === 'string' && NAME.test(name)) return;
  throw invalid(path, name, `1 to ${JOB_LIMITS.nameCharacters} letters, digits, "_", "-" or "."`);
}

function checkKey(path: string, key: unknown, most: number): void {
  if (typeof key !== 'string' || key === '' || !key.isWellFormed() || key.includes('\0')) {
    throw invalid(path, key, 'a well-formed text without U+0000');
  }
  const size = byteLength(key);
  if (size > most) throw tooLarge(path, `${size} bytes`, `${most} bytes`);
}

function checkPayload(path: string, payload: unknown): void {
  let text: string | undefined;
  try {
    text = JSON.stringify(payload);
  } catch {
    // A circle, or a bigint: no JSON.
  }
  if (text === undefined) throw invalid(path, payload, 'a value that JSON can hold');
  // jsonb refuses U+0000 and half a surrogate pair: https://www.postgresql.org/docs/current/datatype-json.html
  if (/(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/i.test(text)) {
    throw new PermanentError('INVALID_JOB', `${path} holds U+0000 or half a surrogate pair`);
  }
  const size = byteLength(text);
  if (size <= JOB_LIMITS.payloadBytes) return;
  throw tooLarge(path, `${size} bytes`, `${JOB_LIMITS.payloadBytes} bytes, or a reference to what is stored`);
}

function timeOf(path: string, at: unknown): number {
  const isTime = at instanceof Date && at.getTime() >= 0 && at.getTime() < LAST_MS;
  if (!isTime) throw invalid(path, at, 'a Date from 1970 to 9999');
  return at.getTime();
}

const LAST_MS = Date.UTC(9_999, 11, 31);

const invalid = (path: string, value: unknown, accepted: string): PermanentError =>
  new PermanentError('INVALID_JOB', `${path} is ${shownValue(value)}; accepted: ${accepted}`);
const tooLarge = (path: string, size: string, accepted: string): PermanentError =>
  new PermanentError('LIMIT_EXCEEDED', `${path} has ${size}; accepted: at most ${accepted}`);
