/**
 * The statements of a worker: renewals, settlements and a claim as parts of one statement, so one round trip and one
 * commit. Each part is the SQL of a rule in `decide.ts`; the contract suite runs over both.
 *
 * Times are compared with `statement_timestamp()`, which an index can be asked for, and written by `clock_timestamp()`.
 * Numbers that need 64 bits, and times, are texts and milliseconds in JSON: no setting of the client can change them.
 */

import { choosingWithin, startsOf } from './postgres-limits.ts';

export type Parts = Readonly<{
  renew: boolean;
  settle: boolean;
  claim: boolean;
  suspect: boolean;
  /** A role of the claim has limits. */
  limits: boolean;
}>;

/** Whether a settlement ends the job, of its row `t` and its line `s`. */
const ENDS = `(s.ending in ('done', 'dead', 'cancelled') or t.cancel_asked
  or (s.ending = 'failed' and s.counts and t.attempts >= t.max_attempts))`;

const OUTCOME = `case when s.ending in ('done', 'dead') then s.ending
  when s.ending = 'cancelled' or t.cancel_asked then 'cancelled' else 'dead' end`;

const TOKEN = `greatest(t.token + 1, (extract(epoch from clock_timestamp()) * 1e6)::bigint)`;
const MILLISECONDS = `* interval '1 ms'`;

/** Columns of a claimed job, of its row `t`, as a JSON object. */
export const JOB_COLUMNS = `json_build_object('id', t.id::text, 'role', t.role, 'kind', t.kind, 'payload', t.payload,
  'priority', t.priority, 'attempt', t.attempts, 'maxAttempts', t.max_attempts, 'crashes', t.crashes,
  'createdMs', extract(epoch from t.created_at) * 1000, 'readyMs', extract(epoch from t.run_at) * 1000,
  'token', t.token::text, 'claimedMs', extract(epoch from t.claimed_at) * 1000)`;

/**
 * `$1` renewals, `$2` settlements, `$3` levels, each as JSON; `$4` limit, `$5` milliseconds of ageing, `$6` owner, `$7` call;
 * with limits `$8`, the limited roles as JSON.
 */
export function exchangeStatement(s: string, { renew, settle, claim, suspect, limits }: Parts): string {
  const parts = [
    // What no part asks for has a type all the same.
    `given as (select $1::jsonb, $2::jsonb, $3::jsonb, $4::integer, $5::float8, $6::text, $7::bigint)`,
    ...(renew ? renewal(s) : []),
    ...(settle ? settlement(s) : []),
    ...(claim && !limits ? [...choosing(s, suspect), claiming(s)] : []),
    ...(claim && limits ? [...choosingWithin(s, suspect), claiming(s), ...startsOf(s)] : []),
  ];
  return `with ${parts.join(',\n')}
    select ${renew ? `(select coalesce(json_agg(r), '[]') from renewed r)` : `'[]'`}::text as renewed,
      ${settle ? `(select coalesce(json_agg(x), '[]') from (select n, outcome as state from ended union all select n, state from kept) x)` : `'[]'`}::text as settled,
      ${claim ? `(select coalesce(json_agg(c.job order by c.ord), '[]') from claimed c)` : `'[]'`}::text as claimed`;
}

const renewal = (s: string): readonly string[] => [
  `renewed as (update ${s}.job t set lease_until = clock_timestamp() + r.lease_ms ${MILLISECONDS}
    from jsonb_to_recordset($1::jsonb) as r(n integer, id bigint, token bigint, lease_ms float8)
    where t.id = r.id and t.token = r.token and t.state = 1
    returning r.n, t.cancel_asked as "cancelAsked")`,
];

/** A row is either ended or kept: a cancellation in between is in neither, and is asked about afterwards. */
const settlement = (s: string): readonly string[] => [
  `settlement as materialized (select * from jsonb_to_recordset($2::jsonb)
    as x(n integer, id bigint, token bigint, ending text, delay_ms float8, counts boolean, error jsonb))`,
  `ended as (delete from ${s}.job t using settlement s
    where t.id = s.id and t.token = s.token and t.state = 1 and ${ENDS}
    returning s.n, ${OUTCOME} as outcome, s.error as why, t.*)`,
  `kept as (update ${s}.job t set
      state = case when s.ending = 'failed' and s.delay_ms > 0 then 2 else 0 end,
      attempts = t.attempts - case when s.ending = 'failed' and s.counts then 0 else 1 end,
      error = case when s.ending = 'failed' then s.error else t.error end,
      run_at = case when s.ending = 'failed' then clock_timestamp() + s.delay_ms ${MILLISECONDS} else t.run_at end
    from settlement s where t.id = s.id and t.token = s.token and t.state = 1 and not ${ENDS}
    returning s.n, case t.state when 2 then 'waiting' else 'ready' end as state)`,
  ...endings(s, 'ended'),
];

/** What belongs to the end of a job: its log row, its place among the dead, the expiry of its key. */
const endings = (s: string, ended: string): readonly string[] => [
  `logged as (insert into ${s}.job_log
    (id, role, kind, outcome, key, token, attempts, crashes, picked_up_ms, ran_ms, created_at, finished_at)
    select e.id, e.role, e.kind, e.outcome, e.key, e.token, e.attempts, e.crashes,
      (extract(epoch from e.claimed_at - e.run_at) * 1000)::bigint,
      (extract(epoch from clock_timestamp() - e.claimed_at) * 1000)::bigint, e.created_at, clock_timestamp()
    from ${ended} e)`,
  `died as (insert into ${s}.job_dead (id, role, code, text, died_at, job)
    select e.id, e.role, coalesce(e.why->>'code', ''), coalesce(e.why->>'text', ''), clock_timestamp(),
      to_jsonb(e) - array['n', 'why', 'outcome']
    from ${ended} e where e.outcome = 'dead')`,
  `freed as (update ${s}.job_key k set expires_at = clock_timestamp() + interval '7 days'
    from ${ended} e where k.key = e.key and k.job_id = e.id and e.outcome <> 'dead')`,
];

/**
 * Levels are the roles of the worker times the priorities. Each has a head, which the index finds at once; levels are
 * taken in the order of their heads, less the ageing of their priority. One suspect is taken where it is before all heads,
 * or where there is room.
 */
const choosing = (s: string, suspect: boolean): readonly string[] => [
  `level as materialized (select * from jsonb_to_recordset($3::jsonb)
    as x(role text, priority smallint, since float8, lease_ms float8))`,
  `head as materialized (
    select l.role, l.priority, l.lease_ms, coalesce(to_timestamp(l.since), '-infinity') as since,
      h.run_at - l.priority * $5::float8 ${MILLISECONDS} as rank
    from level l cross join lateral (select t.run_at from ${s}.job t
      where t.state = 0 and t.crashes = 0 and t.role = l.role and t.priority = l.priority
        and t.run_at >= coalesce(to_timestamp(l.since), '-infinity')
      order by t.run_at, t.id limit 1) h
    order by rank)`,
  suspect
    ? `suspect as materialized (
    select x.id, r.lease_ms, x.run_at - x.priority * $5::float8 ${MILLISECONDS} as rank
    from (select role, min(lease_ms) as lease_ms from level group by role) r cross join lateral
      (select t.id, t.run_at, t.priority from ${s}.job t where t.state = 0 and t.crashes > 0 and t.role = r.role
        order by t.run_at, t.id limit 1 for update skip locked) x
    order by rank limit 1)`
    : `suspect as (select null::bigint as id, 0::float8 as lease_ms, null::timestamptz as rank where false)`,
  `due as materialized (select x.* from suspect x
    where not exists (select from head) or x.rank <= (select min(h.rank) from head h))`,
  `taken as materialized (
    select x.id, h.lease_ms from head h cross join lateral (select t.id from ${s}.job t
      where t.state = 0 and t.crashes = 0 and t.role = h.role and t.priority = h.priority and t.run_at >= h.since
      order by t.run_at, t.id limit $4::integer for update skip locked) x
    limit $4::integer)`,
  `chosen as materialized (
    select x.id, x.lease_ms, row_number() over () as ord from (
      select id, lease_ms from due union all select id, lease_ms from taken union all
      select x.id, x.lease_ms from suspect x where not exists (select from due)) x
    limit $4::integer)`,
];

/** By a list, and not a join: a plan for more rows than there are would read all of the table for them. */
const claiming = (
  s: string,
): string => `claimed as (update ${s}.job t set state = 1, owner = $6::text, call = $7::bigint,
      attempts = t.attempts + 1, claimed_at = clock_timestamp(), token = ${TOKEN},
      lease_until = clock_timestamp() + (select c.lease_ms from chosen c where c.id = t.id) ${MILLISECONDS}
    where t.id = any (array(select c.id from chosen c))
    returning (select c.ord from chosen c where c.id = t.id) as ord, ${JOB_COLUMNS} as job, t.role, t.limit_key)`;

/** Of settlements that met no running row: what the log or the job itself says of that very run. `$1` as JSON. */
export const settledBeforeStatement = (s: string): string => `
  select json_build_object('n', x.n, 'state', coalesce(
      (select g.outcome from ${s}.job_log g where g.id = x.id and g.token = x.token limit 1),
      case when t.state = 1 then 'running' when t.owner is null then null
        when t.state = 2 then 'waiting' when t.state = 0 then 'ready' end))::text as answer
  from jsonb_to_recordset($1::jsonb) as x(n integer, id bigint, token bigint)
  left join ${s}.job t on t.id = x.id and t.token = x.token`;

/**
 * Due jobs become ready. Rows that others are promoting are left to them. `$1` how many.
 */
export const promoteStatement = (s: string): string => `
  with due as materialized (select id from ${s}.job where state = 2 and run_at <= statement_timestamp()
    order by run_at limit $1 for update skip locked)
  update ${s}.job t set state = 0 from due where t.id = due.id returning 1 as promoted`;

/** Expired leases. `$1` how many, `$2` crashes before the end, `$3` milliseconds that the server must have been up. */
export const rescueStatement = (s: string): string => `
  with expired as materialized (
    select t.*, t.cancel_asked or t.attempts >= t.max_attempts or t.crashes + 1 >= $2::integer as is_over
    from ${s}.job t where t.state = 1 and t.lease_until < statement_timestamp()
      and pg_postmaster_start_time() < statement_timestamp() - $3::float8 ${MILLISECONDS}
    order by t.id limit $1 for update skip locked),
  kept as (update ${s}.job t set state = 0, crashes = t.crashes + 1, owner = null, call = null, error = $4::jsonb
    from expired x where t.id = x.id and not x.is_over returning 'ready' as state),
  gone as (delete from ${s}.job t using expired x where t.id = x.id and x.is_over returning t.*),
  ended as (select case when g.cancel_asked then 'cancelled' else 'dead' end as outcome, $4::jsonb as why,
      g.state, g.id, g.v, g.role, g.kind, g.payload, g.key, g.priority, g.run_at, g.attempts, (g.crashes + 1)::smallint as crashes,
      g.max_attempts, g.limit_key, g.token, g.owner, g.call, g.claimed_at, g.lease_until, g.cancel_asked, g.error, g.created_at
    from gone g),
  ${endings(s, 'ended').join(',\n')}
  select state from kept union all select outcome from ended`;
