/**
 * What the relay reads and writes, over the tables in Postgres: each method is one statement and one commit.
 *
 * Postgres has no longest transaction, so no time below which everything was seen: a pass reads the index of what is
 * pending from its first entry each time, and only what is pending is in it. The bound is kept, and not asked.
 */
import { jsonOf, type Statement } from '../postgres/connection.ts';
import type {
  ClaimedRow,
  LookedRow,
  PendingRow,
  RelayStore,
  StreamRow,
  StreamState,
  OutboxFailures,
} from './outbox-store.ts';
import { WRITERS } from './postgres-tables.ts';
import type { Row, StreamRef } from './rows.ts';

export const NOW = `floor(extract(epoch from clock_timestamp()) * 1000)::bigint`;

/** A row's columns, of its row `r`, as JSON. */
const ROW = `json_build_object('id', r.id, 'topic', r.topic, 'message', encode(r.message, 'base64'), 'key', r.key,
  'epoch', r.epoch, 'number', r.number, 'after', r.after, 'payload', r.payload, 'group', r.slot_group)`;

type FoundRow = Readonly<{
  id: string;
  topic: string;
  message: string;
  key: string | null;
  epoch: string | null;
  number: number | null;
  after: number | null;
  payload: Row['payload'] | null;
  group: string | null;
}>;

const rowFrom = ({ id, topic, message, key, epoch, number, after, payload, group }: FoundRow): Row => ({
  id,
  topic,
  message: Buffer.from(message, 'base64'),
  ...(key !== null &&
    epoch !== null && { place: { key, epoch, number: Number(number), after: Number(after) } }),
  ...(payload !== null && payload !== undefined && { payload }),
  ...(group !== null && { group }),
});

/** Sent, and found by no pass any more. */
const SENT = `state = 1, owner = null, due_ms = null, sent_ms = ${NOW}`;

export function postgresRelay(s: string, query: Statement, shards: number): RelayStore {
  const version = `nextval('${s}.outbox_write')`;
  const one = async <Value>(
    what: string,
    text: string,
    values: readonly unknown[] = [],
  ): Promise<Value | undefined> => {
    const [row] = await query(what, text, values);
    return row === undefined ? undefined : (jsonOf<Value | null>(row, 'answer') ?? undefined);
  };

  return {
    shards,
    async readStream({ key, epoch }) {
      const text = `select json_build_object('nowMs', ${NOW}, 'version', t.version::text, 'state', case when t.key is not null then
          json_build_object('sent', t.sent, 'owner', t.owner, 'untilMs', t.until_ms, 'attempts', t.attempts,
            'nextTryMs', t.next_try_ms, 'blocked', t.blocked, 'parkedMs', t.parked_ms) end)::text as answer
        from (select 1) x left join ${s}.outbox_stream t on t.key = $1 and t.epoch = $2`;
      const found = await one<Readonly<{ nowMs: number; version: string | null; state: StreamState | null }>>(
        'a stream',
        text,
        [key, epoch],
      );
      const { state, nowMs = 0 } = found ?? {};
      if (state === null || state === undefined) return { state: undefined, version: undefined, nowMs };
      const { owner, blocked, parkedMs, ...rest } = state;
      const known = {
        owner: owner ?? undefined,
        blocked: blocked ?? undefined,
        parkedMs: parkedMs ?? undefined,
      };
      return { state: { ...rest, ...known }, version: found?.version ?? undefined, nowMs };
    },
    async writeStream({ key, epoch }, seen, write, sent, { parked = [], isOver } = {}) {
      const { owner, blocked, parkedMs, nextTryMs } = write;
      const watch =
        isOver || (parkedMs !== undefined && owner === undefined && blocked !== undefined)
          ? 'null::bigint'
          : parkedMs === undefined || owner !== undefined
            ? undefined
            : nextTryMs === 0
              ? NOW
              : `$6::bigint`;
      const columns = `sent, owner, until_ms, attempts, next_try_ms, blocked, parked_ms`;
      const values = `$3::bigint, $4::text, case when $4::text is null then 0 else ${NOW} + $7::bigint end, $5::integer,
        $6::bigint, $8::jsonb, $9::bigint`;
      const there = `(select count(*) from ${s}.outbox_row where id = any ($10::text[] || $11::text[]))
        = cardinality(array(select distinct unnest($10::text[] || $11::text[])))`;
      const written =
        seen === undefined
          ? `insert into ${s}.outbox_stream (key, epoch, ${columns}, watch_due_ms)
              select $1, $2, ${values}, ${watch ?? 'null'} where ${there} and $12::bigint is null
              on conflict do nothing returning version`
          : `update ${s}.outbox_stream set (${columns}) = row(${values}), version = ${version}
              ${watch === undefined ? '' : `, watch_due_ms = ${watch}`}
              where key = $1 and epoch = $2 and version = $12::bigint and ${there} returning version`;
      const text = `with written as (${written}),
        marked as (update ${s}.outbox_row set ${SENT}, version = ${version}
          where id = any ($10::text[]) and exists (select from written)),
        left_out as (update ${s}.outbox_row set due_ms = null, version = ${version}
          where id = any ($11::text[]) and not id = any ($10::text[]) and exists (select from written))
        select to_json(version::text)::text as answer from written`;
      return one<string>('a stream', text, [
        key,
        epoch,
        write.sent,
        owner ?? null,
        write.attempts,
        Math.round(nextTryMs),
        Math.round(write.leaseMs),
        blocked === undefined ? null : JSON.stringify(blocked),
        parkedMs === undefined ? null : Math.round(parkedMs),
        sent,
        parked,
        seen ?? null,
      ]);
    },
    async after({ key, epoch }, number, limit) {
      const text = `select coalesce(json_agg(x.found), '[]')::text as answer from (
        select json_build_object('row', ${ROW}, 'createdMs', r.created_ms, 'isSent', r.state = 1) as found
        from ${s}.outbox_row r where r.key = $1 and r.epoch = $2 and r.number > $3 order by r.number limit $4) x`;
      const found = await one<readonly Readonly<{ row: FoundRow; createdMs: number; isSent: boolean }>[]>(
        'rows',
        text,
        [key, epoch, number, limit],
      );
      return (found ?? []).flatMap(({ row, createdMs, isSent }): StreamRow[] => {
        const { place, ...rest } = rowFrom(row);
        return place === undefined ? [] : [{ ...rest, place, createdMs, isSent }];
      });
    },
    streamOf: (key) =>
      one<StreamRef>(
        'a counter',
        `select json_build_object('key', key, 'epoch', epoch)::text as answer from ${s}.outbox_counter where key = $1`,
        [key],
      ),
    async bound() {
      return (await one<number>('the bound', `select bound_ms::text as answer from ${s}.outbox_bound`)) ?? 0;
    },
    async raiseBound(boundMs) {
      const text = `insert into ${s}.outbox_bound (bound_ms) values ($1::bigint) on conflict (one)
        do update set bound_ms = greatest(outbox_bound.bound_ms, excluded.bound_ms)`;
      await query('the bound', text, [Math.floor(boundMs)]);
    },
    async pending(shard, _fromMs, after, limit) {
      const [due, id] = cursorOf(after);
      const streams = `union all select t.watch_due_ms as due_ms, 'stream/' || json_build_array(t.key, t.epoch) as id,
          json_build_object('id', 'stream/' || json_build_array(t.key, t.epoch), 'version', t.version::text,
            'createdMs', t.parked_ms, 'dueMs', t.watch_due_ms, 'freeMs', 0,
            'stream', json_build_object('key', t.key, 'epoch', t.epoch)) as found
        from ${s}.outbox_stream t where t.watch_due_ms <= ${NOW}`;
      const text = `select json_build_object('readMs', ${NOW}, 'rows', coalesce((select json_agg(y.found) from (
        select x.found from (
          (select r.due_ms, r.id, json_build_object('id', r.id, 'version', r.version::text, 'createdMs', r.created_ms,
              'dueMs', r.due_ms, 'freeMs', case when r.key is null
                then greatest(case when r.owner is null then 0 else r.until_ms end, r.next_try_ms) else 0 end,
              'place', case when r.key is not null then json_build_object('key', r.key, 'epoch', r.epoch,
                'number', r.number, 'after', r.after) end) as found
            from ${s}.outbox_row r
            where r.shard = $1 and r.due_ms <= floor(extract(epoch from statement_timestamp()) * 1000)::bigint
              and (r.due_ms, r.id) > ($2::bigint, $3::text)
            order by r.due_ms, r.id limit $4::integer)
          ${shard === 0 ? streams : ''}) x
        where (x.due_ms, x.id) > ($2::bigint, $3::text) order by x.due_ms, x.id limit $4::integer) y), '[]'))::text as answer`;
      type Found = Omit<PendingRow, 'place'> & Readonly<{ place?: PendingRow['place'] | null }>;
      const found = await one<Readonly<{ readMs: number; rows: readonly Found[] }>>('pending rows', text, [
        shard,
        due,
        id,
        limit,
      ]);
      const { readMs = 0, rows = [] } = found ?? {};
      const last = rows.at(-1);
      return {
        readMs,
        rows: rows.map(({ place, ...rest }) => ({ ...rest, ...(place && { place }) })),
        ...(rows.length === limit && last !== undefined && { next: `${last.dueMs}/${last.id}` }),
      };
    },
    async defer({ id, version: seen }, untilMs) {
      const text = `update ${s}.outbox_row set due_ms = $3, version = ${version} where id = $1 and version = $2::bigint`;
      await query('a row', text, [id, seen, Math.round(untilMs)]);
    },
    async countBlocked() {
      const text = `select count(*)::text as answer from ${s}.outbox_stream where blocked is not null`;
      return (await one<number>('streams', text)) ?? 0;
    },
    async look(id) {
      type Found = Omit<LookedRow, 'place'> & Readonly<{ place: LookedRow['place'] | null }>;
      const text = `select json_build_object('createdMs', created_ms, 'nowMs', ${NOW}, 'isSelected', due_ms is not null,
          'isWriters', owner is not null and starts_with(owner, '${WRITERS}') and until_ms > ${NOW},
          'place', case when key is not null
            then json_build_object('key', key, 'epoch', epoch, 'number', number, 'after', after) end)::text as answer
        from ${s}.outbox_row where id = $1 and state = 0`;
      const found = await one<Found>('a row', text, [id]);
      if (found === undefined) return undefined;
      const { place, ...rest } = found;
      return { ...rest, ...(place && { place }) };
    },
    async claim(id, owner, leaseMs, { fromWriter = false } = {}) {
      const text = `update ${s}.outbox_row r set owner = $2, until_ms = ${NOW} + $3::bigint, version = ${version}
        where r.id = $1 and r.state = 0 and r.next_try_ms <= ${NOW}
          and (r.owner is null or r.owner in ($2, '${WRITERS}' || $2) or r.until_ms <= ${NOW}
            or ($4::boolean and starts_with(r.owner, '${WRITERS}')))
        returning json_build_object('row', ${ROW}, 'version', r.version::text, 'attempts', r.attempts,
          'createdMs', r.created_ms, 'nowMs', ${NOW})::text as answer`;
      const found = await one<Omit<ClaimedRow, 'row'> & Readonly<{ row: FoundRow }>>('a row', text, [
        id,
        owner,
        leaseMs,
        fromWriter,
      ]);
      return found && { ...found, row: rowFrom(found.row) };
    },
    async markSent(ids) {
      await query('rows', `update ${s}.outbox_row set ${SENT}, version = ${version} where id = any ($1)`, [
        ids,
      ]);
    },
    async remove(ids) {
      await query('rows', `delete from ${s}.outbox_row where id = any ($1)`, [ids]);
    },
    async reschedule(id, seen, how, group = { removed: [], next: id }) {
      const failed = 'code' in how;
      const change = failed
        ? `state = 2, due_ms = null, failure = $5::jsonb`
        : `attempts = $6::integer, next_try_ms = $7::bigint, due_ms = case when $7::bigint = 0 then ${NOW} else $7::bigint end`;
      const text = `with given as (select $5::jsonb, $6::integer, $7::bigint),
        seen as materialized (select id from ${s}.outbox_row
          where id = $1 and ($2::bigint is null or version = $2::bigint) for update),
        next as (update ${s}.outbox_row set owner = null, until_ms = 0, version = ${version}, ${change}
          where id = $3 and exists (select from seen)
          returning id),
        gone as (delete from ${s}.outbox_row where id = any ($4::text[]) and exists (select from next))
        select count(*) from next`;
      await query('a row', text, [
        id,
        seen ?? null,
        group.next,
        group.removed,
        failed ? JSON.stringify({ code: how.code, text: how.text }) : null,
        failed ? null : how.attempts,
        failed ? null : Math.round(how.nextTryMs),
      ]);
    },
    first: (prefix) =>
      one(
        'a row',
        `select json_build_object('id', r.id, 'isFailed', r.state = 2, 'nowMs', ${NOW},
            'freeMs', greatest(case when r.owner is null then 0 else r.until_ms end, r.next_try_ms))::text as answer
          from ${s}.outbox_row r where r.id >= $1 and r.id < $1 || chr(1114111) order by r.id limit 1`,
        [prefix],
      ),
    async behind(group, id, limit) {
      const text = `select coalesce(json_agg(x.found), '[]')::text as answer from (select ${ROW} as found
        from ${s}.outbox_row r where r.id > $2 and r.id >= $1 and r.id < $1 || chr(1114111) order by r.id limit $3) x`;
      const found = await one<readonly FoundRow[]>('rows', text, [`${group}.`, id, limit]);
      return (found ?? []).map(rowFrom);
    },
    async listFailures(limit) {
      const text = `select json_build_object(
        'streams', coalesce((select json_agg(x.found) from (select json_build_object('ref', json_build_object('key', t.key,
            'epoch', t.epoch), 'blocked', t.blocked, 'sent', t.sent) as found
          from ${s}.outbox_stream t where t.blocked is not null order by t.version desc limit $1) x), '[]'),
        'rows', coalesce((select json_agg(x.found) from (select json_build_object('id', r.id, 'code', r.failure->>'code',
            'text', r.failure->>'text') as found
          from ${s}.outbox_row r where r.state = 2 order by r.created_ms desc limit $1) x), '[]'))::text as answer`;
      return (await one<OutboxFailures>('what has failed', text, [limit])) ?? { streams: [], rows: [] };
    },
    async reopen(id) {
      const text = `update ${s}.outbox_row set state = 0, due_ms = ${NOW}, attempts = 0, next_try_ms = 0, failure = null,
        version = ${version} where id = $1 and state = 2 returning 'true' as answer`;
      return (await one<boolean>('a row', text, [id])) ?? false;
    },
  };
}

/** Where a page ended. */
function cursorOf(after: string | undefined): readonly [due: number, id: string] {
  const at = after?.indexOf('/') ?? -1;
  return after === undefined || at < 0 ? [-1, ''] : [Number(after.slice(0, at)), after.slice(at + 1)];
}
