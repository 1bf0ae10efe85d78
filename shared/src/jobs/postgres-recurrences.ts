/**
 * Recurrences in Postgres: up to which due time each is decided, and the jobs of a due time in one statement, which is one
 * commit. Of workers that decide at once the second waits for the row of the first, and then changes nothing.
 */
import { jsonOf, type Statement } from '../postgres/connection.ts';
import { quote } from '../postgres/names.ts';
import { checkJobs } from './job.ts';
import type { JobStore, RecurrenceId } from './job-store.ts';
import { policyOf } from './postgres-tables.ts';
import { lineOf } from './postgres-transaction.ts';

/** Version 2 of the tables. */
export function recurrenceTables(name: string): readonly string[] {
  const s = quote(name);
  return [
    `create table ${s}.job_recurrence (
      role text not null,
      name text not null,
      cron text not null,
      made_at timestamptz not null,
      primary key (role, name, cron)
    )`,
    ...policyOf(s, 'job_recurrence'),
  ];
}

type Recurrences = Pick<JobStore<unknown>, 'recurrences' | 'recur'>;
type Found = Readonly<{ nowMs: number; made: readonly Readonly<{ n: number; madeMs: number }>[] }>;

const timeOf = (parameter: string): string => `to_timestamp(${parameter}::float8 / 1000)`;

export function recurrencesOf(s: string, query: Statement): Recurrences {
  const asked = `jsonb_to_recordset($1::jsonb) as x(n integer, role text, name text, cron text)`;
  const lookText = `select json_build_object('nowMs', floor(extract(epoch from clock_timestamp()) * 1000), 'made',
    (select coalesce(json_agg(json_build_object('n', x.n, 'madeMs', round(extract(epoch from r.made_at) * 1000))), '[]')
      from ${asked} join ${s}.job_recurrence r using (role, name, cron)))::text as answer`;
  const beginText = `insert into ${s}.job_recurrence (role, name, cron, made_at)
    select x.role, x.name, x.cron, date_trunc('milliseconds', clock_timestamp()) from ${asked}
    order by x.role, x.name, x.cron on conflict do nothing`;
  // The jobs are a value of the row that was moved: without that row nothing is enqueued.
  const recurText = `with moved as (update ${s}.job_recurrence r set made_at = ${timeOf('$5')}
      where r.role = $1 and r.name = $2 and r.cron = $3 and r.made_at = ${timeOf('$4')} returning true as is_moved),
    put as (select e.answer from moved m cross join lateral
      ${s}.enqueue_jobs(case when m.is_moved then $6::jsonb end) e)
    select (select count(*) from moved)::text as moved, (select count(*) from put)::text as jobs`;

  const look = async (ids: readonly RecurrenceId[]): Promise<Found> => {
    const [row] = await query('a look at recurring jobs', lookText, [linesOf(ids)]);
    return jsonOf<Found>(row, 'answer');
  };

  return {
    async recurrences(ids) {
      let found = await look(ids);
      if (found.made.length < ids.length) {
        await query('a look at recurring jobs', beginText, [linesOf(ids)]);
        found = await look(ids);
      }
      const madeMs: (number | undefined)[] = ids.map(() => undefined);
      for (const one of found.made) madeMs[one.n] = one.madeMs;
      return { nowMs: found.nowMs, madeMs };
    },
    async recur({ id: { role, name, cron }, fromMs, toMs, jobs }) {
      const lines = JSON.stringify(checkJobs(jobs).map(lineOf));
      const values = [role, name, cron, fromMs, toMs, lines];
      const [row] = await query('recurring jobs', recurText, values);
      return row?.['moved'] === '1';
    },
  };
}

const linesOf = (ids: readonly RecurrenceId[]): string => JSON.stringify(ids.map((id, n) => ({ n, ...id })));
