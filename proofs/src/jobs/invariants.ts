/**
 * What must hold whatever happened, judged by what is committed and what was seen of the runs.
 */
import type { JobTable } from '../../../shared/src/jobs/memory-table.ts';
import { MOST_CRASHES } from '../../../shared/src/jobs/job.ts';

export type Invariant =
  | 'nothing is lost'
  | 'a job ends once'
  | 'a job that is done has one effect'
  | 'a key is one job'
  | 'runs are bounded'
  | 'tokens grow'
  | 'no two runs are live'
  | 'a run starts under its lease'
  | 'a poison hits an innocent once'
  | 'a retry waits for its time'
  | 'a cancelled job does not start'
  | 'a crash has a cause';

export type Violation = Readonly<{ invariant: Invariant; text: string }>;

/** One start of a handler. */
export type SeenRun = {
  readonly id: string;
  readonly token: string;
  readonly attempt: number;
  readonly atMs: number;
  /** As the run itself sees it. */
  readonly isAborted: () => boolean;
  /** Of its process. */
  readonly isAlive: () => boolean;
  isOver: boolean;
};

export type Seen = Readonly<{
  /** In the order of their starts. */
  runs: readonly SeenRun[];
  /** Job IDs whose enqueue was confirmed, with the number of their key. */
  confirmed: readonly Readonly<{ id: string; key: number | undefined }>[];
  /** What was seen while it happened. */
  violations: readonly Violation[];
}>;

/** The model: an enqueued job ends once, its effect is there as often as it is done, and its runs are numbered and bounded. */
export function violations(
  table: JobTable,
  { runs, confirmed, violations: seen }: Seen,
): readonly Violation[] {
  const broken: Violation[] = [...seen];
  const say = (invariant: Invariant, text: string): void => void broken.push({ invariant, text });
  const ends = Map.groupBy(table.log, ({ id }) => String(id));
  for (const { id } of confirmed) {
    if (!ends.has(id))
      say('nothing is lost', `job ${id} is ${table.jobs.get(Number(id))?.state ?? 'nowhere'}`);
  }
  for (const [id, rows] of ends) {
    if (rows.length > 1) say('a job ends once', `job ${id}: ${rows.map(({ state }) => state).join(' ')}`);
    const effects = Number(table.values.get(`effects of ${id}`) ?? 0);
    const wanted = rows.some(({ kind, state }) => kind === 'effect' && state === 'done') ? 1 : 0;
    if (effects !== wanted) say('a job that is done has one effect', `job ${id}: ${effects} of ${wanted}`);
    if (rows.some(({ crashes }) => crashes > MOST_CRASHES))
      say('runs are bounded', `job ${id} crashed too often`);
  }
  for (const [key, jobs] of Map.groupBy(confirmed, (job) => job.key)) {
    const ids = new Set(jobs.map(({ id }) => id));
    if (key !== undefined && ids.size > 1) say('a key is one job', `key ${key}: ${[...ids].join(' ')}`);
  }
  for (const [id, mine] of Map.groupBy(runs, (run) => run.id)) {
    for (const [index, run] of mine.entries()) {
      const before = mine[index - 1];
      if (before !== undefined && Number(run.token) <= Number(before.token))
        say('tokens grow', `job ${id}: ${before.token} ${run.token}`);
    }
  }
  return broken;
}
