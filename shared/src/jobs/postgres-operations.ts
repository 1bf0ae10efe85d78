/**
 * What operators and schedulers ask of the tables in Postgres: dead jobs, counts, health, deletions.
 */
import { jsonOf, type Statement } from '../postgres/connection.ts';
import type { Snapshot, Vitals } from './health.ts';
import { CRASHED } from './decide.ts';
import { MOST_CRASHES } from './job.ts';
import { type DeadJob, type JobStore, MOST_COUNTED } from './job-store.ts';
import { promoteStatement, rescueStatement } from './postgres-statements.ts';

type Operations = Pick<
  JobStore<unknown>,
  'rescue' | 'cancel' | 'dead' | 'relaunch' | 'discard' | 'look' | 'vitals' | 'tidy'
>;

/** Rows of one deletion: short enough that no other statement waits long. */
const BATCH = 1_000;
const BATCHES = 20;
/** The newest runs by which the pick-up time is judged. */
const JUDGED_RUNS = 10_000;

export function operationsOf(s: string, query: Statement, afterStartMs: number): Operations {
  const one = async (what: string, text: string, values: readonly unknown[] = []): Promise<unknown> => {
    const [row] = await query(what, text, values);
    return row === undefined ? undefined : jsonOf<unknown>(row, 'answer');
  };
  /** Deletes in batches until one is not full. */
  const deleted = async (table: string, column: string, where: string): Promise<number> => {
    let sum = 0;
    for (let batch = 0; batch < BATCHES; batch += 1) {
      const text = `with x as (delete from ${s}.${table} where ctid = any (array(select ctid from ${s}.${table}
        where ${where} order by ${column} limit ${BATCH} for update skip locked)) returning 1)
        select count(*)::text as answer from x`;
      const count = Number(await one('tidy', text));
      sum += count;
      if (count < BATCH) break;
    }
    return sum;
  };

  return {
    async rescue(limit) {
      const promoted = await query('a promotion', promoteStatement(s), [limit]);
      const ends = await query('a rescue', rescueStatement(s), [
        limit,
        MOST_CRASHES,
        afterStartMs,
        JSON.stringify(CRASHED),
      ]);
      const countOf = (state: string): number => ends.filter((row) => row['state'] === state).length;
      return {
        promoted: promoted.length,
        rescued: countOf('ready'),
        dead: countOf('dead'),
        cancelled: countOf('cancelled'),
        more: promoted.length === limit || ends.length === limit,
      };
    },
    async cancel(id) {
      const [row = {}] = await query('a cancellation', `select ${s}.cancel_job($1) as answer`, [id]);
      return row['answer'] as 'cancelled' | 'requested' | 'tooLate';
    },
    async dead({ role, limit, after }) {
      const text = `select coalesce(json_agg(x.job), '[]')::text as answer from (
        select json_build_object('id', d.id::text, 'role', d.role, 'kind', d.job->>'kind', 'payload', d.job->'payload',
          'priority', d.job->'priority', 'attempt', d.job->'attempts', 'maxAttempts', d.job->'max_attempts',
          'crashes', d.job->'crashes',
          'createdMs', extract(epoch from (d.job->>'created_at')::timestamptz) * 1000,
          'readyMs', extract(epoch from (d.job->>'run_at')::timestamptz) * 1000,
          'reason', json_build_object('code', d.code, 'text', d.text),
          'diedMs', extract(epoch from d.died_at) * 1000) as job
        from ${s}.job_dead d where ($1::text is null or d.role = $1) and ($2::bigint is null or d.id < $2)
        order by d.id desc limit $3) x`;
      const found = (await one('dead jobs', text, [role ?? null, after ?? null, limit + 1])) as DeadJob[];
      const items = found.slice(0, limit);
      const last = items.at(-1);
      return { items, ...(found.length > limit && last !== undefined && { next: last.id }) };
    },
    async relaunch(ids) {
      const text = `with x as (delete from ${s}.job_dead where id = any ($1::bigint[]) returning job),
        put as (insert into ${s}.job (id, v, role, kind, payload, key, state, priority, run_at, max_attempts, token,
            created_at, limit_key)
          overriding system value
          select j.id, j.v, j.role, j.kind, j.payload, j.key, 0, j.priority, clock_timestamp(), j.max_attempts, j.token,
            j.created_at, j.limit_key
          from x, jsonb_populate_record(null::${s}.job, x.job) j returning 1)
        select count(*)::text as answer from put`;
      return Number(await one('a relaunch', text, [ids]));
    },
    async discard(ids) {
      const text = `with x as (delete from ${s}.job_dead where id = any ($1::bigint[]) returning id, job),
        freed as (update ${s}.job_key k set expires_at = clock_timestamp() + interval '7 days'
          from x where k.key = (x.job->>'key')::bytea and k.job_id = x.id)
        select count(*)::text as answer from x`;
      return Number(await one('a discard', text, [ids]));
    },
    async look(role) {
      const counted = (from: string, where: string): string =>
        `(select count(*) from (select from ${s}.${from} where (${where}) and ($1::text is null or role = $1)
          limit ${MOST_COUNTED}) x)`;
      const text = `select json_build_object('ready', ${counted('job', 'state = 0')},
        'waiting', ${counted('job', 'state = 2')}, 'running', ${counted('job', 'state = 1')},
        'suspects', ${counted('job', 'state = 0 and crashes > 0')}, 'dead', ${counted('job_dead', 'true')})::text
        as answer`;
      return (await one('a look', text, [role ?? null])) as Awaited<ReturnType<Operations['look']>>;
    },
    async vitals(windowMs) {
      const window = `statement_timestamp() - $1::float8 * interval '1 ms'`;
      const text = `select json_build_object(
        'backlog', (select count(*) from (select from ${s}.job where state = 0
          or (state = 2 and run_at <= statement_timestamp()) limit ${MOST_COUNTED}) x),
        'meanBacklog', (select avg(backlog) from ${s}.job_sample where at > ${window}),
        'coveredMs', (select count(*) * 60000 from ${s}.job_sample where at > ${window}),
        'pickUpP95Ms', (select percentile_disc(0.95) within group (order by picked_up_ms) from (
          select picked_up_ms from ${s}.job_log where finished_at > ${window} and picked_up_ms is not null
          order by finished_at desc limit ${JUDGED_RUNS}) x),
        'dead', (select count(*) from (select from ${s}.job_dead limit ${MOST_COUNTED}) x),
        'seesAll', pg_has_role(current_user, 'pg_read_all_stats', 'member'))::text as answer`;
      const { seesAll, meanBacklog, pickUpP95Ms, ...rest } = (await one('health', text, [windowMs])) as Found;
      return {
        ...rest,
        meanBacklog: meanBacklog ?? undefined,
        pickUpP95Ms: pickUpP95Ms ?? undefined,
        snapshot: await oldestSnapshot(s, one),
        unseen: seesAll ? [] : ['transactions of other accounts (grant pg_read_all_stats)'],
      };
    },
    async tidy() {
      await query('a sample', `select ${s}.sample_jobs()`);
      const keys = await deleted('job_key', 'expires_at', 'expires_at < statement_timestamp()');
      const days = `finished_at < statement_timestamp() - interval '14 days'`;
      return { keys, logged: await deleted('job_log', 'finished_at', days) };
    },
  };
}

type Found = Omit<Vitals, 'meanBacklog' | 'pickUpP95Ms' | 'snapshot' | 'unseen'> &
  Readonly<{ meanBacklog: number | null; pickUpP95Ms: number | null; seesAll: boolean }>;

/**
 * The oldest transaction that keeps dead rows: of a connection (its \`backend_xmin\`, or the ID of an idle writer), a prepared
 * one, or a replication slot, whose age is read from the samples.
 */
async function oldestSnapshot(
  s: string,
  one: (what: string, text: string) => Promise<unknown>,
): Promise<Snapshot | undefined> {
  const text = `select json_build_object('holder', x.holder,
      'ageMs', extract(epoch from statement_timestamp() - x.since) * 1000)::text as answer
    from (
      select 'process ' || a.pid || coalesce(' of ' || a.usename, '') as holder, a.xact_start as since
        from pg_stat_activity a
        where (a.backend_xmin is not null or a.backend_xid is not null) and a.pid <> pg_backend_pid()
      union all select 'prepared transaction ' || p.gid, p.prepared from pg_prepared_xacts p
      union all select 'replication slot ' || r.slot_name, (select max(m.at) from ${s}.job_sample m
          where m.xid <= pg_snapshot_xmax(pg_current_snapshot())::text::bigint
            - greatest(coalesce(age(r.xmin), 0), coalesce(age(r.catalog_xmin), 0)))
        from pg_replication_slots r where r.xmin is not null or r.catalog_xmin is not null
    ) x where x.since is not null order by x.since limit 1`;
  return (await one('health', text)) as Snapshot | undefined;
}
