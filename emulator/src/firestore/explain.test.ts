import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { FieldPath, Filter, type Query } from '@google-cloud/firestore';
import { systemClock } from '../clock.ts';
import { type TestBed, testBed } from './testing.ts';

const field = (fieldPath: string, order = 'ASCENDING'): object => ({ fieldPath, order });
const definitions = {
  indexes: [
    { collectionGroup: 'c', queryScope: 'COLLECTION', fields: [field('a'), field('s', 'DESCENDING')] },
    { collectionGroup: 'c', queryScope: 'COLLECTION', fields: [field('b'), field('s', 'DESCENDING')] },
  ],
};

describe('explain', () => {
  let bed: TestBed;
  before(async () => {
    bed = await testBed(systemClock(), { indexes: { mode: 'off', definitions } });
    for (const id of ['1', '2', '3']) await bed.db.doc(`c/${id}`).set({ a: 1, s: Number(id), t: ['x'] });
  });
  after(() => bed.close());

  const used = async (query: Query): Promise<string> => {
    const { metrics } = await query.explain();
    return metrics.planSummary.indexesUsed
      .map((index) => `${String(index['query_scope'])} ${String(index['properties'])}`)
      .join('; ');
  };

  test('shows the indexes that the service would use', async () => {
    const c = bed.db.collection('c');
    const wanted: [Query, string][] = [
      [c, 'Collection (__name__ ASC)'],
      [c.where(FieldPath.documentId(), '==', '1'), 'Collection (__name__ ASC)'],
      [c.where('n', '>', 1), 'Collection (n ASC, __name__ ASC)'],
      [c.where('a', '==', 1).orderBy('s', 'desc'), 'Collection (a ASC, s DESC, __name__ DESC)'],
      [
        c.where('a', '==', 1).where('b', '==', 1).orderBy('s', 'desc'),
        'Collection (a ASC, s DESC, __name__ DESC); Collection (b ASC, s DESC, __name__ DESC)',
      ],
      [c.where('t', 'array-contains', 'x'), 'Collection (t CONTAINS, __name__ ASC)'],
      [
        c.where(Filter.or(Filter.where('n', '==', 1), Filter.where('k', '==', 1))),
        'Collection (n ASC, __name__ ASC); Collection (k ASC, __name__ ASC)',
      ],
      // It is not defined: what the query would need.
      [c.orderBy('x').orderBy('y'), 'Collection (x ASC, y ASC, __name__ ASC)'],
      [bed.db.collectionGroup('c').orderBy('n'), 'Collection Group (n ASC, __name__ ASC)'],
    ];
    for (const [query, want] of wanted) assert.equal(await used(query), want);
  });

  test('with analyze runs the query, and counts what is billed', async () => {
    const c = bed.db.collection('c');
    const counts = async (query: Query): Promise<number[]> => {
      const { metrics, snapshot } = await query.explain({ analyze: true });
      const { resultsReturned, readOperations } = metrics.executionStats ?? {};
      return [snapshot?.size ?? -1, Number(resultsReturned), Number(readOperations)];
    };
    assert.deepEqual(await counts(c), [3, 3, 3]);
    assert.deepEqual(await counts(c.offset(2)), [1, 1, 3]);
    assert.deepEqual(await counts(c.where('a', '==', 9)), [0, 0, 1]);
  });

  test('an aggregation is planned, or run and counted', async () => {
    const count = bed.db.collection('c').where('a', '==', 1).count();
    assert.equal((await count.explain()).snapshot, null);
    const { metrics, snapshot } = await count.explain({ analyze: true });
    assert.deepEqual(snapshot?.data(), { count: 3 });
    assert.equal(Number(metrics.executionStats?.readOperations), 1);
  });
});
