import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { Firestore, type QuerySnapshot } from '@google-cloud/firestore';
import { until } from '../until.ts';
import { cuttable, type TestBed, testBed } from './testing.ts';

/** What a listener receives, one after the other. */
function inbox<T>(): Readonly<{ put(item: T): void; next(): Promise<T>; size(): number }> {
  const items: T[] = [];
  const waiting: ((item: T) => void)[] = [];
  return {
    put(item) {
      const first = waiting.shift();
      if (first === undefined) items.push(item);
      else first(item);
    },
    next: () =>
      new Promise((resolve) => {
        if (items.length === 0) waiting.push(resolve);
        else resolve(items.shift() as T);
      }),
    size: () => items.length,
  };
}

const ids = (snapshot: QuerySnapshot): string[] => snapshot.docs.map(({ id }) => id);
const changes = (snapshot: QuerySnapshot): string[] =>
  snapshot.docChanges().map(({ type, doc }) => `${type} ${doc.id}`);

describe('listening with the client', () => {
  let bed: TestBed;
  let db: Firestore;
  let stops: (() => void)[] = [];
  before(async () => {
    bed = await testBed();
    db = bed.db;
  });
  after(() => bed.close());
  beforeEach(() => bed.server.clear());
  afterEach(async () => {
    for (const stop of stops) stop();
    stops = [];
    await listeners(0);
  });

  async function listeners(count: number): Promise<void> {
    await until(
      () => bed.server.stats().listeners === count,
      () => `${bed.server.stats().listeners} listeners, not ${count}`,
    );
  }

  function watch(query: FirebaseFirestore.Query) {
    const box = inbox<QuerySnapshot>();
    stops.push(query.onSnapshot(box.put, (error) => assert.fail(error)));
    return box;
  }

  test('a listener to a document hears when it is missing, there, changed and gone', async () => {
    const doc = db.doc('rooms/a');
    const box = inbox<unknown>();
    stops.push(doc.onSnapshot((snapshot) => box.put(snapshot.data())));
    assert.equal(await box.next(), undefined);
    await doc.set({ n: 1 });
    assert.deepEqual(await box.next(), { n: 1 });
    await doc.update({ n: 2 });
    assert.deepEqual(await box.next(), { n: 2 });
    await db.doc('rooms/other').set({ n: 1 });
    await doc.delete();
    assert.equal(await box.next(), undefined);
    assert.equal(box.size(), 0);
  });

  test('a listener to a query hears what enters, changes, leaves the filter and is deleted', async () => {
    const rooms = db.collection('rooms');
    await rooms.doc('a').set({ n: 1, open: true });
    const box = watch(rooms.where('open', '==', true));
    assert.deepEqual(changes(await box.next()), ['added a']);
    await rooms.doc('b').set({ n: 2, open: true });
    assert.deepEqual(changes(await box.next()), ['added b']);
    await rooms.doc('a').update({ n: 3 });
    assert.deepEqual(changes(await box.next()), ['modified a']);
    await rooms.doc('c').set({ open: false });
    await rooms.doc('a').update({ open: false });
    assert.deepEqual(changes(await box.next()), ['removed a']);
    await rooms.doc('b').delete();
    const last = await box.next();
    assert.deepEqual([changes(last), ids(last)], [['removed b'], []]);
    assert.equal(box.size(), 0);
  });

  test('a limit lets in what moves up and drops what falls out', async () => {
    const rows = db.collection('rows');
    for (const n of [1, 2, 3, 4]) await rows.doc(`d${n}`).set({ n });
    const [first, last] = [watch(rows.orderBy('n').limit(2)), watch(rows.orderBy('n').limitToLast(2))];
    assert.deepEqual(
      [ids(await first.next()), ids(await last.next())],
      [
        ['d1', 'd2'],
        ['d3', 'd4'],
      ],
    );
    await rows.doc('d0').set({ n: 0 });
    const pushed = await first.next();
    assert.deepEqual(
      [changes(pushed), ids(pushed)],
      [
        ['removed d2', 'added d0'],
        ['d0', 'd1'],
      ],
    );
    await rows.doc('d1').delete();
    assert.deepEqual(ids(await first.next()), ['d0', 'd2']);
    await rows.doc('d4').update({ n: 2.5 });
    const reordered = await last.next();
    assert.deepEqual([changes(reordered), ids(reordered)], [['modified d4'], ['d4', 'd3']]);
    assert.deepEqual([first.size(), last.size()], [0, 0]);
  });

  test('collection groups, offsets, projections and cursors are listened to', async () => {
    await db.doc('p/1/kids/a').set({ n: 1, more: true });
    const group = watch(db.collectionGroup('kids').select('n'));
    const second = watch(db.collectionGroup('kids').orderBy('n').offset(1).limit(1));
    const later = watch(db.collection('p/1/kids').orderBy('n').startAfter(1));
    assert.deepEqual(
      (await group.next()).docs.map((doc) => doc.data()),
      [{ n: 1 }],
    );
    assert.deepEqual([ids(await second.next()), ids(await later.next())], [[], []]);
    await db.doc('p/2/kids/b').set({ n: 2 });
    assert.deepEqual(changes(await group.next()), ['added b']);
    assert.deepEqual(ids(await second.next()), ['b']);
    await db.doc('p/1/kids/c').set({ n: 3 });
    assert.deepEqual(ids(await later.next()), ['c']);
    await db.doc('p/1/kids/a').delete();
    const moved = await second.next();
    assert.deepEqual([changes(moved), ids(moved)], [['removed b', 'added c'], ['c']]);
  });

  test('a commit is seen as a whole: no snapshot shows a part of it', async () => {
    const accounts = db.collection('accounts');
    await Promise.all(['a', 'b', 'c'].map((id) => accounts.doc(id).set({ n: 100 })));
    const sums: number[] = [];
    const done = inbox<true>();
    stops.push(
      accounts.onSnapshot((snapshot) => {
        sums.push(snapshot.docs.reduce((sum, doc) => sum + (doc.get('n') as number), 0));
        if (snapshot.docs.some((doc) => doc.get('last') === true)) done.put(true);
      }),
    );
    for (let i = 0; i < 40; i++) {
      const [from = '', to = ''] =
        [
          ['a', 'b'],
          ['b', 'c'],
          ['c', 'a'],
        ][i % 3] ?? [];
      await db.runTransaction(async (transaction) => {
        const [x, y] = await transaction.getAll(accounts.doc(from), accounts.doc(to));
        transaction.update(accounts.doc(from), { n: (x?.get('n') as number) - 7 });
        transaction.update(accounts.doc(to), { n: (y?.get('n') as number) + 7, last: i === 39 });
      });
    }
    await done.next();
    assert.ok(sums.length > 3, `only ${sums.length} snapshots`);
    assert.ok(
      sums.every((sum) => sum === 300),
      `sums ${sums.join()}`,
    );
  });

  test('after a broken connection a listener hears what it missed, and nothing twice', async () => {
    const line = await cuttable(bed.server.port);
    process.env['FIRESTORE_EMULATOR_HOST'] = `127.0.0.1:${line.port}`;
    const far = new Firestore({ projectId: 'test-project' });
    const box = inbox<QuerySnapshot>();
    try {
      for (const id of ['a', 'b', 'c']) await db.doc(`rows/${id}`).set({ n: 1 });
      stops.push(far.collection('rows').onSnapshot(box.put));
      assert.deepEqual(ids(await box.next()), ['a', 'b', 'c']);
      line.drop();
      await listeners(0);
      await db.doc('rows/a').delete();
      await db.doc('rows/b').update({ n: 2 });
      const missed = await box.next();
      const all = changes(missed);
      // It may have been back before the second of the two.
      if (all.length < 2) all.push(...changes(await box.next()));
      assert.deepEqual(all, ['removed a', 'modified b']);
    } finally {
      for (const stop of stops) stop();
      await far.terminate();
      line.cut();
    }
    assert.equal(box.size(), 0);
  });

  test('clearing the server tells listeners that everything is gone', async () => {
    await db.doc('rows/a').set({ n: 1 });
    const box = watch(db.collection('rows').limit(3));
    assert.deepEqual(ids(await box.next()), ['a']);
    bed.server.clear();
    assert.deepEqual(changes(await box.next()), ['removed a']);
  });

  test('a query that is refused tells its listener why', async () => {
    const failed = inbox<Error>();
    const nowhere = db.collection('rows').where('a', 'not-in', [1]).where('b', '!=', 2);
    stops.push(nowhere.onSnapshot(() => assert.fail('no snapshot'), failed.put));
    assert.match((await failed.next()).message, /Error 3: .*NOT_IN/);
  });
});
