/** Which documents a query looks at, and which of their fields it answers. */
import assert from 'node:assert/strict';
import { accepted, type FirestoreCase, fill, found, of, refused } from '../expect.ts';
import { QUERY } from '../sources.ts';

const make = of('Collections and projections');

export const collectionCases: readonly FirestoreCase[] = [
  make('A select answers only these fields', QUERY, async (world) => {
    const c = await fill(world, { a: { a: 1, m: { x: 1, y: 2 } } });
    assert.deepEqual((await c.select('m.x', 'none').get()).docs[0]?.data(), { m: { x: 1 } });
  }),
  make('A select of nothing answers the names', QUERY, async (world) => {
    const [one] = (await (await fill(world, { a: { a: 1 } })).select().get()).docs;
    assert.deepEqual([one?.id, one?.data()], ['a', {}]);
  }),
  make('A subcollection is a collection of its own', QUERY, async ({ db }) => {
    await db.doc('c/a').set({});
    await db.doc('c/a/c/b').set({});
    await found(db.collection('c'), 'a');
    await found(db.collection('c/a/c'), 'b');
  }),
  make(
    'A query without a selected collection’s ID below a parent finds all collections there',
    QUERY,
    async (world) => {
      const { db, call, database } = world;
      for (const path of ['c/a', 'd/a', 'c/a/s/1']) await db.doc(path).set({});
      const structuredQuery = { from: [{ allDescendants: true }] };
      const answers = await accepted(
        call('RunQuery', { parent: `${database}/documents`, structuredQuery }),
        'the query',
      );
      assert.equal(answers.filter(({ document }) => document).length, 3);
    },
  ),
  make('A negative offset answers INVALID_ARGUMENT', QUERY, async ({ call, database }) => {
    const structuredQuery = { from: [{ collectionId: 'c' }], offset: -1 };
    await refused(
      call('RunQuery', { parent: `${database}/documents`, structuredQuery }),
      'INVALID_ARGUMENT',
      'offset -1',
    );
  }),
  make('A negative limit answers INVALID_ARGUMENT', QUERY, async ({ call, database }) => {
    const structuredQuery = { from: [{ collectionId: 'c' }], limit: { value: -1 } };
    await refused(
      call('RunQuery', { parent: `${database}/documents`, structuredQuery }),
      'INVALID_ARGUMENT',
      'limit -1',
    );
  }),
];
