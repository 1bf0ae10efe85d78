/**
 * Jobs in Postgres 13 and later, in tables beside the caller's own data.
 *
 * Each call is one statement and one commit, unnamed and without session state, so that everything but `listen` works
 * through PgBouncer in transaction mode. A call has 5 s: then its connection is destroyed and its outcome is unknown.
 */
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { consoleLog, type Log } from '../log.ts';
import {
  callable,
  checkOptions,
  clock as aClock,
  duration,
  isObject,
  log as aLog,
  port,
  durationFrom,
} from '../options.ts';
import { connectionsOf, jsonOf, type PostgresPool, type Statement } from '../postgres/connection.ts';
import { translate } from '../postgres/errors.ts';
import { type ListeningClient, listening } from '../postgres/listen.ts';
import { checkVersion, migrateBy } from '../postgres/migrations.ts';
import { checkIdentifier, quote } from '../postgres/names.ts';
import type { PostgresTransaction } from '../postgres/transaction.ts';
import { checkJobs, checkName, type ClaimedJob } from './job.ts';
import type { HeldJob, JobStore } from './job-store.ts';
import { exchanging } from './postgres-exchange.ts';
import { claimLevels } from './postgres-levels.ts';
import { limitTables } from './postgres-limits.ts';
import { operationsOf } from './postgres-operations.ts';
import { recurrencesOf, recurrenceTables } from './postgres-recurrences.ts';
import { JOB_COLUMNS } from './postgres-statements.ts';
import { grantsOf, TABLES_VERSION, tablesOf } from './postgres-tables.ts';
import { handlerTransaction, type JobOutbox, writeJobs } from './postgres-transaction.ts';
import { refused } from '../errors.ts';

export { inTransaction, type PostgresTransaction } from '../postgres/transaction.ts';
export type { PostgresClient, PostgresPool, PostgresQueries } from '../postgres/connection.ts';
export type { ListeningClient } from '../postgres/listen.ts';

export { jobOutbox } from './job-outbox.ts';
export type { JobOutbox } from './postgres-transaction.ts';

export type PostgresJobsOptions = Readonly<{
  /** Where the tables are (default jobs). */
  schema?: string;
  /** Makes a connection to the server itself, for wake-ups: `() => new Client(options)`. Without it workers poll. */
  listen?: () => ListeningClient;
  /** For handlers that publish. Without one such an outcome is refused (`OUTBOX_MISSING`). */
  outbox?: JobOutbox;
  /** Bound on one call (default `5s`, at least `1ms`). */
  callTimeout?: Duration;
  /** For how long after the server's start no lease is judged (default `60s`, from `0ms`). */
  rescueAfterStart?: Duration;
  /** Default: the machine's. */
  clock?: Clock;
  /** Default: warnings and errors as JSON lines on standard error. */
  log?: Log;
}>;

export type MigrateOptions = Readonly<{
  /** Default jobs. It is made if it is not there. */
  schema?: string;
  /**
   * Accounts of the database, and the roles that each may work; `*` is every role (default: none). The owner of the
   * tables sees all.
   */
  grants?: Readonly<Record<string, '*' | readonly string[]>>;
  /** Default: the machine's. */
  clock?: Clock;
}>;

const SCHEMA = 'jobs';
const LIMIT_MS = 5_000;
/** Of one statement of a migration. */
const MIGRATION_LIMIT_MS = 600_000;

/**
 * Makes the tables, or brings them to this version, as the account that is to own them. Any number of processes at once.
 * Rejects with ConfigError for an option that is not valid, and with STORE_UNAVAILABLE.
 *
 * @example
 * await migrate(pool, { schema: 'jobs', grants: { app_export: ['export'] } });
 */
export async function migrate(pool: PostgresPool, options: MigrateOptions = {}): Promise<void> {
  checkPool(pool);
  checkOptions<MigrateOptions>(options, { schema: checkIdentifier, grants: isObject, clock: aClock });
  const { schema = SCHEMA, grants = {}, clock = systemClock() } = options;
  for (const [account, roles] of Object.entries(grants)) {
    checkIdentifier('grants', account);
    if (roles === '*') continue;
    if (!Array.isArray(roles) || roles.length === 0)
      throw refused(`grants.${account}`, roles, '"*" or a list of roles');
    for (const role of roles) checkRole(`grants.${account}`, role);
  }
  await migrateBy(connectionsOf(pool, clock, MIGRATION_LIMIT_MS), clock, {
    schema,
    table: 'job_version',
    migrations: [
      { version: 1, statements: tablesOf(schema) },
      { version: 2, statements: recurrenceTables(schema) },
      { version: TABLES_VERSION, statements: limitTables(schema) },
    ],
    always: grantsOf(schema, grants),
  });
}

function checkRole(path: string, role: unknown): void {
  try {
    checkName(path, role);
  } catch {
    throw refused(path, role, 'names of roles');
  }
}

const checkPool = (pool: unknown): void =>
  port(['query', 'connect'], 'a pool of pg, for example new Pool()')('pool', pool);

/**
 * Throws ConfigError for an option that is not valid. The pool stays the caller's, and needs a connection for the exchange
 * and one for each handler that uses `transaction`.
 *
 * @example
 * const store = postgresJobs(new Pool(), { listen: () => new Client({ host: 'direct' }) });
 */
export function postgresJobs(
  pool: PostgresPool,
  options: PostgresJobsOptions = {},
): JobStore<PostgresTransaction> {
  checkPool(pool);
  checkOptions<PostgresJobsOptions>(options, {
    schema: checkIdentifier,
    listen: callable,
    outbox: port(['add'], 'an outbox of jobs, for example jobOutbox(postgresOutbox(pool))'),
    callTimeout: durationFrom('1ms'),
    rescueAfterStart: duration,
    clock: aClock,
    log: aLog,
  });
  const { schema = SCHEMA, clock = systemClock(), log = consoleLog(), outbox, listen } = options;
  const limitMs = options.callTimeout === undefined ? LIMIT_MS : toMilliseconds(options.callTimeout);
  const afterStartMs = toMilliseconds(options.rescueAfterStart ?? '60s', 'rescueAfterStart');
  const s = quote(schema);
  const connections = connectionsOf(pool, clock, limitMs);

  /** Once for a store: tables of another version are not touched. */
  let checked: Promise<void> | undefined;
  const ready = (): Promise<void> => {
    checked ??= check();
    checked.catch(() => (checked = undefined));
    return checked;
  };
  const check = async (): Promise<void> => {
    const [row = {}] = await connections.query(
      'the version',
      `select max(v)::text as v from ${s}.job_version`,
    );
    checkVersion(`schema ${schema}`, Number(row['v'] ?? 0), TABLES_VERSION);
  };
  const guarded =
    (statement: Statement): Statement =>
    async (what, text, values) => {
      await ready();
      return statement(what, text, values);
    };
  const query = guarded(connections.query);
  const exchange = exchanging({
    schema: s,
    query: guarded(connections.kept),
    levels: claimLevels(clock),
    monotonic: () => clock.monotonic(),
  });

  const begin = async (held: HeldJob) => {
    await ready();
    const connection = await connections.take();
    try {
      await connection.query('begin', 'begin isolation level read committed');
    } catch (error) {
      connection.release(true);
      throw error;
    }
    return handlerTransaction({ schema: s, connection, query, outbox }, held);
  };

  return {
    ...operationsOf(s, query, afterStartMs),
    ...recurrencesOf(s, query),
    exchange,
    begin,
    async write(tx, jobs) {
      const own = checkJobs(jobs);
      if (typeof tx?.query !== 'function') throw refused('tx', tx, 'a transaction: what has a method query');
      return writeJobs(s, statementIn(tx), own);
    },
    submit: async (jobs) => writeJobs(s, query, checkJobs(jobs)),
    async adopt(owner, call) {
      const text = `select ${JOB_COLUMNS}::text as job from ${s}.job t where t.state = 1 and t.owner = $1 and t.call = $2
        order by t.id`;
      const rows = await query('an adoption', text, [owner, call]);
      return rows.map((row) => jsonOf<ClaimedJob>(row, 'job'));
    },
    async wake(role) {
      await query('a wake-up', 'select pg_notify($1, $2)', [channelOf(schema), role]);
    },
    ...(listen !== undefined && {
      listen: (woken: (role?: string) => void, signal: AbortSignal) =>
        listening({ open: listen, clock, log, random: Math.random }, channelOf(schema), woken, signal),
    }),
  };
}

/** The caller's transaction, with the errors of this library. */
const statementIn =
  (tx: PostgresTransaction): Statement =>
  async (what, text, values = []) => {
    try {
      return (await tx.query(text, [...values])).rows;
    } catch (error) {
      throw translate(what, error);
    }
  };

const channelOf = (schema: string): string => `${schema}_jobs`;
