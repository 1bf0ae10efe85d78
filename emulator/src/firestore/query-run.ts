/**
 * Runs a query over a view, and says which changes would alter its result: that is what a transaction locks so
 * that no phantom appears. Without a limit it is one pass over the collections in scope; with one it walks a
 * kept order and stops early.
 */
import { type Change, type Doc, fieldOf } from './doc.ts';
import type { View } from './documents.ts';
import { compareEntries, type Entry, entryIn } from './entries.ts';
import { NAME } from './field-path.ts';
import { compareValues } from './order.ts';
import type { Cursor, Query, Scope } from './query.ts';

export type QueryResult = Readonly<{
  docs: readonly Doc[];
  /** How many documents the offset passed over. */
  skipped: number;
  range: QueryRange;
}>;

/** What a query looks at. Held as a lock, it covers the documents that are or could come into its result. */
export type QueryRange = Readonly<{
  query: Query;
  /** Whether the document, in this state, has a place at or before the last one returned. */
  covers(doc: Doc): boolean;
}>;

export function runQuery(view: View, query: Query): QueryResult {
  const wanted = query.offset + query.limit;
  const entries = wanted === Number.POSITIVE_INFINITY ? sorted(view, query) : firstOf(view, query, wanted);
  const last = entries.length === wanted ? entries.at(-1) : undefined;
  const isBounded = entries.length === wanted;
  return {
    docs: entries.slice(query.offset).map(({ doc }) => doc),
    skipped: Math.min(query.offset, entries.length),
    range: {
      query,
      covers(doc) {
        const entry = isInScope(doc, query.scope) ? entryOf(doc, query) : undefined;
        if (entry === undefined) return false;
        return !isBounded || (last !== undefined && compareEntries(entry, last, query.orders) <= 0);
      },
    },
  };
}

/** What the query could return at most, before it has run. */
export const rangeOf = (query: Query): QueryRange => ({
  query,
  covers: (doc) => isInScope(doc, query.scope) && entryOf(doc, query) !== undefined,
});

/** Whether the change would alter what the query returned. */
export const alters = ({ before, after }: Change, range: QueryRange): boolean =>
  (before !== undefined && range.covers(before)) || (after !== undefined && range.covers(after));

/** Whether two queries could have a document in common, now or later. */
export function overlap(a: QueryRange, b: QueryRange): boolean {
  if (!scopesOverlap(a.query.scope, b.query.scope)) return false;
  for (const [path, value] of a.query.filter?.equalities ?? []) {
    const other = b.query.filter?.equalities.get(path);
    if (other !== undefined && compareValues(value, other) !== 0) return false;
  }
  return true;
}

function scopesOverlap(a: Scope, b: Scope): boolean {
  if (a.collectionId !== b.collectionId && a.collectionId !== '' && b.collectionId !== '') return false;
  return a.allDescendants || b.allDescendants || a.parent === b.parent;
}

function documentsIn(view: View, scope: Scope): Iterable<Doc> {
  return isOneCollection(scope) ? view.collection(collectionOf(scope)) : scattered(view, scope);
}

export const isOneCollection = ({ collectionId, allDescendants }: Scope): boolean =>
  collectionId !== '' && !allDescendants;

export const collectionOf = ({ parent, collectionId }: Scope): string =>
  parent === '' ? collectionId : `${parent}/${collectionId}`;

function* scattered(view: View, scope: Scope): Iterable<Doc> {
  for (const path of view.collections()) if (isPathInScope(path, scope)) yield* view.collection(path);
}

const isInScope = (doc: Doc, scope: Scope): boolean => isPathInScope(doc.name.collection, scope);

export function isPathInScope(path: string, { parent, collectionId, allDescendants }: Scope): boolean {
  const prefix = parent === '' ? '' : `${parent}/`;
  if (!allDescendants && collectionId !== '') return path === prefix + collectionId;
  if (!path.startsWith(prefix)) return false;
  if (!allDescendants) return !path.includes('/', prefix.length);
  return collectionId === '' || path.slice(path.lastIndexOf('/') + 1) === collectionId;
}

/** The document with its place in the order, or undefined where the query passes over it. */
function entryOf(doc: Doc, query: Query): Entry | undefined {
  if (query.filter?.matches(doc) === false) return undefined;
  const entry = entryIn(query.orders, doc);
  if (entry === undefined) return undefined;
  const { start, end } = query;
  if (start !== undefined && !isAfter(entry, start, query)) return undefined;
  if (end !== undefined && isAfter(entry, end, query)) return undefined;
  return entry;
}

/** Whether the entry is on the far side of a cursor, which stands before or after the entries equal to it. */
function isAfter({ doc, keys }: Entry, cursor: Cursor, query: Query): boolean {
  for (const [i, value] of cursor.values.entries()) {
    const key = keys[i] ?? fieldOf(doc, [NAME]);
    const order = key === undefined ? 0 : compareValues(key, value) * (query.orders[i]?.sign ?? 1);
    if (order !== 0) return order > 0;
    if (i >= keys.length) break;
  }
  return cursor.before;
}

function sorted(view: View, query: Query): readonly Entry[] {
  const entries: Entry[] = [];
  for (const doc of documentsIn(view, query.scope)) {
    const entry = entryOf(doc, query);
    if (entry !== undefined) entries.push(entry);
  }
  return entries.sort((a, b) => compareEntries(a, b, query.orders));
}

/** The first entries, from a kept order where the view has one. */
function firstOf(view: View, query: Query, count: number): readonly Entry[] {
  const { scope, filter, orders, start, end } = query;
  const kept = isOneCollection(scope) ? view.ordered(collectionOf(scope), orders) : undefined;
  if (kept === undefined) return sorted(view, query).slice(0, count);
  const isBefore = (entry: Entry): boolean => start !== undefined && !isAfter(entry, start, query);
  const first: Entry[] = [];
  for (const entry of kept.from(isBefore)) {
    if (first.length === count || (end !== undefined && isAfter(entry, end, query))) break;
    if (filter?.matches(entry.doc) !== false) first.push(entry);
  }
  return first;
}
