/**
 * The inbox in this process's memory: for tests of handlers, with the conflicts of a real store. A transaction that read
 * what another has changed since is not committed, and its function runs again; a commit is refused when the claim has
 * another revision; reads come before writes.
 */
import { type Clock, sleep, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { TransientError } from '../errors.ts';
import { documentInbox, type InboxDocuments } from './document-inbox.ts';
import type { Completion, InboxStore } from './inbox-store.ts';
import { memoryRelayStore } from '../outbox/memory-relay.ts';
import { freshRows, type MemoryRow, memoryTable, type Table } from '../outbox/memory-table.ts';
import { MEMORY_PROJECT } from '../outbox/memory.ts';
import { SHARDS, someShards } from '../shards.ts';
import { memoryDocuments } from './memory.ts';
import { anything, callable, checkOptions, clock as aClock, durationFrom, whole } from '../options.ts';

export type MemoryTransaction = Readonly<{
  /** Undefined when there is none. Throws after the first write. */
  get(id: string): Promise<unknown>;
  /** Visible to others, and to `get`, after the commit. A function is called with the time of the commit, and makes the value. */
  set(id: string, value: unknown): void;
  delete(id: string): void;
}>;

export type MemoryInbox = InboxStore<MemoryTransaction> &
  Readonly<{
    /** What is committed. */
    peek(id: string): unknown;
    /** A change from outside of any transaction. */
    put(id: string, value: unknown): void;
    /** Messages that are committed and not yet published. */
    rows(): readonly MemoryRow[];
  }>;

export type MemoryInboxOptions = Readonly<{
  /** Default: the machine's. */
  clock?: Clock;
  /** How long one attempt, and so one call of the handler, may take (default `60s`, at least `1ms`). */
  attemptTimeout?: Duration;
  /** How often a transaction is started at most, the first time included (default 5, at least 1). */
  maxAttempts?: number;
  /** Every request passes through it: where a test loses, delays or repeats one (default: nothing goes wrong). */
  network?: Network;
  /** Shared with a `memoryOutbox` (default: a new one). */
  table?: Table;
  /** Of the outbox (default 16, 1 to 256). */
  shards?: number;
}>;

export type Network = <Value>(request: string, send: () => Promise<Value>) => Promise<Value>;

export type MemoryInboxDocuments = InboxDocuments<MemoryTransaction> &
  Pick<MemoryInbox, 'peek' | 'put' | 'rows'>;

type Versioned = Readonly<{ value: unknown; version: number }>;
type Ended = 'committed' | 'conflict' | 'refused';

const TIMEOUT_MS = 5_000;
/** Firestore's client pauses for about as long before it tries a transaction again. */
const PAUSE_MS = 1_000;
/** As Firestore's, so that a test finds what would not fit there. */
const MAX_MESSAGE_BYTES = 1_040_000;

/**
 * Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * const store = memoryInbox({ clock: virtualClock() });
 * const handler = inbox(store)(async (message, { transaction }) => {
 *   transaction.set('last', message.id);
 *   return ack();
 * });
 */
export function memoryInbox(options: MemoryInboxOptions = {}): MemoryInbox {
  checkOptions<MemoryInboxOptions>(options, {
    clock: aClock,
    attemptTimeout: durationFrom('1ms'),
    maxAttempts: whole(1),
    network: callable,
    table: anything,
    shards: someShards,
  });
  const { clock = systemClock() } = options;
  const documents = memoryInboxDocuments({ ...options, clock });
  const { peek, put, rows } = documents;
  return { ...documentInbox(documents, clock, TIMEOUT_MS), peek, put, rows };
}

/** For tests that put faults between the protocol and its documents. */
export function memoryInboxDocuments(options: MemoryInboxOptions = {}): MemoryInboxDocuments {
  const {
    clock = systemClock(),
    attemptTimeout = '60s',
    maxAttempts = 5,
    network = (_request, send) => send(),
    table = memoryTable(),
    shards = SHARDS,
  } = options;
  const claims = memoryDocuments({ clock });
  const values = new Map<string, Versioned>();
  let version = 0;

  const put = (id: string, value: unknown): void => {
    version += 1;
    values.set(id, { value, version });
  };

  const begin = () => {
    const seen = new Map<string, number>();
    const writes = new Map<string, unknown>();
    const transaction: MemoryTransaction = {
      async get(id) {
        if (writes.size > 0) throw new Error('a transaction reads before it writes');
        return network('get', async () => {
          const found = values.get(id);
          seen.set(id, found?.version ?? 0);
          return found?.value;
        });
      },
      set: (id, value) => void writes.set(id, value),
      delete: (id) => void writes.set(id, undefined),
    };
    /** In one turn: nothing comes between the look and the writes. */
    const commit = ({ held: { request, revision }, rows: written }: Completion): Ended => {
      if (claims.revisionOf(request.key) !== revision) return 'refused';
      for (const [id, at] of seen) if ((values.get(id)?.version ?? 0) !== at) return 'conflict';
      void claims.update(request.key, revision, { kind: 'done', request });
      for (const [id, value] of writes) put(id, typeof value === 'function' ? value(clock.now()) : value);
      const lease = { owner: request.owner, untilMs: clock.now() + request.leaseMs };
      for (const fresh of freshRows(written, clock.now(), lease)) table.put(`row/${fresh.row.id}`, fresh);
      return 'committed';
    };
    return { transaction, commit };
  };

  const once = async (attempt: (transaction: MemoryTransaction) => Promise<Completion>): Promise<Ended> => {
    const { transaction, commit } = begin();
    const completion = await attempt(transaction);
    return network('commit', async () => commit(completion));
  };

  return {
    ...claims,
    transactionMs: toMilliseconds(attemptTimeout, 'attemptTimeout'),
    maxMessageBytes: MAX_MESSAGE_BYTES,
    peek: (id) => values.get(id)?.value,
    put,
    rows: () => table.rows(),
    outbox: {
      ...memoryRelayStore(table, clock, network, shards),
      project: () => MEMORY_PROJECT,
    },
    async transact(attempt) {
      for (let number = 1; ; number += 1) {
        let failure: unknown = new TransientError(
          'TRANSACTION_CONTENTION',
          'others were in the way each time',
        );
        try {
          const ended = await once(attempt);
          if (ended === 'committed') return;
          if (ended === 'refused') {
            failure = new TransientError('TRANSACTION_REFUSED', 'the claim has another revision');
            throw failure;
          }
        } catch (error) {
          const mayTryAgain = error instanceof TransientError && error.code === 'STORE_UNAVAILABLE';
          if (!mayTryAgain) throw error;
          failure = error;
        }
        if (number >= maxAttempts) throw failure;
        await sleep(clock, PAUSE_MS);
      }
    },
  };
}
