/**
 * Connections of the caller's pool, each call with an end. A connection whose answer did not come in time is destroyed:
 * nothing that it says later can be taken for the answer of another call, and the outcome is unknown.
 *
 * Statements are unnamed and leave no state behind in their session, so that all of this works through a pooler in
 * transaction mode.
 */
import { withTimeLimit } from '../async/time-limit.ts';
import type { Clock } from '../clock.ts';
import { storeUnavailable, TransientError } from '../errors.ts';
import { isUnknown, translate } from './errors.ts';

export type PostgresRow = Readonly<Record<string, unknown>>;

/** What `pg` has, and what another client can be given in a few lines. */
export type PostgresQueries = Readonly<{
  query(text: string, values?: unknown[]): Promise<Readonly<{ rows: PostgresRow[] }>>;
}>;

export type PostgresClient = PostgresQueries &
  Readonly<{
    /** Back to the pool; `true` closes the connection. */
    release(destroy?: boolean): void;
    /** Errors of a connection that is idle in a caller's hand: without a listener Node ends the process. */
    on?(event: 'error', listener: (error: Error) => void): unknown;
    off?(event: 'error', listener: (error: Error) => void): unknown;
  }>;

export type PostgresPool = PostgresQueries & Readonly<{ connect(): Promise<PostgresClient> }>;

export type Statement = (
  what: string,
  text: string,
  values?: readonly unknown[],
) => Promise<readonly PostgresRow[]>;

export type Connection = Readonly<{
  query: Statement;
  /**
   * A caller's own statements, without a limit in time. Errors stay those of the client, except for what says nothing about
   * the statement: a connection that broke (`STORE_UNAVAILABLE`), and others in the way (`TRANSACTION_CONTENTION`).
   */
  own: PostgresQueries;
  /** A statement waits for its answer. */
  isBusy(): boolean;
  /** `destroy` after an unknown outcome, or in the middle of a transaction. */
  release(destroy?: boolean): void;
}>;

export type Connections = Readonly<{
  /** One call on any connection. */
  query: Statement;
  /** For several calls that belong together. */
  take(): Promise<Connection>;
  /** One connection that is kept as long as it is used every second, so that no other user of the pool can have it. */
  kept: Statement;
}>;

/** This event reports broken connections alone, and the next call reports them too. */
const ignore = (): void => {};
/** After it the kept connection is given back: a pool that is being ended waits for it. */
const KEPT_MS = 1_500;

export function connectionsOf(pool: PostgresPool, clock: Clock, limitMs: number): Connections {
  const within = async <Value>(what: string, work: () => Promise<Value>): Promise<Value> => {
    const late = (): Error => storeUnavailable(`Postgres: no answer to ${what} within ${limitMs} ms`);
    try {
      return await withTimeLimit(clock, limitMs, work, late);
    } catch (error) {
      throw translate(what, error);
    }
  };

  const take = async (): Promise<Connection> => {
    const connecting = pool.connect();
    const client = await within('connect', () => connecting).catch((error: unknown) => {
      // It may come after all, and belongs to the pool then.
      connecting.then((late) => late.release(), ignore);
      throw error;
    });
    client.on?.('error', ignore);
    let isOver = false;
    const release = (destroy = false): void => {
      if (isOver) return;
      isOver = true;
      client.off?.('error', ignore);
      client.release(destroy);
    };
    // A connection has one statement at a time, also where a caller does not wait for each.
    let last: Promise<unknown> = Promise.resolve();
    let open = 0;
    const inTurn = <Value>(work: () => Promise<Value>): Promise<Value> => {
      open += 1;
      const mine = last.then(work);
      last = mine.catch(ignore).finally(() => (open -= 1));
      return mine;
    };
    return {
      release,
      isBusy: () => open > 0,
      own: {
        async query(text, values) {
          try {
            return await inTurn(() => client.query(text, values));
          } catch (error) {
            const known = translate('a statement', error);
            throw known instanceof TransientError && known.code !== 'STORE_REFUSED' ? known : error;
          }
        },
      },
      async query(what, text, values = []) {
        try {
          return (await inTurn(() => within(what, () => client.query(text, [...values])))).rows;
        } catch (error) {
          if (isUnknown(error)) release(true);
          throw error;
        }
      },
    };
  };

  const query: Statement = async (what, text, values) => {
    const connection = await take();
    try {
      return await connection.query(what, text, values);
    } finally {
      connection.release();
    }
  };

  let held: Promise<Connection> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let giveBack = (): void => {};
  const onKept = async (what: string, text: string, values?: readonly unknown[]) => {
    giveBack();
    held ??= take();
    const mine = held;
    try {
      return await (await mine).query(what, text, values);
    } catch (error) {
      if (isUnknown(error)) held = undefined;
      throw error;
    } finally {
      giveBack = clock.after(KEPT_MS, () => {
        held?.then((connection) => connection.release(), ignore);
        held = undefined;
      });
    }
  };
  /** One after the other: a connection has one statement at a time. */
  const kept: Statement = (what, text, values) => {
    const mine = last.then(() => onKept(what, text, values));
    last = mine.catch(ignore);
    return mine;
  };

  return { query, take, kept };
}

/** A column that is a JSON text: whatever types the client is set to make, of a text it makes none. */
export function jsonOf<Value>(row: PostgresRow | undefined, column: string): Value {
  const text = row?.[column];
  if (typeof text !== 'string') throw new TypeError(`Postgres answered without the text ${column}`);
  return JSON.parse(text) as Value;
}
