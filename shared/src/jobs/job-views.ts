/**
 * Single jobs as an operator looks at them: a port beside the store, which only reads.
 *
 * What it shows may have changed by the time it is read. An account of the database sees the jobs of its roles.
 */
import type { JobError, JobState, Json, Priority } from './job.ts';

export type UnfinishedState = 'ready' | 'running' | 'waiting';

/** A job that has not ended. */
export type JobView = Readonly<{
  id: string;
  role: string;
  kind: string;
  state: UnfinishedState;
  priority: Priority;
  /** Runs that count, the present one among them. */
  attempts: number;
  maxAttempts: number;
  /** Runs that ended with their process or its lease. */
  crashes: number;
  createdAt: Date;
  /** Since when it is ready, or when it will be. */
  runAt: Date;
  /** Why its last run failed. */
  error?: JobError;
}>;

/** One end of a job: a job that was relaunched has several. */
export type JobEnd = Readonly<{
  outcome: string;
  finishedAt: Date;
  /** From ready to its start, and from its start to its end; absent where it never ran. */
  pickedUpMs?: number;
  ranMs?: number;
}>;

/** One job in whatever state. Of one that is done the payload is gone. */
export type JobDetails = Omit<JobView, 'state' | 'maxAttempts' | 'runAt' | 'priority'> &
  Readonly<{
    state: JobState;
    priority?: Priority;
    maxAttempts?: number;
    runAt?: Date;
    payload?: Json;
    /** Of a running job: which process has it, by the owner that the process names, and until when unless renewed. */
    lease?: Readonly<{ owner: string; until: Date }>;
    cancelAsked: boolean;
    /** Oldest first; kept for 14 days. */
    ends: readonly JobEnd[];
  }>;

export type JobListQuery = Readonly<{
  role?: string;
  state?: UnfinishedState;
  /** 1 to 500. */
  pageSize: number;
  /** `nextPageToken` of the page before. */
  pageToken?: string;
}>;

export type JobList = Readonly<{
  jobs: readonly JobView[];
  /** Absent on the last page. */
  nextPageToken?: string;
}>;

export type JobViews = Readonly<{
  /** Jobs that have not ended, newest first. */
  list(query: JobListQuery): Promise<JobList>;
  /** Undefined: there is none, or it ended longer ago than the log is kept. */
  show(id: string): Promise<JobDetails | undefined>;
}>;
