/**
 * The ports of the outbox: what writes rows in the caller's transaction, and what the relay reads and writes.
 *
 * A store only reads, compares and writes; what to do is decided above. A method that rejects has an unknown outcome:
 * its write may have been applied, or may be applied later.
 */
import type { TransientError } from '../errors.ts';
import type { Place, Row, StreamRef } from './rows.ts';

export type CounterHead = Readonly<{
  epoch: string;
  /** The next number of the sequencer's counter. */
  next: number;
  /** The last number that has a row, 0 for none. */
  outboxed: number;
}>;

export type Written = Readonly<{
  /** How many rows the slot has. */
  count: number;
  place?: Place;
}>;

/** `Tx` is the store's transaction. */
export type OutboxWriter<Tx> = Readonly<{
  maxMessageBytes: number;
  /** What a short name of a topic is resolved in before it is stored: the project of the store's client. */
  project(): string;
  /**
   * Reads in the transaction: what an earlier run of this call has committed as its first row, and, with a key, the
   * sequencer's counter of that key. Both are validated by the commit.
   */
  readSlot(
    transaction: Tx,
    firstRow: string,
    key: string | undefined,
  ): Promise<Readonly<{ committed?: Written; head?: CounterHead }>>;
  /**
   * Creates the rows as pending, stamped with the store's time of the commit, and moves the counter to `head`.
   * `isNew`: the counter is created. `lease`: rows without order belong to their writer for so long after the commit.
   * Of the rows of a group the first alone is selected, and leased, for all of them.
   */
  writeSlot(transaction: Tx, slot: SlotWrite): void;
}>;

type SlotWrite = Readonly<{
  rows: readonly Row[];
  head?: CounterHead & Readonly<{ key: string; isNew: boolean }>;
  lease?: Readonly<{ owner: string; leaseMs: number }>;
}>;

export type RowFailure = Readonly<{ number: number; code: string; text: string }>;

/** What the relay knows of a stream. Times are milliseconds since the epoch on the store's clock. */
export type StreamState = Readonly<{
  /** The last number that is known to be published. */
  sent: number;
  owner: string | undefined;
  /** When the owner's lease is over: the time of the commit that gave it, plus its length. */
  untilMs: number;
  /** Failures of the next row in a row. */
  attempts: number;
  nextTryMs: number;
  blocked: RowFailure | undefined;
  /**
   * Rows of the stream may be outside of the selection, because it was blocked or backed off; the oldest of them was
   * committed then. The stream is selected in their place until it is drained to its end.
   */
  parkedMs?: number | undefined;
}>;

/** A lease is given by naming an owner: it begins with the commit. */
export type StreamWrite = Omit<StreamState, 'untilMs'> & Readonly<{ leaseMs: number }>;

export type StreamView = Readonly<{
  /** Undefined while nothing of the stream was ever relayed. */
  state: StreamState | undefined;
  version: string | undefined;
  nowMs: number;
}>;

export type StreamRow = Row &
  Readonly<{
    place: Place;
    isSent: boolean;
    /** When it was committed, on the store's clock. */
    createdMs: number;
    /** Why the row cannot be used: it is not ours, or of a later version. It delays the rows behind it. */
    problem?: TransientError;
  }>;

/** What a pass sees of what is pending: a row, or in place of its rows a stream that was blocked or backs off. */
export type PendingRow = Readonly<{
  id: string;
  /** Another with every write. */
  version: string;
  /** Since when it is pending. */
  createdMs: number;
  /** Its place in the selection: when it was committed, or is to be tried again. */
  dueMs: number;
  /** Until when a row without order is another's. */
  freeMs: number;
  place?: Place;
  /** The stream itself is meant, not a row of it. */
  stream?: StreamRef;
  /** Why it cannot be used. It delays no other stream. */
  problem?: TransientError;
}>;

type PendingPage = Readonly<{
  rows: readonly PendingRow[];
  /** Present where more may follow. */
  next?: string;
  /** The store's time of the read. */
  readMs: number;
}>;

export type LookedRow = Readonly<{
  createdMs: number;
  nowMs: number;
  /** A pass would find it, now or when it is due: it waits neither behind another row of its group nor behind a blocked stream. */
  isSelected: boolean;
  /** Its writer still has the lease that came with the commit. */
  isWriters: boolean;
  place?: Place;
}>;

type FirstRow = Readonly<{
  id: string;
  /** It can never be published; an operator puts it back. */
  isFailed: boolean;
  /** From when on it may be leased. */
  freeMs: number;
  nowMs: number;
}>;

export type ClaimedRow = Readonly<{
  row: Row;
  version: string;
  attempts: number;
  createdMs: number;
  nowMs: number;
}>;

export type Takeover = Readonly<{ fromWriter?: boolean }>;

export type RelayStore = Readonly<{
  /** Strongly consistent. */
  readStream(ref: StreamRef): Promise<StreamView>;
  /**
   * Writes the stream's state and marks its rows as sent, all or nothing, if its document still has `version`
   * (undefined: is still absent). Answers the new version; undefined when it was refused, which may also be because
   * this very write was applied before: the caller reads, and looks for its own mark.
   *
   * With `parkedMs` and without an owner the stream is selected from then on: at `nextTryMs`, at once where that is 0, not
   * at all while it is blocked. `parked`: rows that leave the selection with this write. `isOver`: nothing is parked
   * any more, and the stream leaves it.
   */
  writeStream(
    ref: StreamRef,
    version: string | undefined,
    state: StreamWrite,
    sent: readonly string[],
    selection?: Readonly<{ parked?: readonly string[]; isOver?: true }>,
  ): Promise<string | undefined>;
  /** Rows of the stream with a number above `number`, ascending, at most `limit`. Strongly consistent. */
  after(ref: StreamRef, number: number, limit: number): Promise<readonly StreamRow[]>;
  /** The stream of the key's present counter; undefined where there is none. */
  streamOf(key: string): Promise<StreamRef | undefined>;

  /** Pending rows below this were all seen: never moves back. 0 at first. */
  bound(): Promise<number>;
  /** Moves the bound up; one that is not above it, or comes beside another, changes nothing. */
  raiseBound(boundMs: number): Promise<void>;
  /** Shards are numbered from 0. The same for all that write and relay the same rows. */
  shards: number;
  /**
   * What is pending in a shard and due by now, from `fromMs` on, longest due first; `after` is the `next` of a page before.
   * What becomes due within seconds may be among it.
   */
  pending(shard: number, fromMs: number, after: string | undefined, limit: number): Promise<PendingPage>;
  /** Out of the way of the others until then, if it is as it was seen. Nothing else of it is changed. */
  defer(row: Readonly<{ id: string; version: string }>, untilMs: number): Promise<void>;
  /** How many streams are blocked. */
  countBlocked(): Promise<number>;

  /**
   * When the row was committed, when that was read, and whose it is, if it is there and pending. Strongly
   * consistent.
   */
  look(id: string): Promise<LookedRow | undefined>;
  /**
   * Leases a row without order, and with it its group. Undefined when it is not there, not pending, another's for now, or
   * not yet due. An owner may lease again what is its own. `fromWriter`: the lease that its writer has since the commit
   * does not count; that of any other owner does.
   */
  claim(id: string, owner: string, leaseMs: number, how?: Takeover): Promise<ClaimedRow | undefined>;
  /** Marks rows as sent, whichever process holds them: what is published stays published. Rows that are gone are left. */
  markSent(ids: readonly string[]): Promise<void>;
  /** Rows of groups that are published: no relay asks for them again. Succeeds for rows that are gone already. */
  remove(ids: readonly string[]): Promise<void>;
  /**
   * After a failed publish, if the row is as it was claimed (`version`, absent: if it is there): due again at `nextTryMs`,
   * or failed for good. `group`: the rows before `next` are published and go, and it is `next` that waits now, for all of
   * its group. All or nothing.
   */
  reschedule(
    id: string,
    version: string | undefined,
    how: Readonly<{ attempts: number; nextTryMs: number }> | Readonly<{ code: string; text: string }>,
    group?: Readonly<{ removed: readonly string[]; next: string }>,
  ): Promise<void>;
  /** The first row whose ID begins so, without its content. Undefined: there is none. Strongly consistent. */
  first(prefix: string): Promise<FirstRow | undefined>;
  /** The rows of a group behind `id`, in their order. Rejects with UNREADABLE_ROW where one cannot be used. */
  behind(group: string, id: string, limit: number): Promise<readonly Row[]>;
  /** Rows that have failed for good and streams that are blocked, newest first, at most `limit` of each. */
  listFailures(limit: number): Promise<OutboxFailures>;
  /** A row that failed for good is pending again. False: there is none. */
  reopen(id: string): Promise<boolean>;
}>;

export type OutboxFailures = Readonly<{
  streams: readonly Readonly<{ ref: StreamRef; blocked: RowFailure; sent: number }>[];
  rows: readonly Readonly<{ id: string; code: string; text: string }>[];
}>;

export type OutboxStore<Tx> = OutboxWriter<Tx> & RelayStore;
