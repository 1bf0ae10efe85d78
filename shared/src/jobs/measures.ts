/**
 * What is measured of jobs. Attributes are roles, outcomes and codes: never an ID or a key.
 *
 * The gauges say what `health` judges by, from the database's own figures; each worker takes them once a minute, so that
 * they go on while any worker is there.
 */
import { ATTR, count, gauge, isMeasured, record } from '../telemetry/instruments.ts';
import type { Vitals } from './health.ts';
import type { ClaimedJob, Enqueued, NewJob } from './job.ts';
import type { JobStore, Rescued } from './job-store.ts';

/** What became of a run: the state of its job, or how it lost it. */
type RunOutcome = 'done' | 'dead' | 'cancelled' | 'waiting' | 'ready' | 'running' | 'stolen' | 'lost';

export function measureEnqueued(jobs: readonly NewJob[], answers: readonly Enqueued[]): void {
  if (!isMeasured()) return;
  for (const [index, { kind }] of answers.entries()) {
    count('jobsEnqueued', { [ATTR.role]: jobs[index]?.role ?? '', [ATTR.answer]: kind });
  }
}

/** By the store's clock, from when the job was ready to its claim. */
export const measureStart = ({ role, claimedMs, readyMs }: ClaimedJob): void =>
  record('jobPickUp', claimedMs - readyMs, { [ATTR.role]: role });

/** `reason` is the code of a failure. */
export function measureEnd({ role }: ClaimedJob, outcome: RunOutcome, reason?: string): void {
  const attributes = { [ATTR.role]: role, [ATTR.outcome]: outcome };
  count('jobOutcomes', { ...attributes, ...(reason !== undefined && { [ATTR.reason]: reason }) });
}

export const measureRun = (role: string, milliseconds: number): void =>
  record('jobRun', milliseconds, { [ATTR.role]: role });

export function measureRescued({ rescued, dead, cancelled }: Rescued): void {
  for (const [answer, many] of Object.entries({ ready: rescued, dead, cancelled })) {
    if (many > 0) count('jobsRescued', { [ATTR.answer]: answer }, many);
  }
}

/** The window of both thresholds. */
const WINDOW_MS = 3_600_000;

/** Asks nothing of the store where no SDK measures. */
export async function measureVitals<Tx>(store: Pick<JobStore<Tx>, 'vitals'>): Promise<void> {
  if (!isMeasured()) return;
  measured(await store.vitals(WINDOW_MS));
}

function measured({ backlog, meanBacklog, coveredMs, pickUpP95Ms, dead }: Vitals): void {
  gauge('jobBacklog', backlog, {});
  gauge('deadJobs', dead, {});
  // As in `health`: a mean of a few minutes is none.
  if (meanBacklog !== undefined && coveredMs >= WINDOW_MS / 2) gauge('meanJobBacklog', meanBacklog, {});
  // Without a run none is late; a gauge keeps its last value otherwise.
  gauge('jobPickUpP95', (pickUpP95Ms ?? 0) / 1_000, {});
}
