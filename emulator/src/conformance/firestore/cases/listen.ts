/** What a listener of the client hears. */
import assert from 'node:assert/strict';
import type { DocumentSnapshot, Firestore, Query, QuerySnapshot } from '@google-cloud/firestore';
import { type FirestoreCase, ids, of } from '../expect.ts';
import { LISTEN } from '../sources.ts';

const make = of('Listening');
/** In looks, of which a process that gets no time makes none. */
const PATIENCE_MS = 10_000;
const LOOK_MS = 200;

/** Everything that a listener received, and a wait for what it shall receive. */
function watch<S>(start: (next: (snapshot: S) => void, fail: (error: Error) => void) => () => void) {
  const seen: S[] = [];
  let [notify, failed] = [(): void => {}, undefined as Error | undefined];
  const stop = start(
    (snapshot) => {
      seen.push(snapshot);
      notify();
    },
    (error) => {
      failed = error;
      notify();
    },
  );
  return {
    seen,
    stop,
    async until(is: (snapshot: S) => boolean, what: string): Promise<S> {
      for (let waitedMs = 0; ; waitedMs += LOOK_MS) {
        const last = seen.at(-1);
        if (last !== undefined && is(last)) return last;
        if (failed !== undefined) throw failed;
        if (waitedMs > PATIENCE_MS) assert.fail(`within ${PATIENCE_MS / 1_000} s not ${what}`);
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, LOOK_MS);
          notify = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    },
  };
}

const watchQuery = (query: Query) => watch<QuerySnapshot>((next, fail) => query.onSnapshot(next, fail));
const watchDoc = (db: Firestore, path: string) =>
  watch<DocumentSnapshot>((next, fail) => db.doc(path).onSnapshot(next, fail));
const shows = (want: string) => (snapshot: QuerySnapshot) => ids(snapshot) === want;

export const listenCases: readonly FirestoreCase[] = [
  make(
    'A document listener first hears the document, then each change, then its deletion',
    LISTEN,
    async ({ db }) => {
      const watched = watchDoc(db, 'c/a');
      await watched.until((snapshot) => !snapshot.exists, 'that it is missing');
      await db.doc('c/a').set({ n: 1 });
      await watched.until((snapshot) => snapshot.get('n') === 1, 'the first version');
      await db.doc('c/a').update({ n: 2 });
      await watched.until((snapshot) => snapshot.get('n') === 2, 'the second version');
      await db.doc('c/a').delete();
      await watched.until((snapshot) => !snapshot.exists, 'the deletion');
      watched.stop();
    },
  ),
  make('A query listener hears what is there, comes, changes and goes', LISTEN, async ({ db }) => {
    await db.doc('c/a').set({ n: 1 });
    const watched = watchQuery(db.collection('c').where('n', '<', 5).orderBy('n'));
    await watched.until(shows('a'), 'a');
    await db.doc('c/b').set({ n: 0 });
    await watched.until(shows('b,a'), 'b,a');
    await db.doc('c/b').set({ n: 3 });
    await watched.until(shows('a,b'), 'a,b');
    await db.doc('c/a').set({ n: 9 });
    await watched.until(shows('b'), 'b: a does not fit any more');
    await db.doc('c/b').delete();
    await watched.until(shows(''), 'nothing');
    watched.stop();
  }),
  make('A query that finds nothing is heard at once', LISTEN, async ({ db }) => {
    const watched = watchQuery(db.collection('c'));
    const first = await watched.until(shows(''), 'a first snapshot');
    assert.equal(first.docChanges().length, 0);
    watched.stop();
  }),
  make('With a limit, what leaves makes room for the next', LISTEN, async ({ db }) => {
    for (const [i, id] of ['a', 'b', 'c'].entries()) await db.doc(`c/${id}`).set({ n: i });
    const watched = watchQuery(db.collection('c').orderBy('n').limit(2));
    await watched.until(shows('a,b'), 'a,b');
    await db.doc('c/a').delete();
    await watched.until(shows('b,c'), 'b,c');
    watched.stop();
  }),
  make('A commit is heard as a whole', LISTEN, async ({ db }) => {
    const watched = watchQuery(db.collection('c'));
    await watched.until(shows(''), 'a first snapshot');
    const batch = db.batch();
    for (const id of ['a', 'b', 'c']) batch.set(db.doc(`c/${id}`), {});
    await batch.commit();
    await watched.until(shows('a,b,c'), 'a,b,c');
    assert.equal(watched.seen.length, 2, `it heard ${watched.seen.map(ids).join(' | ')}`);
    watched.stop();
  }),
  make('A document of another collection is not heard', LISTEN, async ({ db }) => {
    const watched = watchQuery(db.collection('c'));
    await watched.until(shows(''), 'a first snapshot');
    await db.doc('d/a').set({});
    await db.doc('c/a').set({});
    await watched.until(shows('a'), 'a');
    assert.equal(watched.seen.length, 2);
    watched.stop();
  }),
  make('A collection group is listened to', LISTEN, async ({ db }) => {
    const watched = watchQuery(db.collectionGroup('g'));
    await watched.until(shows(''), 'a first snapshot');
    await db.doc('p/1/g/a').set({});
    await watched.until(shows('a'), 'a');
    watched.stop();
  }),
  make('A transaction is heard when it commits', LISTEN, async ({ db }) => {
    const watched = watchDoc(db, 'c/a');
    await watched.until((snapshot) => !snapshot.exists, 'that it is missing');
    await db.runTransaction(async (transaction) => {
      await transaction.get(db.doc('c/a'));
      transaction.set(db.doc('c/a'), { n: 1 });
    });
    await watched.until((snapshot) => snapshot.get('n') === 1, 'the commit');
    watched.stop();
  }),
];
