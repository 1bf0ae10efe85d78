/** The indexes that queries need. */
import assert from 'node:assert/strict';
import { AggregateField, FieldPath, Filter, type Query } from '@google-cloud/firestore';
import { accepted, type FirestoreCase, of, refused } from '../expect.ts';
import { AGGREGATIONS, INDEXES, MISSING_INDEX, RANGES } from '../sources.ts';

const make = of('Indexes');
const NAME = FieldPath.documentId();

const served: readonly [string, (c: Query) => Query][] = [
  ['Equalities on several fields', (c) => c.where('a', '==', 1).where('b', '==', 2).where('m.x', '==', 3)],
  ['Equalities with array-contains', (c) => c.where('a', '==', 1).where('t', 'array-contains', 'x')],
  ['in with an equality', (c) => c.where('a', 'in', [1, 2]).where('b', '==', 1)],
  ['Ranges and an order on one field', (c) => c.where('a', '>', 1).where('a', '<', 5).orderBy('a', 'desc')],
  ['An OR of equalities', (c) => c.where(Filter.or(Filter.where('a', '==', 1), Filter.where('b', '==', 2)))],
  ['An equality with a range of names', (c) => c.where('a', '==', 1).where(NAME, '>', 'x')],
];

const unserved: readonly [string, string, (c: Query) => Query][] = [
  ['An equality with an order on another field', INDEXES, (c) => c.where('a', '==', 1).orderBy('b')],
  [
    'An equality with a range on another field',
    MISSING_INDEX,
    (c) => c.where('a', '==', 1).where('b', '>', 1),
  ],
  ['array-contains with an order', INDEXES, (c) => c.where('t', 'array-contains', 1).orderBy('b')],
  ['Two orders', INDEXES, (c) => c.orderBy('a').orderBy('b', 'desc')],
  ['Ranges on two fields', RANGES, (c) => c.where('a', '>', 1).where('b', '>', 1)],
  ['in with an order on another field', INDEXES, (c) => c.where('a', 'in', [1, 2]).orderBy('b')],
];

export const indexCases: readonly FirestoreCase[] = [
  ...served.map(([title, query]) =>
    make(`${title}: needs no composite index`, INDEXES, async ({ unindexed }) => {
      const c = (await unindexed()).collection('c');
      await accepted(query(c).get(), 'the query');
    }),
  ),
  ...unserved.map(([title, source, query]) =>
    make(`${title}: without its index it answers FAILED_PRECONDITION`, source, async ({ unindexed }) => {
      const c = (await unindexed()).collection('c');
      const { details = '' } = await refused(query(c).get(), 'FAILED_PRECONDITION', 'the query');
      assert.match(details, /The query requires an index/);
    }),
  ),
  make('A collection group needs no index without filters and orders', INDEXES, async ({ unindexed }) => {
    await accepted((await unindexed()).collectionGroup('c').get(), 'the query');
  }),
  make(
    'A filter on a collection group: without its exemption it answers FAILED_PRECONDITION',
    INDEXES,
    async ({ unindexed }) => {
      const group = (await unindexed()).collectionGroup('c');
      await refused(group.where('a', '==', 1).get(), 'FAILED_PRECONDITION', 'the query');
    },
  ),
  make(
    'A sum with a filter on another field: without its index it answers FAILED_PRECONDITION',
    AGGREGATIONS,
    async ({ unindexed }) => {
      const filtered = (await unindexed()).collection('c').where('a', '==', 1);
      await refused(
        filtered.aggregate({ s: AggregateField.sum('n') }).get(),
        'FAILED_PRECONDITION',
        'the sum',
      );
    },
  ),
  make('A count with filters needs the index of its query', AGGREGATIONS, async ({ unindexed }) => {
    const c = (await unindexed()).collection('c');
    await accepted(c.where('a', '==', 1).count().get(), 'a count with an equality');
    await refused(
      c.where('a', '==', 1).where('b', '>', 1).count().get(),
      'FAILED_PRECONDITION',
      'a count that needs one',
    );
  }),
  make('A query that lacks its index is refused in a transaction, too', INDEXES, async ({ unindexed }) => {
    const db = await unindexed();
    const asked = db.runTransaction(
      (transaction) => transaction.get(db.collection('c').where('a', '==', 1).orderBy('b')),
      { maxAttempts: 1 },
    );
    await refused(asked, 'FAILED_PRECONDITION', 'the query');
  }),
];
