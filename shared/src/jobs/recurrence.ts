/**
 * A recurring job: at which due times it is made, and what becomes of due times at which no worker was there.
 *
 * The identity of each job is the recurrence and the due time (`keyOf`). A recurrence begins with the first worker that knows
 * it: what lies before that was not missed. Another expression or time zone begins anew in the same way.
 */
import { refused, refusedAs, textOf } from '../errors.ts';
import { callable, type Check, checkOptions, oneOf, required, text, whole } from '../options.ts';
import { cronTimes, type DueTimes } from './croner.ts';
import { checkJobs, checkName, JOB_LIMITS, type Json, type NewJob, type Priority } from './job.ts';
import type { RecurrenceId } from './job-store.ts';

/**
 * An option of a worker. Wrong values are ConfigError `INVALID_OPTION` at its start.
 *
 * @example
 * const nightly = {
 *   cron: '30 2 * * *',
 *   timeZone: 'Europe/Warsaw',
 *   role: 'export',
 *   kind: 'pdf',
 *   payload: (dueTime: Date) => ({ day: dueTime.toISOString().slice(0, 10) }),
 * };
 * worker(jobStore, { export: { runTimeout: '10m', handle: { pdf: async () => ack() } } }, { recurring: { nightly } });
 */
export type Recurrence = Readonly<{
  /**
   * Minute, hour, day of the month, month, day of the week; with six fields seconds come first. Names, lists, ranges, steps,
   * `L`, `W`, `#` and nicknames such as `@daily` are understood. Of two restricted days either one fires.
   */
  cron: string;
  /** A time zone of IANA (default UTC). */
  timeZone?: string;
  /**
   * What becomes of due times that are seen more than a minute late: none is made (`skip`), the newest alone, unless one is
   * on time (`one`, the default), or each of the newest `missedLimit` (`all`). Those older than 7 days are made by none.
   */
  missed?: 'skip' | 'one' | 'all';
  /** Missed due times that are made at once at most (default 100, from 1 to 1,000): of more the newest. */
  missedLimit?: number;
  /** Of the job, as in NewJob. */
  role: string;
  kind: string;
  /** JSON, or a function that answers it for a due time. It is called once when the worker starts, and for each job. */
  payload: Json | ((dueTime: Date) => Json);
  priority?: Priority;
  maxAttempts?: number;
}>;

export type CheckedRecurrence = Readonly<{
  id: RecurrenceId;
  dueTimes: DueTimes;
  missed: 'skip' | 'one' | 'all';
  missedLimit: number;
  /** Throws what the caller's `payload` throws. */
  jobAt(ms: number): NewJob;
}>;

/** Up to which due time all is decided, and the due times whose jobs are made, the oldest first. */
export type Due = Readonly<{ toMs: number; dueTimes: readonly number[] }>;

/** A due time that is seen so long after it is on time: a worker looks each second, and may be restarted in between. */
export const ON_TIME_MS = 60_000;
/** As long as the key of an ended job is kept: a job that was made before, by whatever worker, is known by its key. */
const OLDEST_MS = 7 * 86_400_000;

/** What a worker decides by: replaced one at a time where a test wants to see that a rule is needed. */
export type RecurrenceRules = Readonly<{ dueOf: typeof dueOf; keyOf: typeof keyOf }>;
export const RECURRENCE_RULES: RecurrenceRules = { dueOf, keyOf };

/** The key of the job of a due time. */
export function keyOf({ role, name }: RecurrenceId, ms: number): string {
  return `recurring ${role} ${name} ${new Date(ms).toISOString()}`;
}

/** Whether what was decided of a recurrence since `fromMs` may be stored, where the store has it decided up to `madeMs`. */
export const mayDecide = (madeMs: number | undefined, fromMs: number): boolean => madeMs === fromMs;

/** Undefined: no due time since the last one that was decided about. */
export function dueOf(
  { dueTimes, missed, missedLimit }: Pick<CheckedRecurrence, 'dueTimes' | 'missed' | 'missedLimit'>,
  madeMs: number,
  nowMs: number,
): Due | undefined {
  const toMs = dueTimes.before(nowMs + 1);
  if (toMs === undefined || toMs <= madeMs) return undefined;
  const due: number[] = [];
  let late = 0;
  const oldestMs = Math.max(madeMs, nowMs - OLDEST_MS);
  for (let at: number | undefined = toMs; at !== undefined && at > oldestMs; at = dueTimes.before(at)) {
    const isLate = at <= nowMs - ON_TIME_MS;
    if (isLate && late >= lateOnes(missed, missedLimit, due.length - late)) break;
    if (isLate) late += 1;
    due.push(at);
  }
  return { toMs, dueTimes: due.toReversed() };
}

/** How many late due times are made beside those on time. */
function lateOnes(missed: CheckedRecurrence['missed'], limit: number, onTime: number): number {
  switch (missed) {
    case 'skip':
      return 0;
    case 'one':
      return onTime === 0 ? 1 : 0;
    case 'all':
      return limit;
  }
}

/** Throws ConfigError `INVALID_OPTION`. */
export function checkRecurrences(path: string, given: unknown): readonly CheckedRecurrence[] {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw refused(path, given, 'an object with a recurrence for each name');
  }
  return Object.entries(given).map(([name, recurrence]: [string, Recurrence]) => {
    jobName('the name of a recurrence', name);
    return checkRecurrence(`${path}.${name}`, name, recurrence);
  });
}

function checkRecurrence(path: string, name: string, given: Recurrence): CheckedRecurrence {
  checkOptions<Recurrence>(
    given,
    {
      cron: required(text),
      timeZone: text,
      missed: oneOf('skip', 'one', 'all'),
      missedLimit: whole(1, 1_000),
      role: required(jobName),
      kind: required(jobName),
      payload: required(aPayload),
      priority: whole(0, 9),
      maxAttempts: whole(1, JOB_LIMITS.maxAttempts),
    },
    path,
  );
  const { cron, timeZone = 'UTC', missed = 'one', missedLimit = 100 } = given;
  const { role, kind, payload, priority, maxAttempts } = given;
  const id = { role, name, cron: `${cron} ${timeZone}` };
  const dueTimes = cronTimes(path, cron, timeZone);
  const jobAt = (ms: number): NewJob => ({
    role,
    kind,
    payload: typeof payload === 'function' ? payload(new Date(ms)) : payload,
    ...(priority !== undefined && { priority }),
    ...(maxAttempts !== undefined && { maxAttempts }),
  });
  try {
    checkJobs([jobAt(dueTimes.after(Date.UTC(2030, 0)) ?? 0)]);
  } catch (error) {
    const accepted = `JSON of at most ${JOB_LIMITS.payloadBytes} bytes for each due time (${textOf(error)})`;
    throw refusedAs(`${path}.payload`, 'no payload', accepted);
  }
  return { id, dueTimes, missed, missedLimit, jobAt };
}

const aPayload: Check = (path, value) => {
  if (value === undefined) callable(path, value);
};

const jobName: Check = (path, value) => {
  try {
    checkName(path, value);
  } catch {
    const characters = `1 to ${JOB_LIMITS.nameCharacters} letters, digits, "_", "-" or "."`;
    throw refused(path, value, characters);
  }
};
