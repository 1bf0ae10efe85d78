/**
 * The tables of the outbox in Postgres. Version 1. Times are milliseconds since the epoch, by the server's clock.
 *
 * State of a row: 0 pending, 1 sent, 2 failed for good. `due_ms` is set for what a pass is to find, and is what the index of
 * each shard has; a row that is sent, parked or failed is in none. `owner` begins with `writer/` for as long as the lease
 * is the one that came with the commit.
 */
import { quote } from '../postgres/names.ts';

export const OUTBOX_VERSION = 1;

/** How the name of a lease begins that came with the commit. */
export const WRITERS = 'writer/';

export function outboxTables(name: string): readonly string[] {
  const s = quote(name);
  return [
    `create sequence ${s}.outbox_write as bigint`,
    `create table ${s}.outbox_row (
      id text collate "C" primary key,
      topic text not null,
      message bytea not null,
      key text,
      epoch text,
      number bigint,
      after bigint,
      payload jsonb,
      slot_group text collate "C",
      slot_count integer not null,
      shard smallint not null,
      state smallint not null default 0,
      created_ms bigint not null,
      due_ms bigint,
      owner text,
      until_ms bigint not null default 0,
      attempts integer not null default 0,
      next_try_ms bigint not null default 0,
      failure jsonb,
      sent_ms bigint,
      version bigint not null default nextval('${s}.outbox_write')
    )`,
    `create index outbox_due on ${s}.outbox_row (shard, due_ms, id) where due_ms is not null`,
    `create unique index outbox_place on ${s}.outbox_row (key, epoch, number) where key is not null`,
    `create index outbox_failed on ${s}.outbox_row (created_ms) where state = 2`,
    `create index outbox_sent on ${s}.outbox_row (sent_ms) where sent_ms is not null`,
    `create table ${s}.outbox_counter (key text primary key, epoch text not null, next bigint not null, outboxed bigint not null)`,
    `create table ${s}.outbox_stream (
      key text not null,
      epoch text not null,
      sent bigint not null,
      owner text,
      until_ms bigint not null,
      attempts integer not null,
      next_try_ms bigint not null,
      blocked jsonb,
      parked_ms bigint,
      watch_due_ms bigint,
      version bigint not null default nextval('${s}.outbox_write'),
      primary key (key, epoch)
    )`,
    `create index outbox_watch on ${s}.outbox_stream (watch_due_ms) where watch_due_ms is not null`,
    `create index outbox_blocked on ${s}.outbox_stream (version) where blocked is not null`,
    `create table ${s}.outbox_bound (one boolean primary key default true check (one), bound_ms bigint not null)`,
  ];
}
