import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { AggregateField, Filter, type Firestore, type Query } from '@google-cloud/firestore';
import { until } from '../until.ts';
import { type Answer, type TestBed, testBed } from './testing.ts';

const INVALID_ARGUMENT = 3;
const database = 'projects/test-project/databases/(default)';
const parent = `${database}/documents`;
const over = (fieldPath: string) => ({ field: { fieldPath } });

describe('aggregation queries', () => {
  let bed: TestBed;
  let db: Firestore;
  before(async () => {
    bed = await testBed();
    db = bed.db;
    const batch = db.batch();
    const rows: Record<string, object> = {
      a: { n: 1, price: { net: 1.5 }, tag: 'x' },
      b: { n: 2, price: { net: 2 }, tag: 'y' },
      c: { n: 3, tag: 'z' },
      d: { n: 'four', price: { net: null } },
      e: { other: true },
    };
    for (const [id, row] of Object.entries(rows)) batch.set(db.doc(`rows/${id}`), row);
    await batch.commit();
  });
  after(() => bed.close());

  const rows = (): Query => db.collection('rows');
  const data = async (query: Query, fields: Record<string, AggregateField<number | null>>) =>
    (await query.aggregate(fields).get()).data();
  /** The values as they are on the wire. */
  async function wire(aggregations: readonly object[], query: object = {}, more: object = {}) {
    const structuredQuery = { from: [{ collectionId: 'rows' }], ...query };
    const structuredAggregationQuery = { structuredQuery, aggregations };
    const [answer] = await bed.call('RunAggregationQuery', { parent, structuredAggregationQuery, ...more });
    assert.ok(answer !== undefined);
    const { aggregateFields } = answer['result'] as Answer;
    return { answer, fields: aggregateFields as Record<string, Record<string, unknown>> };
  }
  const plain = (fields: Record<string, Record<string, unknown>>) =>
    Object.fromEntries(
      Object.entries(fields).map(([alias, value]) => [
        alias,
        `${String(value['valueType'])} ${String(value[String(value['valueType'])])}`,
      ]),
    );

  test('count whatever the query finds: filters, OR, limits, offsets, cursors, groups', async () => {
    const count = async (query: Query) => (await query.count().get()).data().count;
    assert.equal(await count(rows()), 5);
    assert.equal(await count(rows().where('n', '>', 1)), 2);
    assert.equal(
      await count(rows().where(Filter.or(Filter.where('n', '==', 1), Filter.where('tag', '==', 'z')))),
      2,
    );
    assert.equal(await count(rows().limit(3)), 3);
    assert.equal(await count(rows().offset(4)), 1);
    assert.equal(await count(rows().orderBy('n').startAfter(1).endAt(3)), 2);
    assert.equal(await count(rows().orderBy('n').limitToLast(2)), 2);
    assert.equal(await count(db.collectionGroup('rows')), 5);
    assert.equal(await count(db.collection('none')), 0);
  });

  test('sum and average numbers only, also in nested fields, over what a limit leaves', async () => {
    const fields = { sum: AggregateField.sum('n'), average: AggregateField.average('n') };
    assert.deepEqual(await data(rows(), fields), { sum: 6, average: 2 });
    assert.deepEqual(await data(rows().orderBy('n', 'desc').where('n', '<', 9).limit(2), fields), {
      sum: 5,
      average: 2.5,
    });
    const nested = { sum: AggregateField.sum('price.net'), average: AggregateField.average('price.net') };
    assert.deepEqual(await data(rows(), nested), { sum: 3.5, average: 1.75 });
    assert.deepEqual(await data(rows().where('tag', '==', 'none'), fields), { sum: 0, average: null });
  });

  test('take in only the documents that have every aggregated field', async () => {
    const fields = { count: AggregateField.count(), sum: AggregateField.sum('n') };
    assert.deepEqual(await data(rows(), fields), { count: 4, sum: 6 });
    const both = { ...fields, net: AggregateField.sum('price.net') };
    assert.deepEqual(await data(rows(), both), { count: 3, sum: 3, net: 3.5 });
    assert.deepEqual(await data(rows().limit(2), { sum: AggregateField.sum('price.net') }), { sum: 3.5 });
  });

  test('answer the documented types: integer, double on overflow or mixture, NaN, null for the average of nothing', async () => {
    const big = db.collection('big');
    await big
      .doc('a')
      .set({ n: 9_007_199_254_740_993n, mixed: 1, odd: Number.NaN, far: Number.POSITIVE_INFINITY });
    await big.doc('b').set({ n: 9_223_372_036_854_775_807n, mixed: 0.5, odd: 1, far: 1 });
    const ask = async (collectionId: string, ...aggregations: object[]) =>
      plain((await wire(aggregations, { from: [{ collectionId }] })).fields);
    assert.deepEqual(
      await ask(
        'big',
        { sum: over('mixed'), alias: 'm' },
        { sum: over('odd'), alias: 'o' },
        { avg: over('far'), alias: 'f' },
      ),
      { m: 'doubleValue 1.5', o: 'doubleValue NaN', f: 'doubleValue Infinity' },
    );
    assert.deepEqual(await ask('big', { sum: over('n'), alias: 's' }), {
      s: `doubleValue ${2 ** 63 + 2 ** 53}`,
    });
    await big.doc('b').set({ n: 1 });
    assert.deepEqual(await ask('big', { sum: over('n') }, { avg: over('n') }), {
      field_1: 'integerValue 9007199254740994',
      field_2: `doubleValue ${(2 ** 53 + 2) / 2}`,
    });
    assert.deepEqual(await ask('none', { sum: over('n') }, { avg: over('n') }, { count: {} }), {
      field_1: 'integerValue 0',
      field_2: 'nullValue NULL_VALUE',
      field_3: 'integerValue 0',
    });
  });

  test('count up to a bound, and name what has no alias', async () => {
    const counts = [
      { count: { upTo: { value: 2 } }, alias: 'two' },
      { count: { upTo: { value: 3 } } },
      { count: { upTo: { value: 9 } } },
      { count: {} },
    ];
    assert.deepEqual(plain((await wire(counts)).fields), {
      two: 'integerValue 2',
      field_1: 'integerValue 3',
      field_2: 'integerValue 5',
      field_3: 'integerValue 5',
    });
  });

  test('refuse what is not allowed, by name', async () => {
    const refused: [readonly object[], RegExp][] = [
      [[], /1 to 5 aggregations/],
      [Array.from({ length: 6 }, () => ({ count: {} })), /1 to 5 aggregations/],
      [[{ count: { upTo: { value: 0 } } }], /up_to is 0/],
      [
        [
          { count: {}, alias: 'a' },
          { count: {}, alias: 'a' },
        ],
        /not all different/,
      ],
      [[{ sum: {} }], /must name its field/],
      [[{ sum: over('__name__') }], /may not be over __name__/],
      [[{}], /aggregation \(not set\)/],
      [[{ count: {}, alias: '__a__' }], /reserved/],
    ];
    for (const [aggregations, details] of refused) {
      await assert.rejects(wire(aggregations), { code: INVALID_ARGUMENT, details });
    }
  });

  test('sum and average doubles as if they had been added exactly, in whatever order they come', async () => {
    const prices = [4.8, 5.9, 6, 7.1, 8.2];
    for (const [name, order] of Object.entries({ up: prices, down: prices.toReversed() })) {
      for (const [n, price] of order.entries()) await db.doc(`prices-${name}/${n}`).set({ price });
      const query = db.collection(`prices-${name}`);
      assert.deepEqual(
        await data(query, { sum: AggregateField.sum('price'), average: AggregateField.average('price') }),
        { sum: 32, average: 6.4 },
      );
    }
  });

  test('hold a sum still in a transaction: what would change it waits for the commit', async () => {
    const order: string[] = [];
    const stock = db.collection('stock');
    await stock.doc('a').set({ n: 1 });
    let written: Promise<unknown> = Promise.resolve();
    const seen = await db.runTransaction(async (transaction) => {
      const query = stock.where('n', '>', 0).aggregate({ total: AggregateField.sum('n') });
      const { total } = (await transaction.get(query)).data();
      written = stock
        .doc('b')
        .set({ n: 5 })
        .then(() => order.push('write'));
      await until(() => bed.server.stats().waitingRequests === 1, 'the write waits');
      transaction.set(stock.doc('total'), { total });
      order.push('commit');
      return total;
    });
    await written;
    assert.equal(seen, 1);
    assert.deepEqual(order, ['commit', 'write']);
  });

  test('begin a transaction in the first answer, and read at a read time', async () => {
    const began = await wire([{ count: {} }], {}, { newTransaction: { readWrite: {} } });
    const transaction = began.answer['transaction'] as Buffer;
    assert.ok(transaction.length > 0);
    assert.equal(bed.server.stats().openTransactions, 1);
    await bed.call('Rollback', { database, transaction });
    const { readTime } = began.answer;
    assert.deepEqual((await wire([{ count: {} }], {}, { readTime })).answer['readTime'], readTime);
  });
});
