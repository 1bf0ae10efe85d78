/**
 * Single jobs in the tables of Postgres, for an operator. Each look is one statement; a list that is filtered by a rare
 * role or state walks over the others, and ends after 30 s.
 */
import { type Clock, systemClock } from '../clock.ts';
import { connectionsOf, jsonOf, type PostgresPool } from '../postgres/connection.ts';
import { quote } from '../postgres/names.ts';
import type { JobDetails, JobEnd, JobList, JobView, JobViews, UnfinishedState } from './job-views.ts';

const LIMIT_MS = 30_000;
const STATES: readonly UnfinishedState[] = ['ready', 'running', 'waiting'];

const milliseconds = (column: string): string => `extract(epoch from ${column}) * 1000`;
const STATE = `case t.state ${STATES.map((state, number) => `when ${number} then '${state}'`).join(' ')} end`;

/** Of a row `t` of `job`, or of the copy of one that `job_dead` keeps. */
const COLUMNS = `'id', t.id::text, 'role', t.role, 'kind', t.kind, 'priority', t.priority, 'attempts', t.attempts,
  'maxAttempts', t.max_attempts, 'crashes', t.crashes, 'createdMs', ${milliseconds('t.created_at')},
  'runMs', ${milliseconds('t.run_at')}`;

/** `schema`: a checked name. */
export function postgresJobViews(pool: PostgresPool, schema: string, clock: Clock = systemClock()): JobViews {
  const s = quote(schema);
  const { query } = connectionsOf(pool, clock, LIMIT_MS);
  return {
    async list({ role, state, pageSize, pageToken }) {
      const text = `select json_build_object(${COLUMNS}, 'state', ${STATE}, 'error', t.error)::text as job
        from ${s}.job t where ($1::text is null or t.role = $1) and ($2::smallint is null or t.state = $2)
          and ($3::bigint is null or t.id < $3) order by t.id desc limit $4`;
      const number = state === undefined ? null : STATES.indexOf(state);
      const values = [role ?? null, number, pageToken ?? null, pageSize + 1];
      const rows = await query('a list of jobs', text, values);
      const found = rows.map((row) => viewOf(jsonOf<Found>(row, 'job')));
      const jobs = found.slice(0, pageSize);
      const last = jobs.at(-1);
      return {
        jobs,
        ...(found.length > pageSize && last !== undefined && { nextPageToken: last.id }),
      } satisfies JobList;
    },
    async show(id) {
      const text = `select json_build_object(
        'job', (select json_build_object(${COLUMNS}, 'state', ${STATE}, 'error', t.error, 'payload', t.payload,
            'owner', t.owner, 'leaseMs', ${milliseconds('t.lease_until')}, 'cancelAsked', t.cancel_asked)
          from ${s}.job t where t.id = $1),
        'dead', (select json_build_object(${COLUMNS}, 'state', 'dead', 'payload', t.payload,
            'error', json_build_object('code', d.code, 'text', d.text))
          from ${s}.job_dead d, jsonb_populate_record(null::${s}.job, d.job) t where d.id = $1),
        'ended', (select json_build_object('id', g.id::text, 'role', g.role, 'kind', g.kind, 'state', g.outcome,
            'attempts', g.attempts, 'crashes', g.crashes, 'createdMs', ${milliseconds('g.created_at')})
          from ${s}.job_log g where g.id = $1 order by g.finished_at desc limit 1),
        'ends', (select coalesce(json_agg(json_build_object('outcome', g.outcome,
            'finishedMs', ${milliseconds('g.finished_at')}, 'pickedUpMs', g.picked_up_ms, 'ranMs', g.ran_ms)
            order by g.finished_at), '[]')
          from ${s}.job_log g where g.id = $1))::text as answer`;
      const [row] = await query('a look at a job', text, [id]);
      const { job, dead, ended, ends } = jsonOf<Looked>(row, 'answer');
      const found = job ?? dead ?? ended;
      return found === null ? undefined : detailsOf(found, ends);
    },
  };
}

type Found = Readonly<
  Omit<JobView, 'createdAt' | 'runAt' | 'error'> & {
    createdMs: number;
    runMs: number;
    error: JobView['error'] | null;
  }
>;

type Present<Value> = { readonly [Name in keyof Value]: Value[Name] | null };

type FoundDetails = Pick<JobDetails, 'id' | 'role' | 'kind' | 'state' | 'attempts' | 'crashes'> &
  Readonly<{ createdMs: number }> &
  Partial<
    Present<
      Readonly<{ runMs: number; leaseMs: number; owner: string; error: NonNullable<JobView['error']> }>
    > &
      Pick<JobDetails, 'priority' | 'maxAttempts' | 'payload' | 'cancelAsked'>
  >;

type Looked = Readonly<{
  job: FoundDetails | null;
  dead: FoundDetails | null;
  ended: FoundDetails | null;
  ends: readonly Readonly<{
    outcome: string;
    finishedMs: number;
    pickedUpMs: number | null;
    ranMs: number | null;
  }>[];
}>;

const viewOf = ({ createdMs, runMs, error, ...rest }: Found): JobView => ({
  ...rest,
  createdAt: new Date(createdMs),
  runAt: new Date(runMs),
  ...(error && { error }),
});

function detailsOf(found: FoundDetails, ends: Looked['ends']): JobDetails {
  const { createdMs, runMs, leaseMs, owner, error, cancelAsked = false, ...rest } = found;
  const isHeld = rest.state === 'running' && typeof owner === 'string' && typeof leaseMs === 'number';
  return {
    ...rest,
    createdAt: new Date(createdMs),
    ...(typeof runMs === 'number' && { runAt: new Date(runMs) }),
    ...(isHeld && { lease: { owner, until: new Date(leaseMs) } }),
    ...(error && { error }),
    cancelAsked,
    ends: ends.map(
      ({ outcome, finishedMs, pickedUpMs, ranMs }): JobEnd => ({
        outcome,
        finishedAt: new Date(finishedMs),
        ...(pickedUpMs !== null && { pickedUpMs }),
        ...(ranMs !== null && { ranMs }),
      }),
    ),
  };
}
