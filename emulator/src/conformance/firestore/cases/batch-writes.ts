/** BatchWrite, and what the client does by it. */
import assert from 'node:assert/strict';
import type { Timestamp } from '@google-cloud/firestore';
import { accepted, type FirestoreCase, int, of, refused } from '../expect.ts';
import { METHODS, TRANSACTIONS } from '../sources.ts';

const make = of('Batch writes');
const wire = (time: Timestamp): object => ({ seconds: String(time.seconds), nanos: time.nanoseconds });
type Outcome = Readonly<{ status: readonly Readonly<{ code: number }>[]; writeResults: readonly unknown[] }>;

export const batchWriteCases: readonly FirestoreCase[] = [
  make('BatchWrite does each write by itself', METHODS, async ({ db, one, database, doc }) => {
    await db.doc('c/a').set({ a: 1 });
    const writes = [
      { update: { name: doc('c/a'), fields: {} }, currentDocument: { exists: false } },
      { update: { name: doc('c/b'), fields: { n: int(1) } } },
    ];
    const { status, writeResults } = (await one('BatchWrite', { database, writes })) as Outcome;
    assert.deepEqual(
      status.map(({ code }) => code),
      [6, 0],
    );
    assert.equal(writeResults.length, 2);
    assert.equal((await db.doc('c/b').get()).exists, true);
  }),
  make(
    'BatchWrite answers NOT_FOUND and FAILED_PRECONDITION for the writes concerned',
    METHODS,
    async (world) => {
      const { writeTime } = await world.db.doc('c/a').set({ a: 1 });
      await world.db.doc('c/a').set({ a: 2 });
      const writes = [
        { update: { name: world.doc('c/none'), fields: {} }, currentDocument: { exists: true } },
        { update: { name: world.doc('c/a'), fields: {} }, currentDocument: { updateTime: wire(writeTime) } },
      ];
      const { status } = (await world.one('BatchWrite', { database: world.database, writes })) as Outcome;
      assert.deepEqual(
        status.map(({ code }) => code),
        [5, 9],
      );
    },
  ),
  make(
    'BatchWrite with two writes of one document answers INVALID_ARGUMENT',
    METHODS,
    async ({ one, database, doc }) => {
      const writes = [1, 2].map((n) => ({ update: { name: doc('c/a'), fields: { n: int(n) } } }));
      await refused(
        one('BatchWrite', { database, writes }),
        'INVALID_ARGUMENT',
        'two writes of one document',
      );
    },
  ),
  make(
    'The client’s BulkWriter writes 500 documents and reports the one that exists',
    METHODS,
    async ({ db }) => {
      await db.doc('c/7').set({ i: -1 });
      const writer = db.bulkWriter();
      const codes: number[] = [];
      writer.onWriteError(() => false);
      for (let i = 0; i < 500; i += 1) {
        writer.create(db.doc(`c/${i}`), { i }).catch(({ code }: { code: number }) => codes.push(code));
      }
      await writer.close();
      assert.deepEqual(codes, [6]);
      assert.equal((await db.collection('c').count().get()).data().count, 500);
    },
  ),
  make('recursiveDelete deletes a document with all below it', TRANSACTIONS, async ({ db }) => {
    for (const path of ['c/a', 'c/a/s/1', 'c/a/s/1/t/2', 'c/ab/s/1']) await db.doc(path).set({});
    await accepted(db.recursiveDelete(db.doc('c/a')), 'recursiveDelete');
    assert.equal((await db.collectionGroup('s').get()).docs.map(({ ref }) => ref.path).join(), 'c/ab/s/1');
    assert.equal((await db.collectionGroup('t').get()).size, 0);
  }),
];
