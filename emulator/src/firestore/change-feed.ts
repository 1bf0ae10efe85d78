/**
 * Notifies listeners of what has been committed. A commit only notes what it changed; the feed looks up the listeners
 * afterwards, and notifies them in turns, so that any number of listeners leaves a commit as fast as it is without. A
 * listener that is notified late is notified once: changes add up, and it reads what is committed when it looks.
 */
import type { Change, Doc } from './doc.ts';
import type { DocumentName } from './names.ts';
import type { Scope } from './query.ts';
import { collectionOf, isOneCollection, isPathInScope } from './query-run.ts';

/** A document, and how it was before the first change that no listener was notified of yet. */
export type Touched = Readonly<{ name: DocumentName; before: Doc | undefined }>;

export type Interest = Readonly<{ documents: ReadonlySet<string> } | { scope: Scope }>;

export type Watched = Readonly<{
  /** What changed since this was last asked, by full name; undefined: everything may have. */
  take(): ReadonlyMap<string, Touched> | undefined;
  /** Whether there is something to take. */
  isTouched(): boolean;
  end(): void;
}>;

export type ChangeFeed = Readonly<{
  changed(changes: readonly Change[]): void;
  /** Everything is gone. */
  cleared(): void;
  /** `notify` is called some time after something of the interest changed: once for all that share it. */
  watch(interest: Interest, notify: () => void): Watched;
  /** Hands out what is noted: then `isTouched` is true to what is committed now. */
  settle(): void;
  watched(): number;
}>;

/** How many are notified before anything else has its turn. */
const NOTIFIED_IN_A_TURN = 32;

type Entry = {
  readonly interest: Interest;
  readonly notify: () => void;
  touched: Map<string, Touched>;
  isAll: boolean;
};

export function changeFeed(): ChangeFeed {
  const entries = new Set<Entry>();
  const byKey = new Map<string, Set<Entry>>();
  /** Those over more than one collection: each is asked. */
  const scattered = new Set<Entry>();
  let noted = new Map<string, Touched>();
  const due = new Set<() => void>();
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      settle();
      let notified = 0;
      for (const notify of due) {
        if (++notified > NOTIFIED_IN_A_TURN) break;
        due.delete(notify);
        notify();
      }
      if (due.size > 0) schedule();
    });
  }

  function settle(): void {
    const touched = noted;
    noted = new Map();
    for (const [full, each] of touched) {
      for (const entry of concerned(each.name)) {
        if (!entry.touched.has(full)) entry.touched.set(full, each);
        due.add(entry.notify);
      }
    }
    if (due.size > 0) schedule();
  }

  function* concerned(name: DocumentName): Iterable<Entry> {
    yield* byKey.get(name.full) ?? [];
    yield* byKey.get(name.collection) ?? [];
    for (const entry of scattered) {
      if ('scope' in entry.interest && isPathInScope(name.collection, entry.interest.scope)) yield entry;
    }
  }

  return {
    changed(changes) {
      if (entries.size === 0) return;
      for (const { name, before } of changes) {
        if (!noted.has(name.full)) noted.set(name.full, { name, before });
      }
      schedule();
    },
    cleared() {
      noted = new Map();
      for (const entry of entries) {
        entry.isAll = true;
        due.add(entry.notify);
      }
      if (due.size > 0) schedule();
    },
    watch(interest, notify) {
      const entry: Entry = { interest, notify, touched: new Map(), isAll: false };
      const places = placesOf(interest, byKey, scattered);
      entries.add(entry);
      for (const place of places) place.add(entry);
      return {
        take() {
          const touched = entry.isAll ? undefined : entry.touched;
          entry.touched = new Map();
          entry.isAll = false;
          return touched;
        },
        isTouched: () => entry.isAll || entry.touched.size > 0,
        end() {
          entries.delete(entry);
          scattered.delete(entry);
          for (const key of keysOf(interest)) {
            const place = byKey.get(key);
            place?.delete(entry);
            if (place?.size === 0) byKey.delete(key);
          }
        },
      };
    },
    settle,
    watched: () => entries.size,
  };
}

/** Full names begin with `projects/` and have `/documents/` in them; paths of collections have an odd number of parts. */
function keysOf(interest: Interest): readonly string[] {
  if ('documents' in interest) return [...interest.documents];
  return isOneCollection(interest.scope) ? [collectionOf(interest.scope)] : [];
}

function placesOf(
  interest: Interest,
  byKey: Map<string, Set<Entry>>,
  scattered: Set<Entry>,
): readonly Set<Entry>[] {
  const keys = keysOf(interest);
  if (keys.length === 0) return [scattered];
  return keys.map((key) => {
    const place = byKey.get(key) ?? new Set();
    byKey.set(key, place);
    return place;
  });
}
