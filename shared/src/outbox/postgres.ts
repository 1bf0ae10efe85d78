/**
 * The transactional outbox in Postgres: messages, and their numbers, are rows of the caller's own transaction, and a relay
 * publishes them afterwards. A crash at any point leaves a row and its number, or neither.
 *
 * Transactions of one `sequenceKey`, and of one `id`, follow each other: the second one waits for the first, so numbers
 * have no gap.
 */
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { checkOptions, clock as aClock, duration, port, required, text } from '../options.ts';
import { connectionsOf, jsonOf, type PostgresPool, type Statement } from '../postgres/connection.ts';
import { translate } from '../postgres/errors.ts';
import { checkVersion, migrateBy } from '../postgres/migrations.ts';
import { checkIdentifier, quote } from '../postgres/names.ts';
import type { PostgresTransaction } from '../postgres/transaction.ts';
import { shardOf, SHARDS, someShards } from '../shards.ts';
import type { CounterHead, OutboxStore, Written } from './outbox-store.ts';
import { NOW, postgresRelay } from './postgres-relay.ts';
import { OUTBOX_VERSION, outboxTables, WRITERS } from './postgres-tables.ts';
import type { Row } from './rows.ts';

export { inTransaction, type PostgresTransaction } from '../postgres/transaction.ts';

export type PostgresOutboxOptions = Readonly<{
  /** The project of topics that are given by their ID alone. Required. */
  projectId: string;
  /** Where the tables are (default `outbox`). */
  schema?: string;
  /**
   * How many ranges of the index hold pending rows (default 16, from 1 to 256). The same for all that write and relay.
   */
  shards?: number;
  /** How long a row is kept after its publish, for consumers' gaps (default `7d`, at least `0ms`). */
  retention?: Duration;
  /** Bound on one call (default `5s`, at least `1ms`). */
  callTimeout?: Duration;
  /** Default: the machine's. */
  clock?: Clock;
}>;

export type PostgresOutbox = OutboxStore<PostgresTransaction> &
  Readonly<{
    /** Resolves when the rows of this transaction are written; rejects with the first error. Before the commit. */
    written(tx: PostgresTransaction): Promise<void>;
    /** Deletes rows whose retention is over, at most 20,000, and answers how many. */
    tidy(): Promise<number>;
  }>;

const SCHEMA = 'outbox';
const LIMIT_MS = 5_000;
const MIGRATION_LIMIT_MS = 600_000;
/** As of the other stores, so that a message that fits one fits all. */
const MAX_MESSAGE_BYTES = 1_040_000;
const BATCH = 1_000;
const BATCHES = 20;

/**
 * Makes the tables of the outbox. Any number of processes at once. Rejects with STORE_UNAVAILABLE.
 *
 * @example
 * await migrateOutbox(new Pool(), { schema: 'outbox' });
 */
export async function migrateOutbox(
  pool: PostgresPool,
  options: Readonly<{ schema?: string; clock?: Clock }> = {},
): Promise<void> {
  checkPool(pool);
  checkOptions<typeof options>(options, { schema: checkIdentifier, clock: aClock });
  const { schema = SCHEMA, clock = systemClock() } = options;
  await migrateBy(connectionsOf(pool, clock, MIGRATION_LIMIT_MS), clock, {
    schema,
    table: 'outbox_version',
    migrations: [{ version: OUTBOX_VERSION, statements: outboxTables(schema) }],
  });
}

const checkPool = (pool: unknown): void =>
  port(['query', 'connect'], 'a pool of pg, for example new Pool()')('pool', pool);

/**
 * A store for `outbox` and `relay`. Throws ConfigError for an option that is not valid.
 *
 * @example
 * const store = postgresOutbox(pool, { projectId: 'shop' });
 * await inTransaction(pool, async (tx) => {
 *   (await outbox(store).reserve(tx, { sequenceKey: 'order-42' })).add({ topic: 'orders', data: Buffer.from('paid'), attributes: {} });
 *   await store.written(tx);
 * });
 */
export function postgresOutbox(pool: PostgresPool, options: PostgresOutboxOptions): PostgresOutbox {
  checkPool(pool);
  checkOptions<PostgresOutboxOptions>(options, {
    projectId: required(text),
    schema: checkIdentifier,
    shards: someShards,
    retention: duration,
    callTimeout: duration,
    clock: aClock,
  });
  const { projectId, schema = SCHEMA, clock = systemClock(), retention = '7d', shards = SHARDS } = options;
  const retentionMs = toMilliseconds(retention, 'retention');
  const limitMs = options.callTimeout === undefined ? LIMIT_MS : toMilliseconds(options.callTimeout);
  const s = quote(schema);
  const connections = connectionsOf(pool, clock, limitMs);
  const writes = new WeakMap<PostgresTransaction, Promise<void>>();

  let checked: Promise<void> | undefined;
  const check = async (): Promise<void> => {
    const [row = {}] = await connections.query(
      'the version',
      `select max(v)::text as v from ${s}.outbox_version`,
    );
    checkVersion(`schema ${schema}`, Number(row['v'] ?? 0), OUTBOX_VERSION);
  };
  const query: Statement = async (what, text, values) => {
    checked ??= check();
    checked.catch(() => (checked = undefined));
    await checked;
    return connections.query(what, text, values);
  };
  const inTx = async (tx: PostgresTransaction, what: string, text: string, values: unknown[]) => {
    try {
      return (await tx.query(text, values)).rows;
    } catch (error) {
      throw translate(what, error);
    }
  };

  return {
    ...postgresRelay(s, query, shards),
    maxMessageBytes: MAX_MESSAGE_BYTES,
    project: () => projectId,
    async readSlot(tx, firstRow, key) {
      // What another one writes under this key, or under this ID, is committed before this reads.
      for (const name of key === undefined ? [firstRow] : [key, firstRow]) {
        await inTx(tx, 'a lock', `select pg_advisory_xact_lock(hashtextextended($1, 1))`, [
          `${schema} ${name}`,
        ]);
      }
      const look = `select json_build_object('committed', (select json_build_object('count', slot_count, 'place',
          case when key is not null then json_build_object('key', key, 'epoch', epoch, 'number', number, 'after', after) end)
          from ${s}.outbox_row where id = $1),
        'head', (select json_build_object('epoch', epoch, 'next', next, 'outboxed', outboxed)
          from ${s}.outbox_counter where key = $2))::text as answer`;
      const [row] = await inTx(tx, 'a slot', look, [firstRow, key ?? null]);
      type Found = Readonly<{
        committed: (Omit<Written, 'place'> & Readonly<{ place: Written['place'] | null }>) | null;
        head: CounterHead | null;
      }>;
      const { committed, head } = jsonOf<Found>(row, 'answer');
      return {
        ...(committed !== null && {
          committed: { count: committed.count, ...(committed.place && { place: committed.place }) },
        }),
        ...(head !== null && { head }),
      };
    },
    writeSlot(tx, { rows, head, lease }) {
      const shard = ({ place, group, id }: Row): number =>
        shardOf(place === undefined ? (group ?? id) : JSON.stringify([place.key, place.epoch]), shards);
      const lines = rows.map((row, index) => ({
        ...row,
        ...row.place,
        message: Buffer.from(row.message).toString('base64'),
        shard: shard(row),
        isBehind: row.group !== undefined && index > 0,
      }));
      // One statement, so that there is no other one of the transaction between its parts.
      const insert = `with moved as (insert into ${s}.outbox_counter (key, epoch, next, outboxed)
          select $5::text, $6::text, $7::bigint, $8::bigint where $5::text is not null
          on conflict (key) do update set epoch = excluded.epoch, next = excluded.next, outboxed = excluded.outboxed)
        insert into ${s}.outbox_row (id, topic, message, key, epoch, number, after, payload, slot_group, slot_count, shard,
          created_ms, due_ms, owner, until_ms)
        select x.id, x.topic, decode(x.message, 'base64'), x.key, x.epoch, x.number, x.after, x.payload, x."group", $2, x.shard,
          now_ms, case when not x."isBehind" then now_ms end, case when not x."isBehind" then $3::text end,
          case when x."isBehind" or $3::text is null then 0 else now_ms + $4::bigint end
        from jsonb_to_recordset($1::jsonb) as x(id text, topic text, message text, key text, epoch text, number bigint,
          after bigint, payload jsonb, "group" text, shard smallint, "isBehind" boolean), (select ${NOW} as now_ms) c`;
      const { key = null, epoch = null, next = null, outboxed = null } = head ?? {};
      const own = [
        JSON.stringify(lines),
        rows.length,
        lease === undefined ? null : `${WRITERS}${lease.owner}`,
        lease?.leaseMs ?? 0,
      ];
      const written = inTx(tx, 'rows', insert, [...own, key, epoch, next, outboxed]);
      const all = Promise.all([writes.get(tx), written]).then(() => undefined);
      // An error also fails the transaction's next statement, and with it the commit.
      all.catch(() => undefined);
      writes.set(tx, all);
    },
    async written(tx) {
      await writes.get(tx);
    },
    async tidy() {
      let sum = 0;
      const batch = `with x as (delete from ${s}.outbox_row where id = any (array(select id from ${s}.outbox_row
          where sent_ms < floor(extract(epoch from statement_timestamp()) * 1000)::bigint - $1::bigint
          order by sent_ms limit ${BATCH} for update skip locked)) returning 1) select count(*)::text as answer from x`;
      for (let left = BATCHES; left > 0; left -= 1) {
        const [row] = await query('tidy', batch, [retentionMs]);
        const count = jsonOf<number>(row, 'answer');
        sum += count;
        if (count < BATCH) break;
      }
      return sum;
    },
  };
}
