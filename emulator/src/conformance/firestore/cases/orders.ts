/** Orders: across types, ties, directions, and the order that a filter implies. */
import assert from 'node:assert/strict';
import { FieldPath, FieldValue, type Firestore, GeoPoint, Timestamp } from '@google-cloud/firestore';
import { type FirestoreCase, fill, found, int, of, refused } from '../expect.ts';
import { QUERY, RANGES, TYPES, VECTORS } from '../sources.ts';
import type { FirestoreWorld } from '../world.ts';

const make = of('Orders');
const NAME = FieldPath.documentId();

/** Writes the values in reverse, under IDs that say nothing, and answers in which order they are found. */
async function sorted(world: FirestoreWorld, values: readonly unknown[]): Promise<void> {
  const { db } = world;
  const batch = db.batch();
  for (const [i, value] of values.entries())
    batch.set(db.doc(`c/${(values.length - i) * 7}`), { f: value, i });
  await batch.commit();
  const up = (await db.collection('c').orderBy('f').get()).docs.map((found) => found.get('i'));
  assert.deepEqual(up, [...values.keys()], `ascending: ${up.join()}`);
  const down = (await db.collection('c').orderBy('f', 'desc').get()).docs.map((found) => found.get('i'));
  assert.deepEqual(down, [...values.keys()].reverse(), `descending: ${down.join()}`);
}

const order = (title: string, values: (db: Firestore) => readonly unknown[], source = TYPES): FirestoreCase =>
  make(title, source, async (world) => sorted(world, values(world.db)));

export const orderCases: readonly FirestoreCase[] = [
  order(
    'Types: null, boolean, NaN, number, timestamp, string, bytes, reference, geo point, array, vector, map',
    (db) => [
      null,
      false,
      Number.NaN,
      -1,
      new Timestamp(1, 0),
      '',
      Buffer.from([0]),
      db.doc('c/a'),
      new GeoPoint(0, 0),
      [],
      FieldValue.vector([1]),
      {},
    ],
  ),
  order('Booleans: false before true', () => [false, true]),
  order('Numbers: integers and doubles mixed by their value, NaN first', () => [
    Number.NaN,
    -Infinity,
    -1.5,
    -1,
    0,
    0.5,
    1,
    2 ** 53,
    Infinity,
  ]),
  order('Timestamps by time', () => [
    new Timestamp(-1, 0),
    new Timestamp(0, 0),
    new Timestamp(0, 1_000),
    new Timestamp(1, 0),
  ]),
  order('Strings by their UTF-8 bytes', () => ['', 'A', 'Z', 'a', 'aa', 'b', 'é', '\u{ffff}', '\u{1f600}']),
  order('Bytes by bytes', () => [Buffer.alloc(0), Buffer.from([1]), Buffer.from([1, 0]), Buffer.from([255])]),
  order('References by collection, then document ID', (db) => [
    db.doc('c/a'),
    db.doc('c/a/s/1'),
    db.doc('c/b'),
    db.doc('d/a'),
  ]),
  order('Geo points by latitude, then longitude', () => [
    new GeoPoint(-90, 5),
    new GeoPoint(0, -5),
    new GeoPoint(0, 5),
    new GeoPoint(90, -180),
  ]),
  order('Arrays by their elements, a shorter one first', () => [[], [1], [1, 1], [1, 2], [2], ['a']]),
  order('Maps by their sorted keys, then values, a shorter one first', () => [
    {},
    { a: 1 },
    { a: 1, b: 1 },
    { a: 2 },
    { b: 0 },
  ]),
  order(
    'Vectors by their number of dimensions, then by elements',
    () => [[9], [1, 1], [1, 2], [0, 0, 0]].map((each) => FieldValue.vector(each)),
    VECTORS,
  ),
  make('Without an order documents come by their names', QUERY, async (world) => {
    await found(await fill(world, { b: {}, a: {}, B: {}, '10': {}, '9': {} }), '10,9,B,a,b');
  }),
  make('Ties are broken by name', QUERY, async (world) => {
    await found((await fill(world, { b: { n: 1 }, a: { n: 1 }, c: { n: 0 } })).orderBy('n'), 'c,a,b');
  }),
  make('Ties of a descending order are broken by name, descending', QUERY, async (world) => {
    await found((await fill(world, { b: { n: 1 }, a: { n: 1 }, c: { n: 0 } })).orderBy('n', 'desc'), 'b,a,c');
  }),
  make('Several orders, in their directions', QUERY, async (world) => {
    const c = await fill(world, {
      a: { n: 1, k: 1 },
      b: { n: 1, k: 2 },
      c: { n: 2, k: 1 },
      d: { n: 2, k: 2 },
    });
    await found(c.orderBy('n', 'desc').orderBy('k'), 'c,d,a,b');
  }),
  make('A document without the field of the order is not found', QUERY, async (world) => {
    await found((await fill(world, { a: { n: 1 }, b: {}, c: { n: null } })).orderBy('n'), 'c,a');
  }),
  make('A range orders by its field', QUERY, async (world) => {
    await found((await fill(world, { a: { n: 3 }, b: { n: 2 }, c: { n: 1 } })).where('n', '>', 0), 'c,b,a');
  }),
  make('Ranges on several fields order by the fields’ names', RANGES, async (world) => {
    const c = await fill(world, { a: { n: 1, k: 3 }, b: { n: 2, k: 2 }, c: { n: 3, k: 1 } });
    await found(c.where('n', '>', 0).where('k', '>', 0), 'c,b,a');
  }),
  make('An order comes before the one that a range implies', RANGES, async (world) => {
    const c = await fill(world, { a: { n: 1, k: 3 }, b: { n: 2, k: 2 }, c: { n: 3, k: 1 } });
    await found(c.where('k', '>', 0).orderBy('n'), 'a,b,c');
  }),
  make('By __name__, ascending', QUERY, async (world) => {
    await found((await fill(world, { b: {}, a: {}, c: {} })).orderBy(NAME), 'a,b,c');
  }),
  // Legal by the reference of the query. Whether it needs an index is said in the cases on indexes.
  make('By __name__, descending', QUERY, async (world) => {
    await found((await fill(world, { b: {}, a: {}, c: {} })).orderBy(NAME, 'desc'), 'c,b,a');
  }),
  make('By __name__ against the direction of the order before it', QUERY, async (world) => {
    await found(
      (await fill(world, { b: { n: 1 }, a: { n: 1 }, c: { n: 0 } })).orderBy('n', 'desc').orderBy(NAME),
      'a,b,c',
    );
  }),
  make('By a nested field', QUERY, async (world) => {
    await found(
      (await fill(world, { a: { m: { x: 2 } }, b: { m: { x: 1 } }, c: { m: 1 } })).orderBy('m.x'),
      'b,a',
    );
  }),
  make('A collection group is ordered by the whole name', QUERY, async ({ db }) => {
    for (const path of ['p/2/g/a', 'p/1/g/b', 'g/z']) await db.doc(path).set({ path });
    const seen = (await db.collectionGroup('g').get()).docs.map(({ ref }) => ref.path);
    assert.deepEqual(seen, ['g/z', 'p/1/g/b', 'p/2/g/a']);
  }),
  make('The same field twice in the order answers INVALID_ARGUMENT', QUERY, async ({ call, database }) => {
    const orderBy = [1, 2].map(() => ({ field: { fieldPath: 'f' }, direction: 'ASCENDING' }));
    const request = {
      parent: `${database}/documents`,
      structuredQuery: { from: [{ collectionId: 'c' }], orderBy },
    };
    await refused(call('RunQuery', request), 'INVALID_ARGUMENT', 'an order by f, f');
  }),
  make('Integers and doubles that are equal tie', TYPES, async ({ db, commit, doc }) => {
    const write = (id: string, n: object): object => ({ update: { name: doc(`c/${id}`), fields: { n } } });
    await commit(write('b', int(3)), write('a', { doubleValue: 3 }));
    await found(db.collection('c').orderBy('n'), 'a,b');
  }),
];
