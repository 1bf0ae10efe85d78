/**
 * A document's place in an order. The last order of a query is always the name, so no two places are equal.
 */
import { type Doc, fieldOf } from './doc.ts';
import { type FieldPath, isName } from './field-path.ts';
import { comparePaths, compareValues } from './order.ts';
import type { Value } from './values.ts';

export type Order = Readonly<{ path: FieldPath; sign: 1 | -1 }>;

/** The keys of all orders before the name. */
export type Entry = Readonly<{ doc: Doc; keys: readonly Value[] }>;

/** Undefined for a document that lacks a field of the order: it has no place in it. */
export function entryIn(orders: readonly Order[], doc: Doc): Entry | undefined {
  const keys: Value[] = [];
  for (const { path } of orders) {
    // Names are compared as they are kept, and nothing after a name matters.
    if (isName(path)) break;
    const key = fieldOf(doc, path);
    if (key === undefined) return undefined;
    keys.push(key);
  }
  return { doc, keys };
}

export function compareEntries(a: Entry, b: Entry, orders: readonly Order[]): number {
  for (let i = 0; i < orders.length; i++) {
    const sign = orders[i]?.sign ?? 1;
    const [x, y] = [a.keys[i], b.keys[i]];
    if (x === undefined || y === undefined) {
      return comparePaths(a.doc.name.segments, b.doc.name.segments) * sign;
    }
    const order = compareValues(x, y);
    if (order !== 0) return order * sign;
  }
  return 0;
}

/** The first position whose item is not before, in items that are sorted so that all before come first. */
export function firstNotBefore<Item>(items: readonly Item[], isBefore: (item: Item) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const item = items[middle];
    if (item !== undefined && isBefore(item)) low = middle + 1;
    else high = middle;
  }
  return low;
}
