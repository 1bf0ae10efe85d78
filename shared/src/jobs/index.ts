/** Jobs: a task table in the user's own database. Stores that need a client have entry points of their own. */
export { enqueueing } from './enqueueing.ts';
export type { Health, HealthOptions, HealthProblem, Snapshot, Vitals } from './health.ts';
export { JOB_LIMITS } from './job.ts';
export type { Enqueued, Job, JobError, JobState, Json, NewJob, Priority } from './job.ts';
export type {
  DeadJob,
  DeadPage,
  Depths,
  JobStore,
  JobTransaction,
  JobWriter,
  Recur,
  RecurrenceId,
  Rescued,
  Tidied,
} from './job-store.ts';
export { type Jobs, jobs, type JobsOptions } from './jobs.ts';
export { type MemoryJobs, memoryJobs, type MemoryJobsOptions, type MemoryJobTransaction } from './memory.ts';
export type { RoleLimits } from './limits.ts';
export { complete, type JobContext, type JobHandler, type JobOutcome } from './outcome.ts';
export type { Recurrence } from './recurrence.ts';
export { type Worker, worker } from './worker.ts';
export type { RoleOptions, WorkerOptions } from './worker-options.ts';
