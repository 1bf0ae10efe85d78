/**
 * The port behind the schedule ledger: one entry a key, changed only by rules in transactions.
 *
 * What a rule decides and what is stored are one step, so a crash leaves the entry as it was or as the rule made it.
 */
import type { Decision, Rule } from './decide.ts';
import type { Entry, LedgerTimes } from './entry.ts';

export type Found = Readonly<{
  entry: Entry | undefined;
  /** The store's own time of the read, milliseconds since the epoch. */
  nowMs: number;
}>;

/** Without the entry itself: it is read in the transaction that judges it, and one that cannot be read is named like any other. */
export type DueEntry = Readonly<{
  id: string;
  /** Since when a sweep must look at it. */
  dueMs: number;
  /** Another with every write. */
  version: string;
}>;

export type Page<Item> = Readonly<{ items: readonly Item[] /** Absent on the last page. */; next?: string }>;

export type ListQuery = Readonly<{
  consumer: string;
  source: string;
  /** Of the business key; empty: all. */
  prefix: string;
  /** Only what is to be delivered before this time, milliseconds since the epoch. */
  beforeMs?: number;
  limit: number;
  /** `next` of the page before. */
  after?: string;
}>;

export type Ledger = Readonly<{
  times: LedgerTimes;
  /**
   * Reads the entry and writes what the rule makes of it, in one transaction. The rule may be run several times, also
   * after a run of it was committed and the reply lost. Rejects with TransientError `STORE_UNAVAILABLE` when nothing is
   * known, and with `UNREADABLE_ENTRY` for a document that is not ours.
   */
  change<Answer>(id: string, rule: Rule<Answer>): Promise<Decision<Answer>>;
  /** Rejects as `change` does. */
  read(id: string): Promise<Found>;
  /** Shards are numbered from 0. The same for all that write and sweep the same entries. */
  shards: number;
  /** Of one consumer and shard: entries that a sweep must look at by now, the longest due first. */
  due(consumer: string, shard: number, limit: number, after?: string): Promise<Page<DueEntry>>;
  /** Out of the way of the others until then, if it is as it was seen: one that cannot be read. Nothing else is changed. */
  defer(item: DueEntry, consumer: string, untilMs: number): Promise<void>;
  /** Of one consumer: how many entries are pending. */
  pending(consumer: string): Promise<number>;
  /**
   * Entries that have a business key and are pending, or refused with what they were to deliver: by key, or by due time
   * where `beforeMs` is given without a prefix. A page may hold fewer than `limit` and still have a next one.
   */
  list(query: ListQuery): Promise<Page<Entry>>;
}>;

/** A ledger that takes part in transactions of the caller's. */
export type TransactionalLedger<Transaction> = Ledger &
  Readonly<{
    /** Before any write of the transaction. */
    readIn(transaction: Transaction, id: string): Promise<Found>;
    writeIn(transaction: Transaction, id: string, entry: Entry): void;
  }>;

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/**
 * 31 days is the longest retention of a topic or subscription, seek included
 * (https://cloud.google.com/pubsub/quotas#resource_limits); a day is the margin for clocks.
 */
export const LEDGER_TIMES: LedgerTimes = {
  firingLeaseMs: 30_000,
  unscheduledGraceMs: MINUTE_MS,
  lostGraceMs: 10 * MINUTE_MS,
  endedRetentionMs: 32 * DAY_MS,
};
