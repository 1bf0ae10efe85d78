/**
 * The documents of the outbox in memory, each with a version that every write changes.
 */
import type { Row } from './rows.ts';

export type MemoryRow = Readonly<{
  row: Row;
  /** Rows of its slot. */
  count: number;
  state: 'pending' | 'sent' | 'failed';
  createdMs: number;
  owner: string | undefined;
  untilMs: number;
  attempts: number;
  nextTryMs: number;
  failure?: Readonly<{ code: string; text: string }>;
}>;

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
