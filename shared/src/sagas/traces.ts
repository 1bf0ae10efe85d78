/**
 * What has happened of a business action, as a tree of the messages that were handled, and which actions have no end yet.
 */
import { type Duration, toMilliseconds } from '../duration.ts';
import { checkOptions, duration, port, required, text, whole } from '../options.ts';
import type { TraceEnd, TraceRow, TraceStore } from './saga-traces.ts';

export type TraceNode = Readonly<{
  consumer: string;
  dedupId: string;
  outcome: string;
  /** The topics of what was published. */
  sent: readonly string[];
  at: Date;
  /** What was handled of what this one had published. */
  caused: readonly TraceNode[];
}>;

export type TraceView = Readonly<{
  correlationId: string;
  beganAt?: Date;
  /** Absent: it has no end yet. */
  end?: TraceEnd;
  endedAt?: Date;
  /** Usually one: the first message. Others are those whose cause was handled by a service that leaves no trace. */
  messages: readonly TraceNode[];
}>;

export type OpenTrace = Readonly<{ correlationId: string; beganAt: Date }>;

export type OpenOptions = Readonly<{
  /** Only actions that began longer ago (at least `0ms`). */
  olderThan: Duration;
  /** 1 to 500, default 100. */
  pageSize?: number;
  /** `nextPageToken` of the page before, with the same options (default: the first page). */
  pageToken?: string;
}>;

export type Traces = Readonly<{
  /** Undefined where nothing of it was handled. */
  of(correlationId: string): Promise<TraceView | undefined>;
  /** Actions without an end, the oldest first. */
  open(options: OpenOptions): Promise<Readonly<{ open: readonly OpenTrace[]; nextPageToken?: string }>>;
}>;

const PAGE = 100;
const LARGEST_PAGE = 500;

/**
 * Throws ConfigError `INVALID_OPTION`; reading rejects with STORE_UNAVAILABLE.
 *
 * @example
 * const traces = sagaTraces(firestoreTraces(firestore));
 * for (const { correlationId } of (await traces.open({ olderThan: '1h' })).open) console.log(await traces.of(correlationId));
 */
export function sagaTraces(store: Pick<TraceStore<never>, 'read' | 'open'>): Traces {
  port(['read', 'open'], 'a store of traces, for example firestoreTraces(firestore)')('store', store);
  return {
    async of(correlationId) {
      text('correlationId', correlationId);
      const { head, rows } = await store.read(correlationId);
      if (head === undefined && rows.length === 0) return undefined;
      const { beganAtMs, end, endedAtMs } = head ?? {};
      return {
        correlationId,
        ...(beganAtMs !== undefined && { beganAt: new Date(beganAtMs) }),
        ...(end !== undefined && { end }),
        ...(endedAtMs !== undefined && { endedAt: new Date(endedAtMs) }),
        messages: treeOf(rows),
      };
    },
    async open(options) {
      checkOptions<OpenOptions>(options, {
        olderThan: required(duration),
        pageSize: whole(1, LARGEST_PAGE),
        pageToken: text,
      });
      const { olderThan, pageSize = PAGE, pageToken } = options;
      const { items, next } = await store.open(toMilliseconds(olderThan, 'olderThan'), pageSize, pageToken);
      const open = items.map(({ correlationId, beganAtMs = 0 }) => ({
        correlationId,
        beganAt: new Date(beganAtMs),
      }));
      return { open, ...(next !== undefined && { nextPageToken: next }) };
    },
  };
}

/** By their causes, each once, also where two rows name each other as their cause. */
function treeOf(rows: readonly TraceRow[]): readonly TraceNode[] {
  const known = new Set(rows.map(({ dedupId }) => dedupId));
  const shown = new Set<TraceRow>();
  const nodeOf = (row: TraceRow): TraceNode => {
    shown.add(row);
    const following = rows.filter((other) => other.causationId === row.dedupId && !shown.has(other));
    const { consumer, dedupId, outcome, sent, atMs } = row;
    const own = following.filter((other) => !shown.has(other)).map(nodeOf);
    return { consumer, dedupId, outcome, sent, at: new Date(Number(atMs)), caused: own };
  };
  const roots = rows.filter(({ causationId }) => causationId === undefined || !known.has(causationId));
  const trees = roots.map(nodeOf);
  for (const row of rows) if (!shown.has(row)) trees.push(nodeOf(row));
  return trees;
}
