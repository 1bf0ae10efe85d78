/**
 * Makes recurring jobs: one for each due time, however many workers look and whichever of them die.
 *
 * The store keeps up to which due time each recurrence is decided. A worker asks for that and for the store's time, decides
 * what is due, and writes the jobs and the new due time in one commit, which changes nothing where another worker was there
 * first. A crash before the commit leaves it to any worker; after it there is nothing left to do. Should the store's memory
 * of a recurrence be gone, or two expressions name one due time, then the job's key is taken.
 *
 * No worker's clock decides: it only says when to ask again.
 */
import { type Growth, pauseAfter } from '../async/backoff.ts';
import type { Clock } from '../clock.ts';
import { codeOf, textOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { JobStore } from './job-store.ts';
import { type CheckedRecurrence, ON_TIME_MS, type RecurrenceRules } from './recurrence.ts';

export type Recurring = Readonly<{
  /** Makes what is due, where it is time to look. Answers the roles that have new jobs. Never rejects. */
  pass(): Promise<ReadonlySet<string>>;
}>;

type Ports = Readonly<{ clock: Clock; log: Log }>;

/** The store's time is asked for at least so often: until then this process measures how much of it has passed. */
const LOOK_EVERY_MS = 60_000;
/** Short enough that what comes next is on time all the same. */
const PAUSES: Growth = { minMs: 1_000, maxMs: 10_000 };

export function recurringJobs<Tx>(
  rules: RecurrenceRules,
  store: Pick<JobStore<Tx>, 'recurrences' | 'recur'>,
  list: readonly CheckedRecurrence[],
  { clock, log }: Ports,
): Recurring {
  let lookAtMs = list.length === 0 ? Infinity : -Infinity;
  let failures = 0;

  /** Whether jobs were made. Rejects with what the store, or the caller's payload, says. */
  const make = async (one: CheckedRecurrence, madeMs: number, nowMs: number): Promise<boolean> => {
    const due = rules.dueOf(one, madeMs, nowMs);
    if (due === undefined) return false;
    const jobs = due.dueTimes.map((ms) => ({ ...one.jobAt(ms), key: rules.keyOf(one.id, ms) }));
    const isMade = await store.recur({ id: one.id, fromMs: madeMs, toMs: due.toMs, jobs });
    const oldestMs = one.dueTimes.after(madeMs) ?? nowMs;
    if (isMade && oldestMs <= nowMs - ON_TIME_MS) {
      log.warn('due times of a recurring job were missed', {
        event: 'job_recurrence_missed',
        recurrence: one.id.name,
        since: new Date(oldestMs).toISOString(),
        made: jobs.length,
      });
    }
    return isMade && jobs.length > 0;
  };

  const reportFailure = (recurrence: string, error: unknown): void =>
    log.warn('a recurring job could not be made', {
      event: 'job_recurrence_failed',
      recurrence,
      code: codeOf(error),
      error: textOf(error),
    });

  const look = async (roles: Set<string>): Promise<void> => {
    const sentMs = clock.monotonic();
    const { nowMs, madeMs } = await store.recurrences(list.map(({ id }) => id));
    let waitMs = LOOK_EVERY_MS;
    let isFailed = false;
    for (const [index, one] of list.entries()) {
      const made = madeMs[index];
      try {
        if (made !== undefined && (await make(one, made, nowMs))) roles.add(one.id.role);
      } catch (error) {
        // The others would wait for the store in vain, and leases with them.
        if (codeOf(error) === 'STORE_UNAVAILABLE') throw error;
        isFailed = true;
        reportFailure(one.id.name, error);
      }
      // A recurrence that another worker is writing for the first time has no due time yet.
      waitMs = Math.min(waitMs, made === undefined ? 0 : (one.dueTimes.after(nowMs) ?? Infinity) - nowMs);
    }
    failures = isFailed ? failures + 1 : 0;
    const againMs = isFailed ? clock.monotonic() + pauseAfter(failures, PAUSES) : Infinity;
    lookAtMs = Math.min(sentMs + waitMs, againMs);
  };

  return {
    async pass() {
      const roles = new Set<string>();
      if (clock.monotonic() < lookAtMs) return roles;
      try {
        await look(roles);
      } catch (error) {
        failures += 1;
        lookAtMs = clock.monotonic() + pauseAfter(failures, PAUSES);
        reportFailure(list.map(({ id }) => id.name).join(' '), error);
      }
      return roles;
    },
  };
}
