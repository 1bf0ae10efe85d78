/**
 * The queue as programs see it: enqueue in a transaction of one's own, and look after what is there.
 */
import { type Clock, systemClock } from '../clock.ts';
import { toMilliseconds, type Duration } from '../duration.ts';
import { PermanentError } from '../errors.ts';
import { anyText, checkOptions, clock as aClock, listOf, port, text, duration, whole } from '../options.ts';
import { type Health, type HealthOptions, judge, thresholdsOf } from './health.ts';
import { checkName, type Enqueued, type NewJob } from './job.ts';
import type { DeadPage, Depths, JobStore, Tidied } from './job-store.ts';
import { measureEnqueued } from './measures.ts';
import { coalesced } from './wake.ts';

export type JobsOptions = Readonly<{
  /** Default: the machine's. */
  clock?: Clock;
  /** The shortest time between two wake-ups of a role by this process (default `100ms`, from `0ms`). */
  wakeEvery?: Duration;
}>;

type DeadQuery = Readonly<{ role?: string; limit?: number; after?: string }>;

export type Jobs<Tx> = Readonly<{
  /**
   * Writes jobs in the caller's transaction: they are there with its commit, or not at all. Answers for each what became of
   * it; `repeated` is a success, `conflict` has written nothing for that job. A commit of unknown outcome is tried again:
   * with a key the answer is `repeated`, without one there may be two jobs. Rejects with PermanentError `INVALID_JOB` or
   * `LIMIT_EXCEEDED` before anything is written.
   */
  enqueue(tx: Tx, jobs: readonly NewJob[]): Promise<readonly Enqueued[]>;
  /** As `enqueue`, in a commit of its own. Rejects with STORE_UNAVAILABLE, too: tried again, a key answers `repeated`. */
  submit(jobs: readonly NewJob[]): Promise<readonly Enqueued[]>;
  /**
   * After the commit: workers of the role look at once instead of within their poll. At most one a role in `wakeEvery`, the
   * last one included. A hint: never rejects, and nothing is lost without it.
   */
  wake(role: string): Promise<void>;
  /** `requested`: it runs, and its signal is aborted within a third of its lease. `tooLate`: it has ended, or never was. */
  cancel(id: string): Promise<'cancelled' | 'requested' | 'tooLate'>;
  /** Newest first; at most 1,000 a page. */
  dead(query?: DeadQuery): Promise<DeadPage>;
  /** Dead jobs run again, as new but under their ID and key. Answers how many were dead. */
  relaunch(ids: readonly string[]): Promise<number>;
  /** Dead jobs are gone for good. Answers how many were dead. */
  discard(ids: readonly string[]): Promise<number>;
  /** How many jobs stand where, of one role or of all; a count of 10,001 means "or more". */
  look(role?: string): Promise<Depths>;
  /** Whether the queue keeps up, by the database's own figures. */
  health(options?: HealthOptions): Promise<Health>;
  /** What workers do each minute by themselves: deletes what has expired, in small batches. */
  tidy(): Promise<Tidied>;
}>;

const PAGE = 100;
const MOST_PAGE = 1_000;

/**
 * Throws ConfigError for an option that is not valid.
 *
 * @example
 * const ingest = jobs(jobStore);
 * const [job] = await inTransaction(pool, (tx) =>
 *   ingest.enqueue(tx, [{ role: 'ingest', kind: 'scene', payload: { scene: 42 }, key: 'scene 42' }]),
 * );
 * await ingest.wake('ingest');
 */
export function jobs<Tx>(store: JobStore<Tx>, options: JobsOptions = {}): Jobs<Tx> {
  port(
    ['write', 'submit', 'wake', 'cancel', 'dead', 'relaunch', 'discard', 'look', 'vitals', 'tidy'],
    EXAMPLE,
  )('store', store);
  checkOptions<JobsOptions>(options, {
    clock: aClock,
    wakeEvery: duration,
  });
  const { clock = systemClock(), wakeEvery = '100ms' } = options;
  const wake = coalesced(clock, toMilliseconds(wakeEvery, 'wakeEvery'), (role) => store.wake(role));
  return {
    async enqueue(tx, list) {
      const answers = await store.write(tx, list);
      measureEnqueued(list, answers);
      return answers;
    },
    async submit(list) {
      const answers = await store.submit(list);
      measureEnqueued(list, answers);
      return answers;
    },
    async wake(role) {
      checkName('role', role);
      await wake(role);
    },
    async cancel(id) {
      return store.cancel(checkId(id));
    },
    async dead(query = {}) {
      checkOptions<DeadQuery>(query, { role: anyText, limit: whole(1, MOST_PAGE), after: anyText });
      const { role, limit = PAGE, after } = query;
      if (role !== undefined) checkName('role', role);
      return store.dead({
        limit,
        ...(role !== undefined && { role }),
        ...(after !== undefined && { after: checkId(after) }),
      });
    },
    async relaunch(ids) {
      return store.relaunch(checkIds(ids));
    },
    async discard(ids) {
      return store.discard(checkIds(ids));
    },
    async look(role) {
      if (role !== undefined) checkName('role', role);
      return store.look(role);
    },
    async health(thresholds = {}) {
      const checked = thresholdsOf(thresholds);
      return judge(await store.vitals(checked.backlogForMs), checked);
    },
    tidy: () => store.tidy(),
  };
}

const EXAMPLE = 'a job store, for example postgresJobs(pool)';

function checkId(id: unknown): string {
  if (typeof id === 'string' && /^[1-9]\d{0,18}$/.test(id)) return id;
  throw new PermanentError('INVALID_JOB', 'the ID of a job is a text of 1 to 19 digits');
}

function checkIds(ids: readonly string[]): readonly string[] {
  listOf(text, 'a list of IDs')('ids', ids);
  return ids.map(checkId);
}
