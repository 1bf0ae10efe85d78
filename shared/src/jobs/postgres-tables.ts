/**
 * The tables of jobs in Postgres, and the functions that more than one statement would take. Version 1; what was added to
 * them stands with its statements.
 *
 * `job` holds unfinished work only: finished rows never stand where claims look. `job_key` alone decides about keys, over
 * jobs in every state. An account in `job_grant` sees the rows of its roles; the owner of the tables sees all.
 *
 * State: 0 ready, 1 running, 2 waiting. `enqueue_jobs` is what every writer calls, in whatever language.
 */
import { quote } from '../postgres/names.ts';
import { JOB_LIMITS } from './job.ts';

/** Tables of this version, and of the next one, are understood. */
export const TABLES_VERSION = 3;

const NAME = `'^[A-Za-z0-9_.-]{1,${JOB_LIMITS.nameCharacters}}$'`;

/** A jsonb is shown with blanks that compact JSON has not, at most twice as long. */
const MOST_SHOWN_BYTES = JOB_LIMITS.payloadBytes * 2;

export function tablesOf(name: string): readonly string[] {
  const s = quote(name);
  return [
    `create table ${s}.job (
      id bigint generated always as identity primary key,
      v smallint not null default 1,
      role text not null check (role ~ ${NAME}),
      kind text not null check (kind ~ ${NAME}),
      payload jsonb not null check (octet_length(payload::text) <= ${MOST_SHOWN_BYTES}),
      key bytea,
      state smallint not null check (state between 0 and 2),
      priority smallint not null default 5 check (priority between 0 and 9),
      run_at timestamptz not null,
      attempts smallint not null default 0,
      crashes smallint not null default 0,
      max_attempts smallint not null default 3 check (max_attempts between 1 and ${JOB_LIMITS.maxAttempts}),
      token bigint not null default 0,
      owner text,
      call bigint,
      claimed_at timestamptz,
      lease_until timestamptz,
      cancel_asked boolean not null default false,
      error jsonb,
      created_at timestamptz not null default clock_timestamp()
    ) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
      autovacuum_vacuum_cost_delay = 0)`,
    `create index job_ready on ${s}.job (role, priority, run_at, id) where state = 0 and crashes = 0`,
    `create index job_suspect on ${s}.job (role, run_at, id) where state = 0 and crashes > 0`,
    `create index job_waiting on ${s}.job (run_at) where state = 2`,
    // lease_until stands in no index, so that a renewal changes none.
    `create index job_running on ${s}.job (id) where state = 1`,
    `create table ${s}.job_key (
      key bytea primary key,
      role text not null,
      fingerprint bytea not null,
      job_id bigint not null,
      expires_at timestamptz
    )`,
    `create index job_key_expiry on ${s}.job_key (expires_at) where expires_at is not null`,
    `create table ${s}.job_dead (
      id bigint primary key,
      role text not null,
      code text not null,
      text text not null,
      died_at timestamptz not null,
      job jsonb not null
    )`,
    `create index job_dead_role on ${s}.job_dead (role, id)`,
    `create table ${s}.job_log (
      id bigint not null,
      role text not null,
      kind text not null,
      outcome text not null,
      key bytea,
      token bigint not null,
      attempts smallint not null,
      crashes smallint not null,
      picked_up_ms bigint,
      ran_ms bigint,
      created_at timestamptz not null,
      finished_at timestamptz not null
    )`,
    `create index job_log_id on ${s}.job_log (id)`,
    `create index job_log_finished on ${s}.job_log (finished_at)`,
    `create table ${s}.job_sample (at timestamptz primary key, backlog integer not null, xid bigint not null)`,
    `create table ${s}.job_grant (account text not null, role text not null, primary key (account, role))`,
    ...['job', 'job_key', 'job_dead', 'job_log'].flatMap((table) => policyOf(s, table)),
    `create type ${s}.new_job as (n integer, id bigint, role text, kind text, payload jsonb, key bytea,
      fingerprint bytea, priority smallint, run_at timestamptz, max_attempts smallint)`,
    stateFunction(s),
    ...enqueueFunctions(s),
    cancelFunction(s),
    sampleFunction(s),
  ];
}

/** An account sees the rows of its roles, and writes no others. \`*\` is every role. */
export const policyOf = (s: string, table: string): readonly string[] => {
  const own = `(role in (select g.role from ${s}.job_grant g where g.account = current_user)
    or exists (select from ${s}.job_grant g where g.account = current_user and g.role = '*'))`;
  return [
    `alter table ${s}.${table} enable row level security`,
    `create policy own_roles on ${s}.${table} using ${own} with check ${own}`,
  ];
};

const stateFunction = (s: string): string => `
create function ${s}.state_of_job(job_id bigint) returns text language sql stable as $$
  select coalesce(
    (select case j.state when 0 then 'ready' when 1 then 'running' else 'waiting' end from ${s}.job j where j.id = $1),
    (select 'dead' from ${s}.job_dead d where d.id = $1),
    (select g.outcome from ${s}.job_log g where g.id = $1 order by g.finished_at desc limit 1),
    'done')
$$`;

/**
 * Jobs as a JSON list: role, kind, payload, and where wanted key, limit_key, priority, at (a time), after_ms, max_attempts. Answers
 * a row for each, n from 1: enqueued, repeated (with the state of that job) or conflict (id is the first job; null where
 * the account may not see it).
 *
 * Two statements and not one: the loser of a race for a key cannot see the winner's row in the statement that waited for
 * it. Keys are written in one order, or two batches would wait for each other.
 */
const enqueueFunction = (s: string): string => `
create or replace function ${s}.enqueue_jobs(jobs jsonb)
returns table (n integer, answer text, id bigint, state text) language plpgsql volatile as $$
#variable_conflict use_column
declare
  items ${s}.new_job[];
  fresh bigint[];
begin
  select array_agg(row(j.n, nextval('${s}.job_id_seq'), j.role, j.kind, j.payload,
      case when j.key is not null then sha256(convert_to(j.key, 'UTF8')) end,
      sha256(convert_to(concat_ws(E'\\n', j.role, j.kind, j.payload::text), 'UTF8')),
      coalesce(j.priority, 5),
      greatest(coalesce(j.at, clock_timestamp() + coalesce(j.after_ms, 0) * interval '1 ms'), clock_timestamp()),
      coalesce(j.max_attempts, 3), j.limit_key)::${s}.new_job order by j.n)
    into items
    from (select e.ordinality::integer as n, r.* from jsonb_array_elements(jobs) with ordinality e,
      lateral (select (e.value->>'role') as role, (e.value->>'kind') as kind, (e.value->'payload') as payload,
        (e.value->>'key') as key, (e.value->>'priority')::smallint as priority, (e.value->>'at')::timestamptz as at,
        (e.value->>'after_ms')::float8 as after_ms, (e.value->>'max_attempts')::smallint as max_attempts,
        (e.value->>'limit_key') as limit_key) r) j;
  if exists (select from jsonb_array_elements(jobs) e where octet_length(e->>'key') > ${JOB_LIMITS.keyBytes}) then
    raise exception 'a key has more than ${JOB_LIMITS.keyBytes} bytes' using errcode = '22001';
  end if;
  for round in 1..20 loop
    exit when items is null or cardinality(items) = 0;
    delete from ${s}.job_key k using (select d.key from ${s}.job_key d join unnest(items) i on d.key = i.key
      where d.expires_at < clock_timestamp() order by d.key for update of d) x where k.key = x.key;
    with taken as (
      insert into ${s}.job_key (key, role, fingerprint, job_id)
      select x.key, x.role, x.fingerprint, x.id
      from (select distinct on (i.key) i.* from unnest(items) i where i.key is not null order by i.key, i.n) x
      order by x.key on conflict (key) do nothing returning job_id),
    put as (
      insert into ${s}.job (id, role, kind, payload, key, state, priority, run_at, max_attempts, created_at, limit_key)
      overriding system value
      select i.id, i.role, i.kind, i.payload, i.key, case when i.run_at > clock_timestamp() then 2 else 0 end,
        i.priority, i.run_at, i.max_attempts, least(i.run_at, clock_timestamp()), i.limit_key
      from unnest(items) i where i.key is null or i.id in (select job_id from taken) order by i.id returning id)
    select coalesce(array_agg(put.id), '{}') into fresh from put;
    return query select i.n, 'enqueued', i.id, null from unnest(items) i where i.id = any(fresh);
    select array_agg(i) into items from unnest(items) i where i.id <> all(fresh);
    return query select i.n, case when k.fingerprint = i.fingerprint then 'repeated' else 'conflict' end, k.job_id,
      case when k.fingerprint = i.fingerprint then ${s}.state_of_job(k.job_id) end
      from unnest(items) i join ${s}.job_key k on k.key = i.key;
    -- Gone between the two statements: its writer has rolled back, or it had expired. It is tried again.
    select array_agg(i) into items from unnest(items) i
      where not exists (select from ${s}.job_key k where k.key = i.key);
  end loop;
  return query select i.n, 'conflict', null::bigint, null from unnest(items) i;
end $$`;

const oneFunction = (s: string): string => `
create or replace function ${s}.enqueue_job(role text, kind text, payload jsonb, key text default null,
  priority integer default 5, run_at timestamptz default null, max_attempts integer default 3,
  limit_key text default null)
returns table (answer text, id bigint, state text) language sql volatile as $$
  select e.answer, e.id, e.state from ${s}.enqueue_jobs(jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
    'role', role, 'kind', kind, 'key', key, 'priority', priority, 'at', run_at, 'max_attempts', max_attempts,
    'limit_key', limit_key))
    || jsonb_build_object('payload', payload))) e
$$`;

/** Made anew by each version that changes what a job has. */
export const enqueueFunctions = (s: string): readonly string[] => [enqueueFunction(s), oneFunction(s)];

/** The row is locked first: one statement that races a claim would find neither the row before nor the one after it. */
const cancelFunction = (s: string): string => `
create function ${s}.cancel_job(job_id bigint) returns text language plpgsql volatile as $$
declare
  found_job ${s}.job;
begin
  select * into found_job from ${s}.job j where j.id = job_id for update;
  if not found then return 'tooLate'; end if;
  if found_job.state = 1 then
    update ${s}.job j set cancel_asked = true where j.id = job_id;
    return 'requested';
  end if;
  delete from ${s}.job j where j.id = job_id;
  insert into ${s}.job_log (id, role, kind, outcome, key, token, attempts, crashes, created_at, finished_at)
    values (found_job.id, found_job.role, found_job.kind, 'cancelled', found_job.key, found_job.token,
      found_job.attempts, found_job.crashes, found_job.created_at, clock_timestamp());
  update ${s}.job_key k set expires_at = clock_timestamp() + interval '7 days'
    where k.key = found_job.key and k.job_id = found_job.id;
  return 'cancelled';
end $$`;

/** Of all roles, whichever account takes the sample: with the rights of the owner of the tables. One row a minute. */
const sampleFunction = (s: string): string => `
create function ${s}.sample_jobs() returns void language sql volatile security definer set search_path = pg_catalog as $$
  insert into ${s}.job_sample (at, backlog, xid)
  select date_trunc('minute', clock_timestamp()),
    (select count(*) from (select from ${s}.job j where j.state = 0 limit 10001) x),
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint
  where not exists (select from ${s}.job_sample x where x.at = date_trunc('minute', clock_timestamp()))
  on conflict (at) do nothing;
  delete from ${s}.job_sample x where x.at < clock_timestamp() - interval '1 day'
$$`;

/** Rights of accounts that own nothing: rows of which roles they see. */
export function grantsOf(
  name: string,
  grants: Readonly<Record<string, '*' | readonly string[]>>,
): readonly string[] {
  const s = quote(name);
  const accounts = Object.entries(grants);
  if (accounts.length === 0) return [];
  const names = accounts.map(([account]) => quote(account)).join(', ');
  const rows = accounts.flatMap(([account, roles]) =>
    (roles === '*' ? ['*'] : roles).map((role) => `('${account}', '${role}')`),
  );
  return [
    `grant usage on schema ${s} to ${names}`,
    `grant select, insert, update, delete on ${s}.job, ${s}.job_key, ${s}.job_dead, ${s}.job_log to ${names}`,
    `grant select, insert, update on ${s}.job_recurrence to ${names}`,
    `grant select, insert, delete on ${s}.job_start to ${names}`,
    `grant usage on sequence ${s}.job_id_seq to ${names}`,
    `grant select on ${s}.job_sample, ${s}.job_version, ${s}.job_grant to ${names}`,
    `delete from ${s}.job_grant where account in (${accounts.map(([account]) => `'${account}'`).join(', ')})`,
    `insert into ${s}.job_grant (account, role) values ${rows.join(', ')}`,
  ];
}
