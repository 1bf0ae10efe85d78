/** Query Explain. */
import assert from 'node:assert/strict';
import { accepted, type FirestoreCase, of } from '../expect.ts';
import { EXPLAIN } from '../sources.ts';

const explain = of('Query explain');

export const explainCases: readonly FirestoreCase[] = [
  explain('explain plans and does not run the query', EXPLAIN, async ({ db }) => {
    await db.doc('c/a').set({ n: 1 });
    const { metrics, snapshot } = await accepted(db.collection('c').where('n', '>', 0).explain(), 'explain');
    assert.equal(snapshot, null);
    assert.equal(metrics.executionStats, null);
    assert.deepEqual(metrics.planSummary.indexesUsed, [
      { query_scope: 'Collection', properties: '(n ASC, __name__ ASC)' },
    ]);
  }),
  explain('explain with analyze answers the results, and how many they are', EXPLAIN, async ({ db }) => {
    for (const n of [1, 2, 3]) await db.doc(`c/${n}`).set({ n });
    const { metrics, snapshot } = await accepted(
      db.collection('c').orderBy('n').limit(2).explain({ analyze: true }),
      'explain',
    );
    assert.equal(snapshot?.size, 2);
    assert.equal(Number(metrics.executionStats?.resultsReturned), 2);
    assert.equal(Number(metrics.executionStats?.readOperations), 2);
  }),
  explain('explain names each of the indexes that are merged', EXPLAIN, async ({ db }) => {
    const { metrics } = await accepted(
      db.collection('c').where('a', '==', 1).where('b', '==', 1).explain(),
      'explain',
    );
    const used = metrics.planSummary.indexesUsed.map((index) => (index as { properties: string }).properties);
    assert.deepEqual(used.sort(), ['(a ASC, __name__ ASC)', '(b ASC, __name__ ASC)']);
  }),
  explain('An aggregation is explained', EXPLAIN, async ({ db }) => {
    for (const n of [1, 2, 3]) await db.doc(`c/${n}`).set({ n });
    const counted = db.collection('c').where('n', '>', 1).count();
    const { metrics, snapshot } = await accepted(counted.explain({ analyze: true }), 'explain');
    assert.deepEqual(snapshot?.data(), { count: 2 });
    assert.equal(Number(metrics.executionStats?.resultsReturned), 1);
  }),
];
