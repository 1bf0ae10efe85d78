/**
 * The rules of the lease protocol: what each event makes of a job. Pure, over one record and the store's time, so that a
 * store only has to read, decide and write in one step.
 *
 * Each function answers `undefined` where the rule says that nothing changes.
 */
import { type Growth, pauseAfter } from '../async/backoff.ts';
import type { ClaimQuery, Ending, HeldJob } from './job-store.ts';
import { type JobError, type JobState, type Json, MOST_CRASHES, type Priority } from './job.ts';

export type JobRecord = Readonly<{
  /** Grows with each enqueue. */
  id: number;
  role: string;
  kind: string;
  payload: Json;
  /** The hash of its key. */
  key: string | undefined;
  limitKey: string | undefined;
  state: 'ready' | 'running' | 'waiting';
  priority: Priority;
  /** When it is due; of one that is ready or runs since when it was. */
  runAtMs: number;
  attempts: number;
  crashes: number;
  maxAttempts: number;
  /** 0 before the first claim. */
  token: number;
  /** Which process claimed it last, and by which call; absent after a rescue. */
  owner: string | undefined;
  call: number | undefined;
  /** While it runs. */
  leaseUntilMs: number;
  claimedMs: number;
  cancelAsked: boolean;
  error: JobError | undefined;
  createdMs: number;
}>;

type EndState = Extract<JobState, 'done' | 'dead' | 'cancelled'>;

/** The job goes on, or has ended and leaves the table of unfinished work. */
export type Change = Readonly<
  | { kind: 'kept'; record: JobRecord }
  | { kind: 'ended'; state: EndState; record: JobRecord; reason: JobError }
>;

export type Claim = Readonly<{ owner: string; call: number; leaseMs: number }>;

const NO_ERROR: JobError = { code: '', text: '' };
export const CRASHED: JobError = {
  code: 'CRASHED',
  text: 'the last runs ended with their process or their lease',
};

/** The claim itself counts the attempt, and its token is above each one that was ever given. */
export const claim = (record: JobRecord, { owner, call, leaseMs }: Claim, nowMs: number): JobRecord => ({
  ...record,
  state: 'running',
  owner,
  call,
  attempts: record.attempts + 1,
  token: tokenAfter(record.token, nowMs),
  claimedMs: nowMs,
  leaseUntilMs: nowMs + leaseMs,
});

/** In microseconds, so that a store that lost its last commits gives greater ones than those that it forgot. */
export const tokenAfter = (token: number, nowMs: number): number =>
  Math.max(token + 1, Math.floor(nowMs * 1_000));

/** Whether the run still has the job: every write of a worker is conditional on it. */
const isHeldBy = (record: JobRecord | undefined, { id, token }: HeldJob): record is JobRecord =>
  record !== undefined &&
  record.state === 'running' &&
  String(record.id) === id &&
  String(record.token) === token;

export const renew = (record: JobRecord, held: HeldJob, leaseMs: number, nowMs: number) =>
  isHeldBy(record, held) ? { ...record, leaseUntilMs: nowMs + leaseMs } : undefined;

export function settle(record: JobRecord, held: HeldJob, ending: Ending, nowMs: number): Change | undefined {
  return isHeldBy(record, held) ? ended(record, ending, nowMs) : undefined;
}

function ended(record: JobRecord, ending: Ending, nowMs: number): Change {
  switch (ending.kind) {
    case 'done':
      return { kind: 'ended', state: 'done', record, reason: NO_ERROR };
    case 'dead':
      return { kind: 'ended', state: 'dead', record, reason: ending.error };
    case 'cancelled':
      return { kind: 'ended', state: 'cancelled', record, reason: NO_ERROR };
    case 'released': {
      const attempts = record.attempts - 1;
      if (record.cancelAsked) return { kind: 'ended', state: 'cancelled', record, reason: NO_ERROR };
      return { kind: 'kept', record: { ...record, state: 'ready', attempts } };
    }
    case 'failed': {
      const { error, delayMs, counts } = ending;
      if (record.cancelAsked) return { kind: 'ended', state: 'cancelled', record, reason: error };
      if (counts && record.attempts >= record.maxAttempts) {
        return { kind: 'ended', state: 'dead', record, reason: error };
      }
      const attempts = record.attempts - (counts ? 0 : 1);
      const runAtMs = nowMs + delayMs;
      const state = delayMs > 0 ? 'waiting' : 'ready';
      return { kind: 'kept', record: { ...record, state, attempts, error, runAtMs } };
    }
  }
}

/** An expired lease: the crash is counted, and dead is decided before the job runs again. */
export function rescue(record: JobRecord, nowMs: number): Change | undefined {
  if (record.state !== 'running' || record.leaseUntilMs >= nowMs) return undefined;
  const crashes = record.crashes + 1;
  const crashed = { ...record, crashes, owner: undefined, call: undefined };
  if (record.cancelAsked) return { kind: 'ended', state: 'cancelled', record: crashed, reason: NO_ERROR };
  if (record.attempts >= record.maxAttempts || crashes >= MOST_CRASHES) {
    return { kind: 'ended', state: 'dead', record: crashed, reason: CRASHED };
  }
  return { kind: 'kept', record: { ...crashed, state: 'ready', error: CRASHED } };
}

export const promote = (record: JobRecord, nowMs: number): JobRecord | undefined =>
  record.state === 'waiting' && record.runAtMs <= nowMs ? { ...record, state: 'ready' } : undefined;

/** A running job is asked; what has not begun is over at once. */
export const cancel = (record: JobRecord): Change =>
  record.state === 'running'
    ? { kind: 'kept', record: { ...record, cancelAsked: true } }
    : { kind: 'ended', state: 'cancelled', record, reason: NO_ERROR };

/** Under its ID, with a token that stays above all earlier ones. */
export const relaunch = (record: JobRecord, nowMs: number): JobRecord => ({
  ...record,
  state: 'ready',
  attempts: 0,
  crashes: 0,
  owner: undefined,
  call: undefined,
  cancelAsked: false,
  error: undefined,
  runAtMs: nowMs,
});

/** The state in which a job begins. */
export const beginsAs = (runAtMs: number, nowMs: number): 'ready' | 'waiting' =>
  runAtMs > nowMs ? 'waiting' : 'ready';

/** The smallest goes first. A level's head goes before a job of `n` levels above it that became ready `n * ageingMs` after it. */
export const rankOf = ({ priority, runAtMs }: Pick<JobRecord, 'priority' | 'runAtMs'>, ageingMs: number) =>
  runAtMs - priority * Math.min(ageingMs, STRICT_MS);

/** An ageing of 31 years a level: no job waits so long. */
export const STRICT_MS = 1e12;

/**
 * What a claim takes: whole levels (role and priority) in the order of their heads, each by time; and one suspect where
 * one is asked for and its turn has come, or where there is room for it.
 */
export function choose(records: Iterable<JobRecord>, query: ClaimQuery): readonly JobRecord[] {
  const roles = new Set(query.roles.map(({ role }) => role));
  const ready = [...records].filter(({ state, role }) => state === 'ready' && roles.has(role));
  const byTime = (one: JobRecord, other: JobRecord): number =>
    one.runAtMs - other.runAtMs || one.id - other.id;
  const levels = [
    ...Map.groupBy(
      ready.filter(({ crashes }) => crashes === 0),
      ({ role, priority }) => `${role} ${priority}`,
    ).values(),
  ].map((level) => level.toSorted(byTime));
  const rank = (record: JobRecord | undefined): number =>
    record === undefined ? Infinity : rankOf(record, query.ageingMs);
  const others = levels.toSorted((one, other) => rank(one[0]) - rank(other[0])).flat();
  const suspect = query.suspect
    ? ready.filter(({ crashes }) => crashes > 0).toSorted((one, other) => rank(one) - rank(other))[0]
    : undefined;
  const isDue = suspect !== undefined && (rank(suspect) <= rank(others[0]) || others.length < query.limit);
  return isDue ? [suspect, ...others.slice(0, query.limit - 1)] : others.slice(0, query.limit);
}

export type Backoff = Growth;

/** Twice as long with each attempt, and up to half of it less by chance, so that what failed together comes apart. */
export const backoffMs = (attempt: number, backoff: Backoff, random: number): number =>
  Math.round(pauseAfter(attempt, backoff) * (1 - random / 2));
