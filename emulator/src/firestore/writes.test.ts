import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { FieldPath, FieldValue, type Firestore, GeoPoint, Timestamp } from '@google-cloud/firestore';
import { type TestBed, testBed } from './testing.ts';

const [INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION] = [3, 5, 6, 9];

describe('writes', () => {
  let bed: TestBed;
  let db: Firestore;
  before(async () => {
    bed = await testBed();
    db = bed.db;
  });
  after(() => bed.close());

  test('give back every type of value as it was written', async () => {
    const ref = db.doc('values/all');
    const value = {
      nothing: null,
      yes: true,
      integer: 9_007_199_254_740_991,
      double: 1.5,
      nan: Number.NaN,
      infinite: Number.NEGATIVE_INFINITY,
      negativeZero: -0,
      text: 'żółć 🐘',
      bytes: Buffer.from([0, 255, 128]),
      when: new Timestamp(1_700_000_000, 123_456_000),
      where: new GeoPoint(-12.5, 99),
      who: db.doc('users/u1'),
      list: [1, 'two', { three: [3] }],
      map: { nested: { deep: true }, constructor: 'a field like any other', 'with.dot': 1 },
      vector: FieldValue.vector([1, 2.5]),
    };
    await ref.set(value);
    const data = (await ref.get()).data() ?? {};
    assert.ok(Object.is(data['negativeZero'], -0));
    assert.ok((data['who'] as FirebaseFirestore.DocumentReference).isEqual(value.who));
    assert.deepEqual((data['vector'] as ReturnType<typeof FieldValue.vector>).toArray(), [1, 2.5]);
    const { who: _who, vector: _vector, ...rest } = value;
    const { who: _gotWho, vector: _gotVector, ...gotRest } = data;
    assert.deepEqual(gotRest, rest);
  });

  test('cut timestamps to microseconds', async () => {
    await db.doc('values/time').set({ at: new Timestamp(1, 999_999_999) });
    assert.deepEqual((await db.doc('values/time').get()).get('at'), new Timestamp(1, 999_999_000));
  });

  test('replace with set, keep the rest with merge, and delete fields', async () => {
    const ref = db.doc('masks/one');
    await ref.set({ a: 1, b: { c: 2, d: 3 } });
    await ref.set({ b: { c: 4 } }, { merge: true });
    assert.deepEqual((await ref.get()).data(), { a: 1, b: { c: 4, d: 3 } });
    await ref.update(
      new FieldPath('b', 'd'),
      FieldValue.delete(),
      'b.e.f',
      5,
      new FieldPath('odd.name', 'x`y'),
      6,
    );
    assert.deepEqual((await ref.get()).data(), { a: 1, b: { c: 4, e: { f: 5 } }, 'odd.name': { 'x`y': 6 } });
    await ref.set({ only: true });
    assert.deepEqual((await ref.get()).data(), { only: true });
  });

  test('apply several transforms in one write, in order, nested ones too', async () => {
    const ref = db.doc('transforms/one');
    await ref.set({ count: 1, tags: ['a', 'b', 'a'], deep: { n: 1 } });
    const { writeTime } = await ref.update({
      count: FieldValue.increment(2),
      half: FieldValue.increment(0.5),
      'deep.n': FieldValue.increment(41),
      tags: FieldValue.arrayUnion('c', 'a', 'c'),
      fresh: FieldValue.arrayUnion(1, 1.0, 2),
      gone: FieldValue.arrayRemove('x'),
      at: FieldValue.serverTimestamp(),
    });
    const doc = await ref.get();
    assert.deepEqual(doc.data(), {
      count: 3,
      half: 0.5,
      deep: { n: 42 },
      tags: ['a', 'b', 'a', 'c'],
      fresh: [1, 2],
      gone: [],
      at: writeTime,
    });
    assert.ok(doc.updateTime?.isEqual(writeTime));
    await ref.update({ tags: FieldValue.arrayRemove('a') });
    assert.deepEqual((await ref.get()).get('tags'), ['b', 'c']);
  });

  test('saturate an integer sum', async () => {
    const ref = db.doc('transforms/large');
    const precise = bed.client();
    precise.settings({ useBigInt: true });
    await precise.doc(ref.path).set({ n: 9_223_372_036_854_775_000n });
    await ref.update({ n: FieldValue.increment(9_000_000_000_000_000) });
    assert.equal((await precise.doc(ref.path).get()).get('n'), 9_223_372_036_854_775_807n);
  });

  test('answer each failed precondition with its own code', async () => {
    const ref = db.doc('preconditions/one');
    await assert.rejects(ref.update({ n: 1 }), { code: NOT_FOUND });
    const first = await ref.create({ n: 1 });
    await assert.rejects(ref.create({ n: 2 }), { code: ALREADY_EXISTS });
    const second = await ref.update({ n: 2 }, { lastUpdateTime: first.writeTime });
    await assert.rejects(ref.update({ n: 3 }, { lastUpdateTime: first.writeTime }), {
      code: FAILED_PRECONDITION,
    });
    await assert.rejects(ref.delete({ lastUpdateTime: first.writeTime }), { code: FAILED_PRECONDITION });
    await ref.delete({ lastUpdateTime: second.writeTime });
    await assert.rejects(ref.delete({ exists: true }), { code: NOT_FOUND });
    await ref.delete();
    assert.equal((await ref.get()).exists, false);
  });

  test('leave nothing of a commit in which one write fails', async () => {
    const batch = db.batch();
    batch
      .set(db.doc('atomic/a'), { n: 1 })
      .update(db.doc('atomic/missing'), { n: 1 })
      .set(db.doc('atomic/b'), { n: 1 });
    await assert.rejects(batch.commit(), { code: NOT_FOUND });
    assert.equal((await db.collection('atomic').get()).size, 0);
  });

  test('let one of fifty creates of a document win', async () => {
    const results = await Promise.allSettled(
      Array.from({ length: 50 }, (_, i) => db.doc('race/one').create({ i })),
    );
    const codes = results.map((result) =>
      result.status === 'fulfilled' ? 0 : (result.reason as { code: number }).code,
    );
    assert.equal(codes.filter((code) => code === 0).length, 1);
    assert.equal(codes.filter((code) => code === ALREADY_EXISTS).length, 49);
  });

  test('give every commit a later time, the same one to all its writes', async () => {
    const times: bigint[] = [];
    for (let i = 0; i < 20; i++) {
      const batch = db.batch();
      batch.set(db.doc('times/a'), { i }).set(db.doc('times/b'), { i });
      const [a, b] = await batch.commit();
      assert.ok(a !== undefined && b?.isEqual(a) === true);
      times.push(BigInt(a.writeTime.seconds) * 1_000_000_000n + BigInt(a.writeTime.nanoseconds));
      const read = await db.doc('times/a').get();
      assert.ok(read.readTime.valueOf() >= a.writeTime.valueOf());
    }
    assert.deepEqual(
      times,
      [...new Set(times)].sort((a, b) => (a < b ? -1 : 1)),
    );
  });

  test('keep the update time of a document that a write leaves as it was', async () => {
    const ref = db.doc('empty-updates/one');
    const first = await ref.set({ n: 1 });
    const same = await ref.set({ n: 1 });
    assert.ok(same.writeTime.isEqual(first.writeTime));
    const changed = await ref.set({ n: 1.5 });
    assert.ok(changed.writeTime.valueOf() > first.writeTime.valueOf());
  });

  test('write in bulk, each write by itself', async () => {
    await db.doc('bulk/3').set({ taken: true });
    const writer = db.bulkWriter();
    writer.onWriteError(() => false);
    const failures: number[] = [];
    for (let i = 0; i < 50; i++) {
      writer.create(db.doc(`bulk/${i}`), { i }).catch((error: { code: number }) => failures.push(error.code));
    }
    await writer.close();
    assert.deepEqual(failures, [ALREADY_EXISTS]);
    assert.equal((await db.collection('bulk').get()).size, 50);
  });

  test('delete a tree of collections', async () => {
    await Promise.all([db.doc('tree/a').set({}), db.doc('tree/a/b/c').set({}), db.doc('trees/x').set({})]);
    assert.deepEqual(
      (await db.doc('tree/a').listCollections()).map(({ id }) => id),
      ['b'],
    );
    await db.recursiveDelete(db.collection('tree'));
    assert.equal((await db.doc('tree/a/b/c').get()).exists, false);
    assert.equal((await db.doc('trees/x').get()).exists, true);
  });

  test('refuse what the service refuses', async () => {
    const set = (path: string, data: object): Promise<unknown> => db.doc(path).set(data);
    await assert.rejects(set('limits/large', { text: 'x'.repeat(1_048_576) }), { code: INVALID_ARGUMENT });
    await assert.rejects(
      set('limits/large', { a: 'x'.repeat(600_000), b: 'x'.repeat(600_000) }),
      /exceeds the maximum/,
    );
    await assert.rejects(set('limits/__reserved__', {}), { code: INVALID_ARGUMENT });
    await assert.rejects(set('limits/field', { __reserved__: 1 }), { code: INVALID_ARGUMENT });
    await assert.rejects(set('limits/array', { list: Array.from({ length: 1 }, () => [1]) }), /array/);
    const batch = db.batch();
    for (let i = 0; i < 12; i++) batch.set(db.doc(`limits/${i}`), { data: Buffer.alloc(1_000_000) });
    await assert.rejects(batch.commit(), /payload size exceeds/);
    const transforms = Object.fromEntries(
      Array.from({ length: 501 }, (_, i) => [`f${i}`, FieldValue.increment(1)]),
    );
    await assert.rejects(set('limits/transforms', transforms), /500 field transforms/);
    assert.equal((await db.collection('limits').get()).size, 0);
  });

  test('keep projects and databases apart', async () => {
    await db.doc('apart/one').set({ n: 1 });
    assert.equal((await bed.client('another-project').doc('apart/one').get()).exists, false);
    assert.equal((await bed.client('test-project', 'second').doc('apart/one').get()).exists, false);
    assert.equal((await bed.client().doc('apart/one').get()).exists, true);
  });

  test('forget everything on clear', async () => {
    await db.doc('cleared/one').set({ n: 1 });
    bed.server.clear();
    assert.equal((await db.doc('cleared/one').get()).exists, false);
    assert.equal(bed.server.stats().documents, 0);
  });
});
