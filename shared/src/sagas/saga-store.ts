/**
 * The port behind sagas: one record per instance, read and written in the transaction in which its event is handled.
 *
 * What `decide` makes of an event, the record that the message was handled, and the messages that leave are one commit,
 * so a crash leaves all of it or nothing.
 */
import type { Instance, SagaRef, SagaState } from './instance.ts';

export type FoundInstance = Readonly<{
  instance: Instance | undefined;
  /** The store's own time of the read, milliseconds since the epoch. */
  nowMs: number;
}>;

export type DueInstance = Readonly<{ ref: SagaRef; wakeAtMs: number }>;

export type Page<Item> = Readonly<{ items: readonly Item[] /** Absent on the last page. */; next?: string }>;

export type SagaQuery = Readonly<{
  consumer: string;
  saga?: string;
  state?: SagaState;
  parked?: boolean;
  version?: number;
  /** Only what was started before this time, milliseconds since the epoch. */
  startedBeforeMs?: number;
  limit: number;
  /** `next` of the page before, with the same query. */
  after?: string;
}>;

/** `Tx` is the transaction of the inbox in front of the orchestrator. */
export type SagaStore<Tx> = Readonly<{
  /**
   * The project in which a topic that is given by its ID alone is; undefined where the client does not know it yet. Without
   * this method topics are given by their full names, or with the option `projectId`.
   */
  project?(): string | undefined;
  /**
   * Before any write of the transaction, which is not committed if another one changes the instance in between. Rejects
   * with `UNREADABLE_SAGA` for a record that is not the library's.
   */
  readIn(transaction: Tx, ref: SagaRef): Promise<FoundInstance>;
  /** Where a step's `sentAtMs` is `commit`, it is the time of the commit, by the store's clock, when it is read back. */
  writeIn(transaction: Tx, instance: Instance): void;
  /** Outside of any transaction. Rejects as `readIn` does, and with STORE_UNAVAILABLE. */
  read(ref: SagaRef): Promise<FoundInstance>;
  /** Shards are numbered from 0. The same for all that write and sweep the same instances. */
  shards: number;
  /** Of one consumer and shard: open instances whose time came `graceMs` ago or earlier, the longest first. */
  due(
    consumer: string,
    shard: number,
    graceMs: number,
    limit: number,
    after?: string,
  ): Promise<Page<DueInstance>>;
  /** Within each state the oldest first. A page may hold fewer than `limit` and still have a next one. */
  list(query: SagaQuery): Promise<Page<Instance>>;
}>;

export type SagaTimes = Readonly<{
  /** How long the record of an end is kept: longer than a copy of its start may come again. */
  endedRetentionMs: number;
}>;

const DAY_MS = 86_400_000;

/**
 * 31 days is the longest retention of a topic or subscription, seek included
 * (https://cloud.google.com/pubsub/quotas#resource_limits); a day is the margin for clocks.
 */
export const SAGA_TIMES: SagaTimes = { endedRetentionMs: 32 * DAY_MS };
