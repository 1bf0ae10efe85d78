/** Commit: what writes do, what they demand of the document before, and all or nothing. */
import assert from 'node:assert/strict';
import { FieldValue } from '@google-cloud/firestore';
import { accepted, atOnce, type FirestoreCase, of, refused } from '../expect.ts';
import { CODES, COMMIT, QUOTAS } from '../sources.ts';

const make = of('Writes');

export const writeCases: readonly FirestoreCase[] = [
  make('set replaces all fields', COMMIT, async ({ db }) => {
    await db.doc('c/a').set({ a: 1, b: 2 });
    await db.doc('c/a').set({ c: 3 });
    assert.deepEqual((await db.doc('c/a').get()).data(), { c: 3 });
  }),
  make('set with merge keeps what it does not name, also within maps', COMMIT, async ({ db }) => {
    await db.doc('c/a').set({ a: 1, m: { x: 1, y: 2 } });
    await db.doc('c/a').set({ b: 2, m: { y: 5 } }, { merge: true });
    assert.deepEqual((await db.doc('c/a').get()).data(), { a: 1, b: 2, m: { x: 1, y: 5 } });
  }),
  make('update changes nested fields by their paths', COMMIT, async ({ db }) => {
    await db.doc('c/a').set({ m: { x: 1, y: { z: 2 } } });
    await db.doc('c/a').update({ 'm.y.z': 5, 'm.new.deep': true });
    assert.deepEqual((await db.doc('c/a').get()).data(), { m: { x: 1, y: { z: 5 }, new: { deep: true } } });
  }),
  make('A field in the mask that the document does not give is deleted', COMMIT, async ({ db }) => {
    await db.doc('c/a').set({ a: 1, m: { x: 1, y: 2 } });
    await db.doc('c/a').update({ a: FieldValue.delete(), 'm.x': FieldValue.delete() });
    assert.deepEqual((await db.doc('c/a').get()).data(), { m: { y: 2 } });
  }),
  make('update of a missing document answers NOT_FOUND', CODES, async ({ db }) => {
    await refused(db.doc('c/a').update({ a: 1 }), 'NOT_FOUND', 'a missing document');
  }),
  make('create of a document that exists answers ALREADY_EXISTS', CODES, async ({ db }) => {
    await db.doc('c/a').create({ a: 1 });
    await refused(db.doc('c/a').create({ a: 2 }), 'ALREADY_EXISTS', 'a document that exists');
    assert.deepEqual((await db.doc('c/a').get()).data(), { a: 1 });
  }),
  make('Of 50 that create the same document at once one does', CODES, async ({ db }) => {
    const codes = await atOnce(50, (i) =>
      db
        .doc('c/a')
        .create({ i })
        .then(
          () => 0,
          ({ code }: { code: number }) => code,
        ),
    );
    assert.equal(codes.filter((code) => code === 0).length, 1);
    assert.equal(
      codes.filter((code) => code === 6).length,
      49,
      `the codes are ${[...new Set(codes)].join()}`,
    );
  }),
  make(
    'update with the update time of another version answers FAILED_PRECONDITION',
    CODES,
    async ({ db }) => {
      const { writeTime } = await db.doc('c/a').set({ a: 1 });
      await db.doc('c/a').set({ a: 2 });
      const stale = db.doc('c/a').update({ a: 3 }, { lastUpdateTime: writeTime });
      await refused(stale, 'FAILED_PRECONDITION', 'an old update time');
      assert.deepEqual((await db.doc('c/a').get()).data(), { a: 2 });
    },
  ),
  make('update with the update time of the present version is done', COMMIT, async ({ db }) => {
    const { writeTime } = await db.doc('c/a').set({ a: 1 });
    await accepted(db.doc('c/a').update({ a: 3 }, { lastUpdateTime: writeTime }), 'the present update time');
  }),
  make(
    'delete with the update time of another version answers FAILED_PRECONDITION',
    CODES,
    async ({ db }) => {
      const { writeTime } = await db.doc('c/a').set({ a: 1 });
      await db.doc('c/a').set({ a: 2 });
      const stale = db.doc('c/a').delete({ lastUpdateTime: writeTime });
      await refused(stale, 'FAILED_PRECONDITION', 'an old update time');
    },
  ),
  make('delete of a missing document that must exist answers NOT_FOUND', CODES, async ({ db }) => {
    await refused(db.doc('c/a').delete({ exists: true }), 'NOT_FOUND', 'a missing document');
  }),
  make('delete of a missing document is done', COMMIT, async ({ db }) => {
    await accepted(db.doc('c/a').delete(), 'the delete');
  }),
  make('A commit is applied as a whole or not at all', COMMIT, async ({ db }) => {
    const batch = db.batch();
    batch.set(db.doc('c/a'), { a: 1 });
    batch.update(db.doc('c/missing'), { a: 1 });
    await refused(batch.commit(), 'NOT_FOUND', 'a batch with a write that fails');
    assert.equal((await db.doc('c/a').get()).exists, false);
  }),
  make('The writes of a commit are applied in order, also to one document', COMMIT, async ({ db }) => {
    const batch = db.batch();
    batch.set(db.doc('c/a'), { a: 1 });
    batch.update(db.doc('c/a'), { b: 2 });
    batch.delete(db.doc('c/b'));
    batch.create(db.doc('c/b'), { n: FieldValue.increment(4) });
    await accepted(batch.commit(), 'the batch');
    assert.deepEqual((await db.doc('c/a').get()).data(), { a: 1, b: 2 });
    assert.deepEqual((await db.doc('c/b').get()).data(), { n: 4 });
  }),
  make('Update times are in microseconds and grow with every commit', COMMIT, async ({ db }) => {
    const times: bigint[] = [];
    for (let i = 0; i < 20; i += 1) {
      const { writeTime } = await db.doc('c/a').set({ i });
      times.push(BigInt(writeTime.seconds) * 1_000_000_000n + BigInt(writeTime.nanoseconds));
    }
    assert.ok(
      times.every((time) => time % 1_000n === 0n),
      'a time is finer than a microsecond',
    );
    assert.ok(
      times.every((time, i) => i === 0 || time > (times[i - 1] ?? 0n)),
      'a time does not grow',
    );
  }),
  make('A write that changes nothing keeps the update time', COMMIT, async ({ db }) => {
    const { writeTime } = await db.doc('c/a').set({ a: 1 });
    const again = await db.doc('c/a').set({ a: 1 });
    assert.ok(again.writeTime.isEqual(writeTime), 'the update time changed');
  }),
  make('The update time of a delete is not set', COMMIT, async ({ commit, doc }) => {
    const { writeResults } = await commit({ delete: doc('c/a') });
    assert.equal(writeResults[0]?.updateTime ?? null, null);
  }),
  make('A commit without writes is accepted', COMMIT, async ({ commit }) => {
    const { writeResults } = await accepted(commit(), 'a commit without writes');
    assert.equal(writeResults.length, 0);
  }),
  make('More than 500 writes in one commit are accepted', QUOTAS, async ({ db }) => {
    const batch = db.batch();
    for (let i = 0; i < 501; i += 1) batch.set(db.doc(`c/${i}`), { i });
    await accepted(batch.commit(), '501 writes');
    assert.equal((await db.collection('c').count().get()).data().count, 501);
  }),
  make('A write without an operation answers INVALID_ARGUMENT', COMMIT, async ({ commit }) => {
    await refused(commit({}), 'INVALID_ARGUMENT', 'a write without an operation');
  }),
  make('A write to another database answers INVALID_ARGUMENT', COMMIT, async ({ commit, project }) => {
    const name = `projects/${project}/databases/other/documents/c/a`;
    await refused(
      commit({ update: { name, fields: {} } }),
      'INVALID_ARGUMENT',
      'a document of another database',
    );
  }),
  make('An update mask with a delete answers INVALID_ARGUMENT', COMMIT, async ({ commit, doc }) => {
    const write = { delete: doc('c/a'), updateMask: { fieldPaths: ['a'] } };
    await refused(commit(write), 'INVALID_ARGUMENT', 'a mask with a delete');
  }),
];
