/**
 * The documents of one collection in the orders that queries asked for. An order is sorted when it is first
 * asked for and kept up to date by each change; the one that was asked for longest ago makes room.
 */
import type { Doc } from './doc.ts';
import { compareEntries, type Entry, entryIn, firstNotBefore, type Order } from './entries.ts';
import { formatFieldPath } from './field-path.ts';

export type Indexes = Readonly<{
  /** The documents that have a place in the order, in it. Valid until the next change. */
  entries(orders: readonly Order[], docs: Iterable<Doc>): readonly Entry[];
  change(before: Doc | undefined, after: Doc | undefined): void;
}>;

type Index = Readonly<{ orders: readonly Order[]; entries: Entry[] }>;

/** Each costs one pointer per document, and a search and a move of pointers for each write. */
const MAX_INDEXES = 8;

export function indexes(): Indexes {
  const known = new Map<string, Index>();

  const build = (orders: readonly Order[], docs: Iterable<Doc>): Index => {
    const entries: Entry[] = [];
    for (const doc of docs) {
      const entry = entryIn(orders, doc);
      if (entry !== undefined) entries.push(entry);
    }
    return { orders, entries: entries.sort((a, b) => compareEntries(a, b, orders)) };
  };

  return {
    entries(orders, docs) {
      const key = orders.map(({ path, sign }) => `${sign} ${formatFieldPath(path)}`).join();
      const index = known.get(key) ?? build(orders, docs);
      known.delete(key);
      known.set(key, index);
      const [oldest] = known.keys();
      if (known.size > MAX_INDEXES && oldest !== undefined) known.delete(oldest);
      return index.entries;
    },
    change(before, after) {
      for (const index of known.values()) {
        if (before !== undefined) remove(index, before);
        if (after !== undefined) insert(index, after);
      }
    },
  };
}

function remove({ orders, entries }: Index, doc: Doc): void {
  const entry = entryIn(orders, doc);
  if (entry === undefined) return;
  entries.splice(
    firstNotBefore(entries, (other) => compareEntries(other, entry, orders) < 0),
    1,
  );
}

function insert({ orders, entries }: Index, doc: Doc): void {
  const entry = entryIn(orders, doc);
  if (entry === undefined) return;
  const position = firstNotBefore(entries, (other) => compareEntries(other, entry, orders) < 0);
  entries.splice(position, 0, entry);
}
