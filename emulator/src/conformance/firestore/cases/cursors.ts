/** Cursors, limits and offsets. */
import assert from 'node:assert/strict';
import { FieldPath, type Query } from '@google-cloud/firestore';
import { type FirestoreCase, found, ids, int, of, reference, refused, text } from '../expect.ts';
import { CURSORS, QUERY } from '../sources.ts';
import type { FirestoreWorld } from '../world.ts';

const make = of('Cursors and limits');
const NAME = FieldPath.documentId();

/** Five documents a to e, with n 1, 2, 2, 3, 4. */
async function five({ db }: FirestoreWorld): Promise<Query> {
  const batch = db.batch();
  for (const [i, n] of [1, 2, 2, 3, 4].entries()) batch.set(db.doc(`c/${'abcde'[i]}`), { n });
  await batch.commit();
  return db.collection('c');
}

const table: readonly [string, (c: Query) => Query, string][] = [
  ['startAt begins with what equals the cursor', (c) => c.orderBy('n').startAt(2), 'b,c,d,e'],
  ['startAfter begins after all that equals it', (c) => c.orderBy('n').startAfter(2), 'd,e'],
  ['endAt ends with what equals the cursor', (c) => c.orderBy('n').endAt(2), 'a,b,c'],
  ['endBefore ends before all that equals it', (c) => c.orderBy('n').endBefore(2), 'a'],
  ['A start and an end go together', (c) => c.orderBy('n').startAt(2).endBefore(4), 'b,c,d'],
  ['Cursors follow a descending order', (c) => c.orderBy('n', 'desc').startAt(3).endAt(2), 'd,c,b'],
  ['A cursor between the values', (c) => c.orderBy('n').startAt(2.5), 'd,e'],
  ['A cursor of another type is before or after all numbers', (c) => c.orderBy('n').startAt('x'), ''],
  ['A cursor with the name after the value', (c) => c.orderBy('n').orderBy(NAME).startAfter(2, 'b'), 'c,d,e'],
  ['A cursor by document ID', (c) => c.orderBy(NAME).startAt('b').endBefore('d'), 'b,c'],
  ['limit takes the first', (c) => c.orderBy('n').limit(2), 'a,b'],
  ['limitToLast takes the last, in the order of the query', (c) => c.orderBy('n').limitToLast(2), 'd,e'],
  ['limitToLast with cursors', (c) => c.orderBy('n').startAt(2).endBefore(4).limitToLast(2), 'c,d'],
  ['offset passes over the first', (c) => c.orderBy('n').offset(3), 'd,e'],
  ['offset and limit go together', (c) => c.orderBy('n').offset(1).limit(2), 'b,c'],
  ['An offset past the end finds nothing', (c) => c.orderBy('n').offset(9), ''],
  ['A cursor goes with a filter', (c) => c.where('n', '>', 1).orderBy('n').startAfter(2), 'd,e'],
];

export const cursorCases: readonly FirestoreCase[] = [
  ...table.map(([title, query, want]) =>
    make(title, CURSORS, async (world) => found(query(await five(world)), want)),
  ),
  make(
    'startAfter a snapshot goes on where the page before ended, also among equals',
    CURSORS,
    async (world) => {
      const query = (await five(world)).orderBy('n').limit(2);
      const first = await query.get();
      const second = await query.startAfter(first.docs.at(-1)).get();
      assert.deepEqual([ids(first), ids(second)], ['a,b', 'c,d']);
    },
  ),
  make('endBefore a snapshot', CURSORS, async (world) => {
    const c = await five(world);
    const [, , third] = (await c.orderBy('n').get()).docs;
    await found(c.orderBy('n').endBefore(third), 'a,b');
  }),
  make('A stream gives the documents one by one', QUERY, async (world) => {
    const seen: string[] = [];
    for await (const one of (await five(world)).orderBy('n').stream()) {
      seen.push((one as unknown as { id: string }).id);
    }
    assert.equal(seen.join(), 'a,b,c,d,e');
  }),
  make('A query gives its read time, also when it finds nothing', QUERY, async ({ db, now }) => {
    const { readTime } = await db.collection('none').get();
    assert.ok(
      Math.abs(readTime.toMillis() - now()) < 60_000,
      `the read time is ${readTime.toDate().toISOString()}`,
    );
  }),
  make('The results that an offset skipped are counted', QUERY, async (world) => {
    await five(world);
    const structuredQuery = { from: [{ collectionId: 'c' }], offset: 3 };
    const answers = await world.call('RunQuery', { parent: `${world.database}/documents`, structuredQuery });
    const skipped = answers.reduce((sum, { skippedResults }) => sum + Number(skippedResults ?? 0), 0);
    assert.equal(skipped, 3);
  }),
  make(
    'A cursor with more values than orders answers INVALID_ARGUMENT',
    QUERY,
    async ({ call, database }) => {
      const startAt = { values: [int(1), reference(`${database}/documents/c/a`), int(3)] };
      const orderBy = [{ field: { fieldPath: 'n' }, direction: 'ASCENDING' }];
      const request = {
        parent: `${database}/documents`,
        structuredQuery: { from: [{ collectionId: 'c' }], orderBy, startAt },
      };
      await refused(call('RunQuery', request), 'INVALID_ARGUMENT', 'three values for two orders');
    },
  ),
  make(
    'A cursor in __name__ that is no reference answers INVALID_ARGUMENT',
    QUERY,
    async ({ call, database }) => {
      const orderBy = [{ field: { fieldPath: '__name__' }, direction: 'ASCENDING' }];
      const structuredQuery = { from: [{ collectionId: 'c' }], orderBy, startAt: { values: [text('a')] } };
      await refused(
        call('RunQuery', { parent: `${database}/documents`, structuredQuery }),
        'INVALID_ARGUMENT',
        'the string a',
      );
    },
  ),
];
