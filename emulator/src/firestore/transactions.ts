/**
 * The open transactions of a database. A read-write one owns locks, a read-only one owns a snapshot. Whatever
 * becomes of its client, it ends: 60 s after its last use, 270 s after its begin
 * (https://firebase.google.com/docs/firestore/quotas), and its locks are free then.
 */
import { randomBytes } from 'node:crypto';
import type { Cancel, Clock } from '../clock.ts';
import { status } from '@grpc/grpc-js';
import { invalidArgument, StatusError } from '../grpc-server.ts';
import type { Change } from './doc.ts';
import type { Documents, Snapshot } from './documents.ts';
import type { History } from './history.ts';
import type { Owner } from './lock-types.ts';
import type { Locks } from './locks.ts';
import type { QueryRange } from './query-run.ts';
import type { DatabaseTime, Microseconds } from './time.ts';

export type TransactionOptions = Readonly<
  | { mode: 'readWrite'; retry: Uint8Array | undefined }
  /** `readTime`: what it reads at. Default: now. */
  | { mode: 'readOnly'; readTime?: Microseconds }
>;

export type Transaction = Readonly<{
  id: Buffer;
  owner: Owner;
  /** Read-only ones have it, and read at its time. */
  snapshot: Readonly<{ view: Snapshot; time: Microseconds }> | undefined;
}>;

export type Transactions = Readonly<{
  begin(options: TransactionOptions): Transaction;
  /** Throws INVALID_ARGUMENT (expired, which clients retry), or ABORTED for one that had to give way. */
  get(id: Uint8Array): Transaction;
  /** Runs a call of the transaction: it does not count as idle meanwhile. */
  during<T>(transaction: Transaction, call: () => Promise<T>): Promise<T>;
  /**
   * The transaction is about to commit: its predecessor, if that still holds locks, gives way, and its client gets the
   * error to try again. Not earlier, because the predecessor may be at work: Python's client names a transaction of
   * another thread as the predecessor when both run one decorated function.
   */
  supersede(transaction: Transaction): void;
  /** Frees everything. May be called twice. */
  end(transaction: Transaction, error?: Error): void;
  /** Ends the transaction of this identifier, also one that had to give way. Throws when it is not known. */
  rollback(id: Uint8Array): void;
  /** An age for a writer without a transaction. */
  nextAge(): number;
  open(): number;
  endAll(): void;
}>;

export const IDLE_MS = 60_000;
export const TOTAL_MS = 270_000;

const ID_BYTES = 20;
const NONCE_BYTES = 8;

type Entry = {
  readonly transaction: Transaction;
  /** The key of the one that it is tried instead of. */
  readonly predecessor: string | undefined;
  readonly startedAt: number;
  usedAt: number;
  calls: number;
  /** Why it had to give way. It stays known until its client rolls back, so that the client learns it. */
  failure: Error | undefined;
  cancel: Cancel;
};

export function transactions(
  clock: Clock,
  locks: Locks<QueryRange, Change>,
  documents: Documents,
  time: DatabaseTime,
  past: History,
): Transactions {
  // Marks the identifiers of this run of this database: those of another are expired here.
  const nonce = randomBytes(NONCE_BYTES);
  const entries = new Map<string, Entry>();
  let numbers = 0;

  const keyOf = (id: Uint8Array): string => Buffer.from(id).toString('base64');

  function identifier(age: number, number: number): Buffer {
    const id = Buffer.alloc(ID_BYTES);
    nonce.copy(id);
    id.writeUIntBE(age, NONCE_BYTES, 6);
    id.writeUIntBE(number, NONCE_BYTES + 6, 6);
    return id;
  }

  /** A retry keeps the age of its predecessor, so that it does not lose for ever. */
  function inheritedAge(retry: Uint8Array): number | undefined {
    const id = Buffer.from(retry);
    if (id.length !== ID_BYTES)
      throw invalidArgument('retry_transaction is not a transaction of this server');
    return id.subarray(0, NONCE_BYTES).equals(nonce) ? id.readUIntBE(NONCE_BYTES, 6) : undefined;
  }

  function snapshotAt(readTime: Microseconds | undefined): NonNullable<Transaction['snapshot']> {
    const now = time.read();
    if (readTime === undefined) return { view: documents.snapshot(), time: now };
    return { view: documents.snapshot(past.since(readTime, now)), time: readTime };
  }

  function begin(options: TransactionOptions): Transaction {
    const snapshot = options.mode === 'readOnly' ? snapshotAt(options.readTime) : undefined;
    numbers += 1;
    const retry = options.mode === 'readWrite' ? options.retry : undefined;
    const age = (retry === undefined ? undefined : inheritedAge(retry)) ?? numbers;
    const id = identifier(age, numbers);
    const key = keyOf(id);
    const owner = locks.owner(
      age,
      (error) => {
        const entry = entries.get(key);
        if (entry !== undefined) entry.failure = error;
      },
      retry === undefined ? undefined : { predecessor: entries.get(keyOf(retry))?.transaction.owner },
    );
    const transaction: Transaction = { id, owner, snapshot };
    const now = clock.now();
    const entry = {
      transaction,
      predecessor: retry === undefined ? undefined : keyOf(retry),
      startedAt: now,
      usedAt: now,
      calls: 0,
      failure: undefined,
      cancel: () => {},
    };
    entries.set(key, entry);
    arm(entry);
    return transaction;
  }

  const endsAt = ({ calls, startedAt, usedAt }: Entry): number =>
    Math.min(startedAt + TOTAL_MS, calls > 0 ? Number.POSITIVE_INFINITY : usedAt + IDLE_MS);

  /** One timer each: it looks when it fires whether the transaction was used since. */
  function arm(entry: Entry): void {
    entry.cancel = clock.after(Math.min(endsAt(entry) - clock.now(), IDLE_MS), () => {
      if (clock.now() >= endsAt(entry)) end(entry.transaction, expired());
      else arm(entry);
    });
  }

  function get(id: Uint8Array): Transaction {
    const entry = entries.get(keyOf(id));
    if (entry === undefined) throw expired();
    if (entry.failure !== undefined) throw entry.failure;
    return entry.transaction;
  }

  function end(transaction: Transaction, error: Error = expired()): void {
    const key = keyOf(transaction.id);
    entries.get(key)?.cancel();
    entries.delete(key);
    transaction.snapshot?.view.close();
    locks.release(transaction.owner, error);
  }

  return {
    begin,
    get,
    async during(transaction, call) {
      const entry = entries.get(keyOf(transaction.id));
      if (entry === undefined) throw expired();
      entry.calls += 1;
      try {
        return await call();
      } finally {
        entry.calls -= 1;
        entry.usedAt = clock.now();
      }
    },
    supersede({ id }) {
      const entry = entries.get(keyOf(id));
      const before = entry?.predecessor === undefined ? undefined : entries.get(entry.predecessor);
      if (before === undefined || before.failure !== undefined || !before.transaction.owner.hasHeld) return;
      before.failure = superseded();
      locks.release(before.transaction.owner, before.failure);
    },
    end,
    rollback(id) {
      const entry = entries.get(keyOf(id));
      if (entry === undefined) throw expired();
      end(entry.transaction);
    },
    nextAge() {
      numbers += 1;
      return numbers;
    },
    open: () => [...entries.values()].filter(({ failure }) => failure === undefined).length,
    endAll() {
      for (const { transaction } of entries.values()) end(transaction);
    },
  };
}

const superseded = (): Error =>
  new StatusError(
    status.ABORTED,
    'The referenced transaction was tried again by another one. Please try again.',
  );

/** In the service's words: clients look for "transaction has expired" and then retry. */
function expired(): Error {
  return invalidArgument('The referenced transaction has expired or is no longer valid.');
}
