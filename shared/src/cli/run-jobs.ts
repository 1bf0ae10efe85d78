/**
 * What each command of `jobs` does but `work`, and what it prints. Nothing is printed before the store has answered.
 */
import { PermanentError } from '../errors.ts';
import type { Health } from '../jobs/health.ts';
import type { JobDetails, JobView, JobViews } from '../jobs/job-views.ts';
import type { DeadJob } from '../jobs/job-store.ts';
import type { Jobs } from '../jobs/jobs.ts';
import type { JobsCommand } from './jobs-command.ts';
import { columns, type Printed, shown } from './usage.ts';

export type JobsPorts = Readonly<{
  queue: Pick<Jobs<never>, 'cancel' | 'dead' | 'relaunch' | 'discard' | 'health' | 'tidy'>;
  views: JobViews;
  migrate(grants: Readonly<Record<string, '*' | readonly string[]>>): Promise<void>;
}>;

type OneShot = Exclude<JobsCommand, Readonly<{ kind: 'work' }>>;

/** Rejects with `JOB_UNKNOWN` where a job is asked for that is not there. */
export async function runJobs({ queue, views, migrate }: JobsPorts, command: OneShot): Promise<Printed> {
  switch (command.kind) {
    case 'list': {
      const list = await views.list(command.query);
      return { object: list, lines: [...table(list.jobs), ...more(list.nextPageToken)] };
    }
    case 'show': {
      const job = await views.show(command.id);
      if (job === undefined) {
        const text = `there is no job ${command.id}, or it ended more than 14 days ago; accepted: one that jobs list or jobs dead shows`;
        throw new PermanentError('JOB_UNKNOWN', text);
      }
      return { object: job, lines: detailLines(job) };
    }
    case 'cancel': {
      const { id } = command;
      const answer = await queue.cancel(id);
      return { object: { id, answer }, lines: [`${answer}: ${MEANS[answer]}`] };
    }
    case 'dead': {
      const { role, pageSize: limit, page: after } = command;
      const page = await queue.dead({
        limit,
        ...(role !== undefined && { role }),
        ...(after !== undefined && { after }),
      });
      const jobs = page.items.map(({ createdMs, readyMs: _ready, diedMs, attempt, ...job }) => ({
        ...job,
        attempts: attempt,
        createdAt: new Date(createdMs),
        diedAt: new Date(diedMs),
      }));
      return {
        object: { jobs, ...(page.next !== undefined && { nextPageToken: page.next }) },
        lines: [...deadTable(page.items), ...more(page.next)],
      };
    }
    case 'relaunch':
    case 'discard': {
      const { kind, ids } = command;
      const count = await queue[kind](ids);
      const done = kind === 'relaunch' ? 'relaunched' : 'discarded';
      const others = count === ids.length ? '' : `; the rest is not dead, or not there`;
      return { object: { ids, [done]: count }, lines: [`${done} ${count} of ${ids.length}${others}`] };
    }
    case 'health': {
      const health = await queue.health(command.accepted);
      return { object: health, lines: healthLines(health), exitCode: health.ok ? 0 : 1 };
    }
    case 'tidy': {
      const tidied = await queue.tidy();
      const line = `deleted keys: ${tidied.keys}, rows of the log: ${tidied.logged}`;
      return { object: tidied, lines: [line] };
    }
    case 'migrate':
      await migrate(command.grants);
      return { object: { migrated: true }, lines: ['the tables are those of this version'] };
  }
}

const MEANS = {
  cancelled: 'it had not started, and never will',
  requested: 'it runs, and is told within a third of its lease; jobs show has the end',
  tooLate: 'nothing was done: it has ended, or never was',
} as const;

const more = (token: string | undefined): readonly string[] =>
  token === undefined ? [] : [`more: --page ${token}`];

const runsOf = (attempts: number, maxAttempts: number | undefined): string =>
  maxAttempts === undefined ? String(attempts) : `${attempts}/${maxAttempts}`;

function table(jobs: readonly JobView[]): readonly string[] {
  if (jobs.length === 0) return ['no jobs'];
  const rows = jobs.map(({ id, role, kind, state, priority, attempts, maxAttempts, runAt, error }) => [
    id,
    role,
    kind,
    state,
    String(priority),
    runsOf(attempts, maxAttempts),
    runAt.toISOString(),
    error === undefined ? '' : shown(`${error.code}: ${error.text}`),
  ]);
  return columns([['ID', 'ROLE', 'KIND', 'STATE', 'PRIORITY', 'RUNS', 'RUN AT', ''], ...rows]);
}

function deadTable(jobs: readonly DeadJob[]): readonly string[] {
  if (jobs.length === 0) return ['no dead jobs'];
  const rows = jobs.map(({ id, role, kind, attempt, maxAttempts, diedMs, reason }) => [
    id,
    role,
    kind,
    runsOf(attempt, maxAttempts),
    new Date(diedMs).toISOString(),
    shown(`${reason.code}: ${reason.text}`),
  ]);
  return columns([['ID', 'ROLE', 'KIND', 'RUNS', 'DIED', ''], ...rows]);
}

function detailLines(job: JobDetails): readonly string[] {
  const { priority, runAt, lease, payload, error, cancelAsked, crashes } = job;
  const fields: readonly (readonly [string, string | undefined])[] = [
    ['id', job.id],
    ['role', job.role],
    ['kind', job.kind],
    ['state', cancelAsked ? `${job.state}, to be cancelled` : job.state],
    ['priority', priority === undefined ? undefined : String(priority)],
    ['runs', runsOf(job.attempts, job.maxAttempts)],
    ['crashes', crashes === 0 ? undefined : String(crashes)],
    ['created', job.createdAt.toISOString()],
    ['run at', runAt?.toISOString()],
    ['lease', lease && `${shown(lease.owner)} until ${lease.until.toISOString()}`],
    ['payload', payload === undefined ? undefined : shown(JSON.stringify(payload))],
    ['error', error && shown(`${error.code}: ${error.text}`)],
  ];
  const ends = job.ends.map(({ outcome, finishedAt, pickedUpMs, ranMs }) => [
    finishedAt.toISOString(),
    outcome,
    pickedUpMs === undefined ? '' : `began after ${pickedUpMs} ms, ran ${ranMs ?? 0} ms`,
  ]);
  return [
    ...fields.flatMap(([name, value]) => (value === undefined ? [] : [`${name.padEnd(10)}${value}`])),
    ...(ends.length === 0 ? [] : ['', ...columns(ends)]),
  ];
}

function healthLines({ problems, vitals }: Health): readonly string[] {
  const { backlog, meanBacklog, coveredMs, pickUpP95Ms, dead, snapshot, unseen } = vitals;
  const minutes = Math.round(coveredMs / 60_000);
  const rows: readonly (readonly [string, string])[] = [
    [
      'backlog',
      `${backlog} now, ${meanBacklog === undefined ? 'no samples yet' : `${meanBacklog.toFixed(1)} on average of ${minutes} minutes`}`,
    ],
    [
      'pick-up',
      pickUpP95Ms === undefined ? 'no run began' : `95 % of the runs began within ${pickUpP95Ms} ms`,
    ],
    ['dead', String(dead)],
    [
      'snapshot',
      snapshot === undefined
        ? 'none'
        : `${Math.round(snapshot.ageMs / 1_000)} s old: ${shown(snapshot.holder)}`,
    ],
    ...unseen.map((one) => ['unseen', one] as const),
  ];
  return [
    ...(problems.length === 0 ? ['ok'] : problems.map(({ code, text }) => `${code}: ${shown(text)}`)),
    ...rows.map(([name, value]) => `${name.padEnd(10)}${value}`),
  ];
}
