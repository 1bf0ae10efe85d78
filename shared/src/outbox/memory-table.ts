/**
 * The documents of the outbox in memory, each with a version that every write changes.
 */
import type { Row, StreamRef } from './rows.ts';

/** Every request passes through it: where a test loses, delays or repeats one. */
export type Network = <Value>(request: string, send: () => Promise<Value>) => Promise<Value>;

export type MemoryRow = Readonly<{
  row: Row;
  /** Rows of its slot. */
  count: number;
  state: 'pending' | 'sent' | 'failed';
  createdMs: number;
  /** Its place in the selection; undefined: it is not selected. */
  dueMs: number | undefined;
  owner: string | undefined;
  untilMs: number;
  /** The lease is the one that came with the commit. */
  isWriters: boolean;
  attempts: number;
  nextTryMs: number;
  failure?: Readonly<{ code: string; text: string }>;
}>;

/** A stream that is selected in place of its rows. */
export type MemoryWatch = Readonly<{ ref: StreamRef; createdMs: number; dueMs: number }>;

export type Document = Readonly<{ value: unknown; version: number }>;

export type Table = Readonly<{
  get(name: string): Document | undefined;
  put(name: string, value: unknown): number;
  remove(name: string): void;
  rows(): readonly MemoryRow[];
  named(prefix: string): readonly Readonly<{ name: string; value: unknown }>[];
}>;

export function memoryTable(): Table {
  const documents = new Map<string, Document>();
  let version = 0;
  const named = (prefix: string) =>
    [...documents].filter(([name]) => name.startsWith(prefix)).map(([name, { value }]) => ({ name, value }));
  return {
    get: (name) => documents.get(name),
    put(name, value) {
      version += 1;
      documents.set(name, { value, version });
      return version;
    },
    remove: (name) => void documents.delete(name),
    rows: () => named('row/').map(({ value }) => value as MemoryRow),
    named,
  };
}

/** Rows as a commit makes them. Of a group the first alone is selected. */
export function freshRows(
  rows: readonly Row[],
  nowMs: number,
  lease: Readonly<{ owner: string; untilMs: number }> | undefined,
): readonly MemoryRow[] {
  return rows.map((row, index): MemoryRow => {
    const isBehind = row.group !== undefined && index > 0;
    return {
      row,
      count: rows.length,
      state: 'pending',
      createdMs: nowMs,
      dueMs: isBehind ? undefined : nowMs,
      owner: isBehind ? undefined : lease?.owner,
      untilMs: isBehind ? 0 : (lease?.untilMs ?? 0),
      isWriters: !isBehind && lease !== undefined,
      attempts: 0,
      nextTryMs: 0,
    };
  });
}
