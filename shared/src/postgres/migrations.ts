/**
 * Migrations: numbered, additive, each in one transaction. Any number of processes may migrate at once, and one that dies
 * leaves its migration undone and not half done.
 *
 * A migration waits at most 2 s for a lock that others hold, so that no statement queues up behind it; then it is rolled
 * back and tried again after a pause.
 */
import { type Clock, sleep } from '../clock.ts';
import { ConfigError, TransientError } from '../errors.ts';
import type { Connection, Connections } from './connection.ts';

type Migration = Readonly<{ version: number; statements: readonly string[] }>;

export type MigrationPlan = Readonly<{
  schema: string;
  /** Holds one row for each version that is applied: `v integer primary key, at timestamptz`. */
  table: string;
  migrations: readonly Migration[];
  /** Run with every migration, after the last one, in a transaction of its own. */
  always?: readonly string[];
}>;

const LOCK_MS = 2_000;
const PAUSE_MS = 500;
/** Ten minutes of a transaction in the way. */
const TRIES = 240;

/**
 * Answers the version that there is now. Rejects with TransientError `TRANSACTION_CONTENTION` when others never release
 * their locks.
 */
export async function migrateBy(
  connections: Pick<Connections, 'take'>,
  clock: Clock,
  { schema, table, migrations, always = [] }: MigrationPlan,
): Promise<number> {
  const version = `${schema}.${table}`;
  await tried(connections, clock, schema, async ({ query }) => {
    // A schema that is there may have been made for an account that may not create any.
    const there = await query('migrate', `select 1 from pg_namespace where nspname = $1`, [schema]);
    if (there.length === 0) await query('migrate', `create schema "${schema}"`);
    await query(
      'migrate',
      `create table if not exists ${version} (v integer primary key, at timestamptz not null)`,
    );
  });
  for (const { version: number, statements } of migrations) {
    await tried(connections, clock, schema, async ({ query }) => {
      const there = await query('migrate', `select 1 from ${version} where v = $1`, [number]);
      if (there.length > 0) return;
      for (const statement of statements) await query(`migration ${number}`, statement);
      await query('migrate', `insert into ${version} (v, at) values ($1, clock_timestamp())`, [number]);
    });
  }
  if (always.length > 0) {
    await tried(connections, clock, schema, async ({ query }) => {
      for (const statement of always) await query('migrate', statement);
    });
  }
  return migrations.at(-1)?.version ?? 0;
}

/** One transaction, alone among those that migrate this schema. */
async function tried(
  { take }: Pick<Connections, 'take'>,
  clock: Clock,
  schema: string,
  work: (connection: Connection) => Promise<void>,
): Promise<void> {
  for (let left = TRIES; ; left -= 1) {
    const connection = await take();
    const { query, release } = connection;
    try {
      await query('begin', 'begin');
      await query('migrate', `set local lock_timeout = ${LOCK_MS}`);
      await query('migrate', `select pg_advisory_xact_lock(hashtextextended($1, 0))`, [`migrate ${schema}`]);
      await work(connection);
      await query('commit', 'commit');
      return;
    } catch (error) {
      await query('rollback', 'rollback').catch(() => release(true));
      const isBusy = error instanceof TransientError && error.code === 'TRANSACTION_CONTENTION';
      if (!isBusy || left === 0) throw error;
    } finally {
      release();
    }
    await sleep(clock, PAUSE_MS);
  }
}

/**
 * Throws ConfigError where the tables are older than this program, or more than one version newer: it would not know
 * what they mean.
 */
export function checkVersion(what: string, found: number, own: number): void {
  if (found >= own && found <= own + 1) return;
  const text = `the tables of ${what} have version ${found}; accepted: ${own} or ${own + 1}`;
  throw new ConfigError('STORE_NOT_MIGRATED', text);
}
