/**
 * The outbox in this process's memory: for tests, with the conflicts of a real store. A transaction that read what another
 * has changed since is not committed, and its function runs again with the same transaction object; reads come before
 * writes; writes under a version that has changed are refused. Nothing survives the process.
 */
import { type Clock, sleep, systemClock } from '../clock.ts';
import { refused, storeUnavailable, TransientError } from '../errors.ts';
import { memoryRelayStore } from './memory-relay.ts';
import {
  type Document,
  freshRows,
  type MemoryRow,
  memoryTable,
  type Network,
  type Table,
} from './memory-table.ts';
import type { CounterHead, OutboxStore } from './outbox-store.ts';
import { anything, callable, checkOptions, clock as aClock, whole } from '../options.ts';
import { SHARDS, someShards } from '../shards.ts';

export type MemoryOutboxTransaction = Readonly<{
  /** Undefined when there is none. Throws after the first write. */
  get(id: string): Promise<unknown>;
  /** Visible to others after the commit. */
  set(id: string, value: unknown): void;
}>;

export type MemoryOutbox = OutboxStore<MemoryOutboxTransaction> &
  Readonly<{
    /** As Firestore's `runTransaction`. Rejects with what `work` threw, or TRANSACTION_CONTENTION, or STORE_UNAVAILABLE. */
    transact<Result>(work: (transaction: MemoryOutboxTransaction) => Promise<Result>): Promise<Result>;
    /** What is committed of the caller's own values. */
    peek(id: string): unknown;
    rows(): readonly MemoryRow[];
  }>;

export type MemoryOutboxOptions = Readonly<{
  /** Default: the machine's. */
  clock?: Clock;
  /** Every request passes through it: where a test loses, delays or repeats one (default: nothing goes wrong). */
  network?: Network;
  /** How often a transaction is started at most, the first time included (default 5, at least 1). */
  maxAttempts?: number;
  /** The time that rows are stamped with (default: the store's, of the commit). */
  stamp?: () => number;
  /** Shared by stores of several processes (default: a new one). */
  table?: Table;
  /** How many ranges hold pending rows (default 16, 1 to 256). */
  shards?: number;
}>;

type Internals = { reads: Map<string, number>; writes: Map<string, unknown> };

/** Firestore's client pauses for about as long before it tries a transaction again. */
const PAUSE_MS = 1_000;
/** As Firestore's, so that a test finds what would not fit there. */
const MAX_MESSAGE_BYTES = 1_040_000;
/** Of topics that are given by their ID. */
export const MEMORY_PROJECT = 'memory';

/**
 * Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * const store = memoryOutbox({ clock: virtualClock() });
 * const messages = relay(store, memoryPublisher());
 */
export function memoryOutbox(options: MemoryOutboxOptions = {}): MemoryOutbox {
  checkOptions<MemoryOutboxOptions>(options, {
    clock: aClock,
    network: callable,
    maxAttempts: whole(1),
    stamp: callable,
    table: anything,
    shards: someShards,
  });
  const { clock = systemClock(), network = (_request, send) => send(), maxAttempts = 5 } = options;
  const { stamp = () => clock.now(), table = memoryTable(), shards = SHARDS } = options;
  const internals = new WeakMap<MemoryOutboxTransaction, Internals>();

  const readIn = ({ reads, writes }: Internals, name: string): Promise<Document | undefined> => {
    if (writes.size > 0) throw new Error('a transaction reads before it writes');
    return network('get', async () => {
      const found = table.get(name);
      reads.set(name, found?.version ?? 0);
      return found;
    });
  };
  const of = (transaction: MemoryOutboxTransaction): Internals => {
    const found = internals.get(transaction);
    if (found === undefined) throw refused('transaction', transaction, 'that of `transact` of this store');
    return found;
  };
  /** In one turn: nothing comes between the look and the writes. */
  const commit = ({ reads, writes }: Internals): boolean => {
    for (const [name, version] of reads) if ((table.get(name)?.version ?? 0) !== version) return false;
    for (const [name, value] of writes) table.put(name, value);
    return true;
  };

  return {
    ...memoryRelayStore(table, clock, network, shards),
    project: () => MEMORY_PROJECT,
    maxMessageBytes: MAX_MESSAGE_BYTES,
    peek: (id) => table.get(`own/${id}`)?.value,
    rows: () => table.rows(),
    async readSlot(transaction, firstRow, key) {
      const inner = of(transaction);
      const row = (await readIn(inner, `row/${firstRow}`))?.value as MemoryRow | undefined;
      const head = key === undefined ? undefined : await readIn(inner, `counter/${key}`);
      return {
        ...(row !== undefined && {
          committed: { count: row.count, ...(row.row.place !== undefined && { place: row.row.place }) },
        }),
        ...(head !== undefined && { head: head.value as CounterHead }),
      };
    },
    writeSlot(transaction, { rows, head, lease }) {
      const { writes } = of(transaction);
      const nowMs = stamp();
      const held = lease && { owner: lease.owner, untilMs: clock.now() + lease.leaseMs };
      for (const fresh of freshRows(rows, nowMs, held)) writes.set(`row/${fresh.row.id}`, fresh);
      if (head === undefined) return;
      const { key, epoch, next, outboxed } = head;
      writes.set(`counter/${key}`, { epoch, next, outboxed });
    },
    async transact(work) {
      let inner: Internals = { reads: new Map(), writes: new Map() };
      const transaction: MemoryOutboxTransaction = {
        get: async (id) => (await readIn(inner, `own/${id}`))?.value,
        set: (id, value) => void inner.writes.set(`own/${id}`, value),
      };
      for (let attempt = 1; ; attempt += 1) {
        inner = { reads: new Map(), writes: new Map() };
        internals.set(transaction, inner);
        let failure: unknown = new TransientError(
          'TRANSACTION_CONTENTION',
          'others were in the way each time',
        );
        const result = await work(transaction);
        try {
          const mine = inner;
          if (await network('commit', async () => commit(mine))) return result;
        } catch (error) {
          failure = error instanceof TransientError ? error : storeUnavailable('the commit', error);
        }
        if (attempt >= maxAttempts) throw failure;
        await sleep(clock, PAUSE_MS);
      }
    },
  };
}
