/**
 * Limits of roles in Postgres. A claim of a role without limits has nothing of this.
 *
 * A claim of a limited role takes the role's advisory lock, which its commit gives back, and counts under it: a function
 * that is volatile sees what was committed while it waited, where the statement around it does not. Jobs with a `limitKey`
 * stand in an index by key, and each key is a level of its own: those of a key without room are not passed over, they are
 * not looked at. Of each key one level is taken in a claim, the one whose head comes first.
 */
import { quote } from '../postgres/names.ts';
import { JOB_LIMITS } from './job.ts';
import type { ClaimLimits } from './job-store.ts';
import { enqueueFunctions, policyOf } from './postgres-tables.ts';

/** Version 3 of the tables: what limits need. The functions that enqueue are made again beside them. */
export function limitTables(name: string): readonly string[] {
  const s = quote(name);
  return [
    `alter table ${s}.job add column limit_key text collate "C" check (octet_length(limit_key) <= ${JOB_LIMITS.limitKeyBytes})`,
    `create index job_ready_key on ${s}.job (role, limit_key, priority, run_at, id)
      where state = 0 and crashes = 0 and limit_key is not null`,
    // Claims of roles whose starts are limited; n of them had one key.
    `create table ${s}.job_start (role text not null, limit_key text collate "C", n integer not null,
      at timestamptz not null, expires_at timestamptz not null)`,
    `create index job_start_role on ${s}.job_start (role)`,
    ...policyOf(s, 'job_start'),
    `alter type ${s}.new_job add attribute limit_key text`,
    `drop function if exists ${s}.enqueue_job(text, text, jsonb, text, integer, timestamptz, integer)`,
    ...enqueueFunctions(s),
    roomFunction(s, name),
    headsFunction(s),
  ];
}

/** A limited role, as the statement and its functions read it. */
export const limitLine = (role: string, { running, runningPerKey, starts, startsPerKey }: ClaimLimits) => ({
  role,
  running,
  running_per_key: runningPerKey,
  starts: starts?.most,
  starts_ms: starts?.perMs,
  starts_per_key: startsPerKey?.most,
  starts_per_key_ms: startsPerKey?.perMs,
});

const LIMITS = `jsonb_to_recordset(limits) as x(role text, running integer, running_per_key integer, starts integer,
  starts_ms float8, starts_per_key integer, starts_per_key_ms float8)`;

/** A row for each role, with its room or null for no limit, and one for each key that has used something of its own. */
const roomFunction = (s: string, name: string): string => `
create function ${s}.room_of_roles(limits jsonb) returns table (role text, limit_key text, room bigint)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  one text;
begin
  for one in select x.role from ${LIMITS} order by x.role loop
    perform pg_advisory_xact_lock(hashtextextended('${name} limits ' || one, 0));
  end loop;
  return query
  with l as (select * from ${LIMITS}),
  running as (select j.role, j.limit_key, count(*) as n from ${s}.job j
    where j.state = 1 and j.role in (select l.role from l) group by 1, 2),
  started as (select t.role, t.limit_key,
      sum(t.n) filter (where t.at > clock_timestamp() - l.starts_ms * interval '1 ms') as of_role,
      sum(t.n) filter (where t.at > clock_timestamp() - l.starts_per_key_ms * interval '1 ms') as of_key
    from ${s}.job_start t join l on l.role = t.role group by 1, 2)
  select l.role, null::text, least(
      l.running - (select coalesce(sum(r.n), 0) from running r where r.role = l.role),
      l.starts - (select coalesce(sum(t.of_role), 0) from started t where t.role = l.role))::bigint
    from l
  union all
  select l.role, k.limit_key, least(l.running_per_key - coalesce(r.n, 0), l.starts_per_key - coalesce(t.of_key, 0))::bigint
    from l
    join (select r.role, r.limit_key from running r union select t.role, t.limit_key from started t) k on k.role = l.role
    left join running r on r.role = k.role and r.limit_key = k.limit_key
    left join started t on t.role = k.role and t.limit_key = k.limit_key
    where k.limit_key is not null and coalesce(l.running_per_key, l.starts_per_key) is not null;
end $$`;

/** Heads of the levels of each key: one look at the index for each of them. */
const headsFunction = (s: string): string => `
create function ${s}.heads_of_keys(of_role text) returns table (limit_key text, priority smallint, run_at timestamptz)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  h record;
begin
  select j.limit_key, j.priority, j.run_at into h from ${s}.job j
    where j.state = 0 and j.crashes = 0 and j.limit_key is not null and j.role = of_role
    order by j.limit_key, j.priority, j.run_at, j.id limit 1;
  while h.limit_key is not null loop
    limit_key := h.limit_key;
    priority := h.priority;
    run_at := h.run_at;
    return next;
    select j.limit_key, j.priority, j.run_at into h from ${s}.job j
      where j.state = 0 and j.crashes = 0 and j.limit_key is not null and j.role = of_role
        and (j.limit_key, j.priority) > (h.limit_key, h.priority)
      order by j.limit_key, j.priority, j.run_at, j.id limit 1;
  end loop;
end $$`;

const MILLISECONDS = `* interval '1 ms'`;
/** Of a role with limits per key, so many of the oldest jobs of a priority are looked at for those without a key. */
const LOOK_AHEAD = 100;

/**
 * In place of the parts of a claim without limits, up to `chosen`. `$8` the limited roles as JSON.
 */
export const choosingWithin = (s: string, suspect: boolean): readonly string[] => [
  `level as materialized (select * from jsonb_to_recordset($3::jsonb)
    as x(role text, priority smallint, since float8, lease_ms float8))`,
  `room as materialized (select * from ${s}.room_of_roles($8::jsonb))`,
  `wanted as materialized (
    select r.role, r.lease_ms, x.role is not null as is_limited, coalesce(m.room, $4::bigint) as room,
      least(x.running_per_key, x.starts_per_key) as of_key, greatest(x.starts_ms, x.starts_per_key_ms) as kept_ms
    from (select role, min(lease_ms) as lease_ms from level group by role) r
    left join jsonb_to_recordset($8::jsonb) as x(role text, running_per_key integer, starts_per_key integer,
      starts_ms float8, starts_per_key_ms float8) on x.role = r.role
    left join room m on m.role = r.role and m.limit_key is null)`,
  // Levels of roles without limits per key, as in a claim without any.
  `plain as materialized (
    select x.id, h.role, x.limit_key, h.lease_ms, h.rank, x.run_at
    from (select l.role, l.priority, l.lease_ms, w.room, coalesce(to_timestamp(l.since), '-infinity') as since,
        f.run_at - l.priority * $5::float8 ${MILLISECONDS} as rank
      from level l join wanted w on w.role = l.role and w.room > 0 and w.of_key is null
      cross join lateral (select t.run_at from ${s}.job t
        where t.state = 0 and t.crashes = 0 and t.role = l.role and t.priority = l.priority
          and t.run_at >= coalesce(to_timestamp(l.since), '-infinity')
        order by t.run_at, t.id limit 1) f
      order by rank) h
    cross join lateral (select t.id, t.limit_key, t.run_at from ${s}.job t
      where t.state = 0 and t.crashes = 0 and t.role = h.role and t.priority = h.priority and t.run_at >= h.since
      order by t.run_at, t.id limit least($4::bigint, h.room) for update skip locked) x)`,
  `keyless as materialized (
    select x.id, l.role, null::text as limit_key, l.lease_ms,
      min(x.run_at) over (partition by l.role, l.priority) - l.priority * $5::float8 ${MILLISECONDS} as rank, x.run_at
    from level l join wanted w on w.role = l.role and w.room > 0 and w.of_key is not null
    cross join lateral (select t.id, t.run_at from ${s}.job t
      where t.state = 0 and t.crashes = 0 and t.limit_key is null and t.id in (select n.id from ${s}.job n
        where n.state = 0 and n.crashes = 0 and n.role = l.role and n.priority = l.priority
        order by n.run_at, n.id limit ${LOOK_AHEAD})
      order by t.run_at, t.id limit least($4::bigint, w.room) for update skip locked) x)`,
  `head as materialized (
    select h.* from (
      select distinct on (w.role, k.limit_key) w.role, k.limit_key, k.priority, w.lease_ms,
        least(coalesce(m.room, w.of_key), w.room) as room, k.run_at - k.priority * $5::float8 ${MILLISECONDS} as rank
      from wanted w cross join lateral ${s}.heads_of_keys(w.role) k
      left join room m on m.role = w.role and m.limit_key = k.limit_key
      where w.of_key is not null and w.room > 0 and coalesce(m.room, w.of_key) > 0
      order by w.role, k.limit_key, rank) h
    order by h.rank limit $4::integer)`,
  `keyed as materialized (
    select x.id, h.role, h.limit_key, h.lease_ms, h.rank, x.run_at
    from head h cross join lateral (select t.id, t.run_at from ${s}.job t
      where t.state = 0 and t.crashes = 0 and t.limit_key is not null and t.role = h.role
        and t.limit_key = h.limit_key and t.priority = h.priority
      order by t.run_at, t.id limit least($4::bigint, h.room) for update skip locked) x)`,
  `fresh as materialized (select * from plain union all select * from keyless union all select * from keyed)`,
  suspect
    ? `suspect as materialized (
    select x.id, w.role, x.limit_key, w.lease_ms, x.run_at - x.priority * $5::float8 ${MILLISECONDS} as rank, x.run_at
    from wanted w cross join lateral (select t.id, t.limit_key, t.run_at, t.priority from ${s}.job t
      where t.state = 0 and t.crashes > 0 and t.role = w.role and not exists (select from room m
        where m.role = t.role and m.limit_key = t.limit_key and m.room <= 0)
      order by t.run_at, t.id limit 1 for update of t skip locked) x
    where w.room > 0 order by rank limit 1)`
    : `suspect as (select null::bigint as id, ''::text as role, null::text as limit_key, 0::float8 as lease_ms,
      null::timestamptz as rank, null::timestamptz as run_at where false)`,
  // A suspect goes first where it is before all heads, and otherwise where room is left.
  `offered as materialized (
    select f.*, 1 as turn from fresh f union all
    select x.*, case when x.rank <= (select min(f.rank) from fresh f) then 0 else 2 end from suspect x)`,
  `counted as materialized (
    select o.*, row_number() over (partition by o.role order by o.turn, o.rank, o.run_at, o.id) as nth,
      row_number() over (partition by o.role, o.limit_key order by o.turn, o.rank, o.run_at, o.id) as nth_of_key
    from offered o)`,
  `chosen as materialized (
    select c.id, c.lease_ms, row_number() over (order by c.turn, c.rank, c.run_at, c.id) as ord
    from counted c join wanted w on w.role = c.role
    left join room m on m.role = c.role and m.limit_key = c.limit_key
    where (not w.is_limited or c.nth <= w.room)
      and (w.of_key is null or c.limit_key is null or c.nth_of_key <= coalesce(m.room, w.of_key))
    order by ord limit $4::integer)`,
];

/** After `claimed`, which returns role and key: the claims of roles whose starts are limited. */
export const startsOf = (s: string): readonly string[] => [
  `started as (insert into ${s}.job_start (role, limit_key, n, at, expires_at)
    select c.role, c.limit_key, count(*), clock_timestamp(), clock_timestamp() + w.kept_ms ${MILLISECONDS}
    from claimed c join wanted w on w.role = c.role where w.kept_ms is not null
    group by c.role, c.limit_key, w.kept_ms)`,
  `forgotten as (delete from ${s}.job_start t using wanted w
    where t.role = w.role and w.kept_ms is not null and t.expires_at < statement_timestamp())`,
];
