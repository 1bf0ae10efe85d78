/**
 * One database: reads, commits and transactions over its documents, isolated as if one ran after the other.
 * Reads outside transactions see what is committed and never wait; read-only transactions read a snapshot;
 * read-write transactions lock what they read, and every commit waits for the locks of others.
 */
import type { Clock } from '../clock.ts';
import { invalidArgument } from '../grpc-server.ts';
import { type ChangeFeed, changeFeed } from './change-feed.ts';
import type { DatabaseOptions } from './database-options.ts';
import type { Change, Doc } from './doc.ts';
import { documents, type View } from './documents.ts';
import { history } from './history.ts';
import { parseDefinitions } from './index-definitions.ts';
import { indexEntryCheck } from './index-entry-limits.ts';
import type { Attempt, Owner } from './lock-types.ts';
import { lockTable } from './locks.ts';
import { alters, overlap, type QueryRange } from './query-run.ts';
import type { Reading, Selector } from './reading.ts';
import { databaseTime, type Microseconds } from './time.ts';
import { type Transaction, type TransactionOptions, transactions } from './transactions.ts';
import { type Plan, parseWrite, planWrites, type WireWrite } from './writes.ts';

type ReadResult<T> = Readonly<{
  result: T;
  readTime: Microseconds;
  /** The transaction that this read began. */
  began: Buffer | undefined;
}>;

export type Committed = Readonly<{ commitTime: Microseconds; results: Plan['results'] }>;

export type DatabaseStats = Readonly<{
  documents: number;
  openTransactions: number;
  heldLocks: number;
  waitingRequests: number;
  /** Replaced documents that open read-only transactions may still read. */
  replacedDocuments: number;
}>;

export type Database = Readonly<{
  read<T>(selector: Selector, reading: Reading<T>, signal?: AbortSignal): Promise<ReadResult<T>>;
  /** Applies all the writes or none. Ends the transaction, whatever comes of it. */
  commit(
    writes: readonly WireWrite[],
    transaction: Uint8Array | undefined,
    signal?: AbortSignal,
  ): Promise<Committed>;
  begin(options: TransactionOptions): Buffer;
  rollback(transaction: Uint8Array): void;
  /** What is committed now, for as long as nothing is awaited. */
  current(): Readonly<{ view: View; readTime: Microseconds }>;
  feed: ChangeFeed;
  stats(): DatabaseStats;
  /** Removes every document and ends every transaction. */
  clear(): void;
  /** The same; what waits for a lock fails with the error. */
  end(error: Error): void;
  /** Documents as they were saved: there is no reading at times before this one. */
  restore(docs: readonly Doc[]): void;
  /** The latest time that was given out. */
  latest(): Microseconds;
}>;

export function database(name: string, clock: Clock, options: DatabaseOptions = {}): Database {
  const { onCommit = () => undefined, onWritten = () => undefined, after = 0 } = options;
  const { checkEntries = indexEntryCheck(parseDefinitions({}, 'indexes')) } = options;
  const store = documents();
  const time = databaseTime(clock, after);
  const past = history();
  const locks = lockTable<QueryRange, Change>(clock, { overlap, alters });
  const open = transactions(clock, locks, store, time, past);
  const feed = changeFeed();

  function readIn<T>(
    transaction: Transaction,
    reading: Reading<T>,
    signal: AbortSignal | undefined,
  ): Promise<Readonly<{ result: T; readTime: Microseconds }>> {
    const { snapshot, owner } = transaction;
    if (snapshot !== undefined) {
      return Promise.resolve({ result: reading.look(snapshot.view).result, readTime: snapshot.time });
    }
    let found: ReturnType<typeof reading.look> | undefined;
    const attempt: Attempt<QueryRange, Change, Readonly<{ result: T; readTime: Microseconds }>> = {
      ...(reading.range === undefined ? {} : { range: reading.range }),
      look() {
        found = reading.look(store);
        return found;
      },
      run() {
        if (found === undefined) throw new Error('a read got its locks before it looked');
        return { result: found.result, readTime: time.read() };
      },
    };
    return open.during(transaction, () => locks.request(owner, attempt, signal));
  }

  async function commitAs(
    owner: Owner,
    writes: readonly WireWrite[],
    signal: AbortSignal | undefined,
  ): Promise<Committed> {
    const parsed = writes.map((write) => parseWrite(write, name));
    const names = [...new Set(parsed.map((write) => write.name.full))];
    let commitTime: Microseconds = 0;
    let plan: Plan = { changes: [], results: [] };
    const attempt: Attempt<QueryRange, Change, Committed> = {
      isLast: true,
      look: () => ({ documents: names }),
      plan() {
        commitTime = time.commit();
        plan = planWrites(store, parsed, commitTime, checkEntries);
        return plan.changes;
      },
      run() {
        store.apply(plan.changes);
        past.record(plan.changes, commitTime);
        feed.changed(plan.changes);
        onCommit(plan.changes);
        onWritten(plan.changes);
        return { commitTime, results: plan.results };
      },
    };
    return await locks.request(owner, attempt, signal);
  }

  function clear(): void {
    open.endAll();
    store.clear();
    past.forget(time.latest());
    feed.cleared();
  }

  return {
    async read(selector, reading, signal) {
      switch (selector.kind) {
        case 'transaction':
          return { ...(await readIn(open.get(selector.id), reading, signal)), began: undefined };
        case 'newTransaction': {
          const transaction = open.begin(selector.options);
          try {
            return { ...(await readIn(transaction, reading, signal)), began: transaction.id };
          } catch (error) {
            // Its client never learned the identifier.
            open.end(transaction);
            throw error;
          }
        }
        case 'readTime': {
          const view = store.before(past.since(selector.time, time.read()));
          return { result: reading.look(view).result, readTime: selector.time, began: undefined };
        }
        case 'strong':
          return { result: reading.look(store).result, readTime: time.read(), began: undefined };
      }
    },
    async commit(writes, id, signal) {
      if (id === undefined) {
        const owner = locks.owner(open.nextAge(), () => undefined);
        return await commitAs(owner, writes, signal);
      }
      const transaction = open.get(id);
      try {
        if (transaction.snapshot !== undefined && writes.length > 0) {
          throw invalidArgument('a read-only transaction may not write');
        }
        open.supersede(transaction);
        return await open.during(transaction, () => commitAs(transaction.owner, writes, signal));
      } finally {
        open.end(transaction);
      }
    },
    begin: (options) => open.begin(options).id,
    rollback: (id) => open.rollback(id),
    current: () => ({ view: store, readTime: time.read() }),
    feed,
    stats: () => ({
      documents: store.count(),
      openTransactions: open.open(),
      heldLocks: locks.held(),
      waitingRequests: locks.waiting(),
      replacedDocuments: store.replaced(),
    }),
    clear,
    end(error) {
      locks.refuseWaiting(error);
      clear();
    },
    restore(docs) {
      const changes = docs.map((doc) => ({ name: doc.name, before: undefined, after: doc }));
      past.forget(Math.max(Math.floor(clock.now() * 1_000), time.latest()));
      store.apply(changes);
      onCommit(changes);
    },
    latest: time.latest,
  };
}
