/** RunAggregationQuery: count, sum and average. */
import assert from 'node:assert/strict';
import { AggregateField, type Query } from '@google-cloud/firestore';
import { accepted, double, type FirestoreCase, int, of, refused } from '../expect.ts';
import { AGGREGATE_FIELD, AGGREGATIONS } from '../sources.ts';
import type { FirestoreWorld } from '../world.ts';

const make = of('Aggregations');
const sum = (field: string) => AggregateField.sum(field);
const average = (field: string) => AggregateField.average(field);
const count = () => AggregateField.count();

async function fill({ db }: FirestoreWorld, ...docs: readonly object[]): Promise<Query> {
  const batch = db.batch();
  for (const [i, fields] of docs.entries()) batch.set(db.doc(`c/${i}`), fields);
  await batch.commit();
  return db.collection('c');
}

const aggregated = async (query: Query, fields: Parameters<Query['aggregate']>[0]): Promise<object> =>
  (await accepted(query.aggregate(fields).get(), 'the aggregation')).data();

const asked = ({ one, database }: FirestoreWorld, ...aggregations: readonly object[]) =>
  one('RunAggregationQuery', {
    parent: `${database}/documents`,
    structuredAggregationQuery: { structuredQuery: { from: [{ collectionId: 'c' }] }, aggregations },
  });

type Result = Readonly<{
  result: Readonly<{ aggregateFields: Readonly<Record<string, Readonly<Record<string, unknown>>>> }>;
}>;

export const aggregationCases: readonly FirestoreCase[] = [
  make('count counts what the query finds', AGGREGATIONS, async (world) => {
    const c = await fill(world, { n: 1 }, { n: 2 }, { n: 3 }, {});
    assert.deepEqual((await c.count().get()).data(), { count: 4 });
    assert.deepEqual((await c.where('n', '>', 1).count().get()).data(), { count: 2 });
  }),
  make('count of nothing is 0', AGGREGATIONS, async ({ db }) => {
    assert.deepEqual((await db.collection('none').count().get()).data(), { count: 0 });
  }),
  make('count goes with limit and offset', AGGREGATIONS, async (world) => {
    const c = await fill(world, {}, {}, {}, {});
    assert.deepEqual((await c.limit(3).count().get()).data(), { count: 3 });
    assert.deepEqual((await c.offset(3).count().get()).data(), { count: 1 });
  }),
  make('count stops at up_to', AGGREGATIONS, async (world) => {
    await fill(world, {}, {}, {});
    const { result } = (await asked(world, { alias: 'k', count: { upTo: { value: '2' } } })) as Result;
    assert.equal(result.aggregateFields['k']?.['integerValue'], '2');
  }),
  make('sum adds integers to an integer', AGGREGATE_FIELD, async (world) => {
    assert.deepEqual(await aggregated(await fill(world, { n: 1 }, { n: 2 }, { n: 39 }), { s: sum('n') }), {
      s: 42,
    });
  }),
  make('sum with a double is a double', AGGREGATIONS, async (world) => {
    await fill(world, { n: 1 }, { n: 2.5 });
    const { result } = (await asked(world, { alias: 's', sum: { field: { fieldPath: 'n' } } })) as Result;
    assert.equal(result.aggregateFields['s']?.['doubleValue'], 3.5);
  }),
  make('sum passes over what is no number', AGGREGATIONS, async (world) => {
    const c = await fill(world, { n: 1 }, { n: '5' }, { n: null }, { n: [7] }, { n: 2 });
    assert.deepEqual(await aggregated(c, { s: sum('n') }), { s: 3 });
  }),
  make('sum and average with NaN are NaN', AGGREGATIONS, async (world) => {
    const c = await fill(world, { n: 1 }, { n: Number.NaN });
    assert.deepEqual(await aggregated(c, { s: sum('n'), a: average('n') }), { s: Number.NaN, a: Number.NaN });
  }),
  make('sum of nothing is 0, average of nothing is null', AGGREGATE_FIELD, async (world) => {
    const c = await fill(world, { n: 'x' });
    assert.deepEqual(await aggregated(c, { s: sum('n'), a: average('n') }), { s: 0, a: null });
  }),
  make('average is a double', AGGREGATE_FIELD, async (world) => {
    assert.deepEqual(
      await aggregated(await fill(world, { n: 1 }, { n: 2 }, { n: 'x' }), { a: average('n') }),
      { a: 1.5 },
    );
  }),
  make('A nested field is aggregated by its path', AGGREGATIONS, async (world) => {
    const c = await fill(world, { m: { n: 1 } }, { m: { n: 4 } });
    assert.deepEqual(await aggregated(c, { s: sum('m.n') }), { s: 5 });
  }),
  make('Beside a sum, count counts only what has the field', AGGREGATIONS, async (world) => {
    const c = await fill(world, { n: 1 }, { n: 'x' }, {});
    assert.deepEqual(await aggregated(c, { k: count(), s: sum('n') }), { k: 2, s: 1 });
  }),
  make('A sum past 64 bits is a double', AGGREGATIONS, async (world) => {
    const { commit, doc } = world;
    const n = int('9223372036854775807');
    await commit(...['a', 'b'].map((id) => ({ update: { name: doc(`c/${id}`), fields: { n } } })));
    const { result } = (await asked(world, { alias: 's', sum: { field: { fieldPath: 'n' } } })) as Result;
    assert.equal(
      result.aggregateFields['s']?.['doubleValue'],
      2 ** 64,
      JSON.stringify(result.aggregateFields['s']),
    );
  }),
  make('A collection group is aggregated', AGGREGATIONS, async ({ db }) => {
    for (const path of ['p/1/g/a', 'p/2/g/b', 'g/c']) await db.doc(path).set({ n: 1 });
    assert.deepEqual((await db.collectionGroup('g').count().get()).data(), { count: 3 });
  }),
  make('Five aggregations in one query are accepted', AGGREGATIONS, async (world) => {
    const all = Array.from({ length: 5 }, (_, i) => ({ alias: `k${i}`, count: {} }));
    await accepted(asked(world, ...all), 'five aggregations');
  }),
  make('Six aggregations in one query answer INVALID_ARGUMENT', AGGREGATIONS, async (world) => {
    const all = Array.from({ length: 6 }, (_, i) => ({ alias: `k${i}`, count: {} }));
    await refused(asked(world, ...all), 'INVALID_ARGUMENT', 'six aggregations');
  }),
  make('No aggregation answers INVALID_ARGUMENT', AGGREGATIONS, async (world) => {
    await refused(asked(world), 'INVALID_ARGUMENT', 'a query without aggregations');
  }),
  make('An alias that is given twice answers INVALID_ARGUMENT', AGGREGATIONS, async (world) => {
    const twice = [1, 2].map(() => ({ alias: 'k', count: {} }));
    await refused(asked(world, ...twice), 'INVALID_ARGUMENT', 'two aliases k');
  }),
  make('An up_to of 0 answers INVALID_ARGUMENT', AGGREGATIONS, async (world) => {
    await refused(
      asked(world, { alias: 'k', count: { upTo: { value: '0' } } }),
      'INVALID_ARGUMENT',
      'up_to 0',
    );
  }),
  make('Aliases that are not given are field_1, field_2', AGGREGATIONS, async (world) => {
    await fill(world, { n: 1 });
    const { result } = (await asked(world, { count: {} }, { sum: { field: { fieldPath: 'n' } } })) as Result;
    assert.deepEqual(Object.keys(result.aggregateFields).sort(), ['field_1', 'field_2']);
  }),
  make('The sum of doubles is of doubles', AGGREGATIONS, async (world) => {
    const { commit, doc } = world;
    await commit(
      { update: { name: doc('c/a'), fields: { n: double(2) } } },
      { update: { name: doc('c/b'), fields: { n: double(3) } } },
    );
    const { result } = (await asked(world, { alias: 's', sum: { field: { fieldPath: 'n' } } })) as Result;
    assert.equal(result.aggregateFields['s']?.['doubleValue'], 5);
  }),
];
