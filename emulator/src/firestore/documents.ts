/**
 * The documents of one database, kept by collection, and views of them: the current one, and snapshots.
 * A snapshot costs nothing when it is taken (see versions.ts). Memory only: a restart begins empty.
 */
import type { Change, Doc } from './doc.ts';
import type { Order } from './entries.ts';
import { type Indexes, indexes } from './indexes.ts';
import type { DocumentName } from './names.ts';
import type { SortedEntries } from './sorted-entries.ts';
import { type Taken, versions } from './versions.ts';

export type View = Readonly<{
  get(name: DocumentName): Doc | undefined;
  /** The documents directly in one collection, in no particular order. */
  collection(path: string): Iterable<Doc>;
  /** The same in an order, where this view keeps it: undefined where a scan is as good or the only way. */
  ordered(path: string, orders: readonly Order[]): Pick<SortedEntries, 'from'> | undefined;
  /** The paths of all collections that hold a document. */
  collections(): Iterable<string>;
}>;

export type Snapshot = View & Readonly<{ close(): void }>;

export type Documents = View &
  Readonly<{
    /** Applies the changes of one commit, all or nothing: nothing here can fail. */
    apply(changes: readonly Change[]): void;
    /** A view of what is committed now, or was before these changes, whatever is committed later. */
    snapshot(past?: ReadonlyMap<string, Change>): Snapshot;
    /** A view of what was before these changes, until the next one. */
    before(past: ReadonlyMap<string, Change>): View;
    count(): number;
    /** How many replaced documents open snapshots keep. */
    replaced(): number;
    clear(): void;
  }>;

type Collection = Readonly<{ docs: Map<string, Doc>; indexes: Indexes }>;

/** Smaller collections are scanned. */
const MIN_INDEXED = 200;

export function documents(): Documents {
  const collections = new Map<string, Collection>();
  const replaced = versions();

  const put = ({ name, before, after }: Change): void => {
    const collection = collections.get(name.collection) ?? { docs: new Map(), indexes: indexes() };
    if (after === undefined) collection.docs.delete(name.full);
    else collection.docs.set(name.full, after);
    collection.indexes.change(before, after);
    if (collection.docs.size === 0) collections.delete(name.collection);
    else collections.set(name.collection, collection);
  };
  const current: View = {
    get: (name) => collections.get(name.collection)?.docs.get(name.full),
    collection: (path) => collections.get(path)?.docs.values() ?? [],
    ordered(path, orders) {
      const collection = collections.get(path);
      if (collection === undefined || collection.docs.size < MIN_INDEXED) return undefined;
      return collection.indexes.entries(orders, collection.docs.values());
    },
    collections: () => collections.keys(),
  };

  return {
    ...current,
    apply(changes) {
      replaced.record(changes);
      for (const change of changes) put(change);
    },
    snapshot(past = new Map()) {
      const taken = replaced.open();
      return { ...viewBefore(current, undone(past, taken)), close: taken.close };
    },
    before: (past) => viewBefore(current, undone(past, undefined)),
    count: () => [...collections.values()].reduce((sum, { docs }) => sum + docs.size, 0),
    replaced: replaced.kept,
    clear: () => collections.clear(),
  };
}

type Undone = Pick<Taken, 'changeOf' | 'changes'>;

/** What was before the past changes, whatever has changed since the snapshot was taken. */
const undone = (past: ReadonlyMap<string, Change>, taken: Taken | undefined): Undone => ({
  changeOf: (name) => past.get(name) ?? taken?.changeOf(name),
  *changes() {
    yield* past.values();
    for (const change of taken?.changes() ?? []) if (!past.has(change.name.full)) yield change;
  },
});

/** The current view with the changes undone. */
function viewBefore(current: View, taken: Undone): View {
  return {
    get(name) {
      const change = taken.changeOf(name.full);
      return change === undefined ? current.get(name) : change.before;
    },
    *collection(path) {
      for (const doc of current.collection(path)) if (taken.changeOf(doc.name.full) === undefined) yield doc;
      for (const { name, before } of taken.changes()) {
        if (before !== undefined && name.collection === path) yield before;
      }
    },
    ordered: () => undefined,
    *collections() {
      const paths = new Set(current.collections());
      for (const { before } of taken.changes()) if (before !== undefined) paths.add(before.name.collection);
      yield* paths;
    },
  };
}
