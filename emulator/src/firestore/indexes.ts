/**
 * The documents of one collection in the orders that queries asked for. An order is sorted when it is first
 * asked for and kept up to date by each change; the one that was asked for longest ago makes room.
 */
import type { Doc } from './doc.ts';
import { compareEntries, type Entry, entryIn, type Order } from './entries.ts';
import { formatFieldPath } from './field-path.ts';
import { type SortedEntries, sortedEntries } from './sorted-entries.ts';

export type Indexes = Readonly<{
  /** The documents that have a place in the order, in it. Valid until the next change. */
  entries(orders: readonly Order[], docs: Iterable<Doc>): Pick<SortedEntries, 'from'>;
  change(before: Doc | undefined, after: Doc | undefined): void;
}>;

type Index = Readonly<{ orders: readonly Order[]; entries: SortedEntries }>;

/** Each costs an entry per document, and a search and a move of a few pointers for each write. */
const MAX_INDEXES = 8;

export function indexes(): Indexes {
  const known = new Map<string, Index>();

  const build = (orders: readonly Order[], docs: Iterable<Doc>): Index => {
    const entries: Entry[] = [];
    for (const doc of docs) {
      const entry = entryIn(orders, doc);
      if (entry !== undefined) entries.push(entry);
    }
    entries.sort((a, b) => compareEntries(a, b, orders));
    return { orders, entries: sortedEntries(orders, entries) };
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
      for (const { orders, entries } of known.values()) {
        const [old, now] = [before, after].map((doc) => doc && entryIn(orders, doc));
        if (old !== undefined) entries.remove(old);
        if (now !== undefined) entries.insert(now);
      }
    },
  };
}
