/**
 * The port behind traces: for each correlation when it began and how it ended, and a row for each message of it that was
 * handled. Both are written in the transaction of the message, so they tell of what was committed and of nothing else.
 */
import { hashOf } from '../hash.ts';
import type { Page } from './saga-store.ts';

export type TraceEnd = 'completed' | 'compensated';

export type TraceRow = Readonly<{
  correlationId: string;
  /** Of the handler. */
  consumer: string;
  /** The identity of the message that was handled. */
  dedupId: string;
  /** The `dedupId` of the message that caused it; absent on the first. */
  causationId?: string;
  /** What the handler answered. */
  outcome: string;
  /** The topics of what it had published. */
  sent: readonly string[];
  /** Time of the commit, by the store's clock, milliseconds since the epoch. `commit`: the commit that writes this. */
  atMs: number | 'commit';
}>;

export type TraceHead = Readonly<{
  correlationId: string;
  /** Absent where no first message of it was handled here. */
  beganAtMs?: number;
  /** Absent: it has no end yet. */
  end?: TraceEnd;
  endedAtMs?: number;
}>;

type Trace = Readonly<{ head: TraceHead | undefined; rows: readonly TraceRow[] }>;

/** `Tx` is the transaction of the inbox in front of the handler. */
export type TraceStore<Tx> = Readonly<{
  /** Whether its beginning or its end is marked. Before any write of the transaction. */
  isKnownIn(transaction: Tx, correlationId: string): Promise<boolean>;
  /** Marks the beginning of one that is not known. */
  beginIn(transaction: Tx, correlationId: string): void;
  /** Marks its end; the last one counts. Reads nothing, so it may come after other writes. */
  endIn(transaction: Tx, correlationId: string, end: TraceEnd): void;
  writeIn(transaction: Tx, row: TraceRow): void;
  /** Rows by the time of their commit. Outside of any transaction. */
  read(correlationId: string): Promise<Trace>;
  /** What began `olderMs` ago or earlier and has no end, the oldest first. */
  open(olderMs: number, limit: number, after?: string): Promise<Page<TraceHead>>;
}>;

/** Name of a correlation's document, and the first part of its rows'. */
export const correlationName = (correlationId: string): string => hashOf('saga trace', correlationId);

/** One for each message and each consumer that handles it. */
export const rowName = ({ correlationId, consumer, dedupId }: TraceRow): string =>
  `${correlationName(correlationId)}.${hashOf(consumer, dedupId)}`;

/** By the time of their commit; what was committed in one millisecond by its name, so that a list is always the same. */
export const inOrder = (rows: readonly TraceRow[]): readonly TraceRow[] =>
  rows.toSorted((one, other) => {
    const [first, second] = [Number(one.atMs), Number(other.atMs)];
    if (first !== second) return first - second;
    return rowName(one) < rowName(other) ? -1 : 1;
  });

const DAY_MS = 86_400_000;
/** Longer than the longest retention of a subscription (31 days) by as much again, for choreographies that take weeks. */
export const TRACE_RETENTION_MS = 90 * DAY_MS;
