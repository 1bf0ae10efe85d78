import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type DocumentReference,
  FieldValue,
  type Firestore,
  type Transaction,
} from '@google-cloud/firestore';
import { turnsDuring } from '../spent.ts';
import { until } from '../until.ts';
import { type TestBed, testBed } from './testing.ts';

const ABORTED = 10;
const numberIn = (data: FirebaseFirestore.DocumentData | undefined): number => Number(data?.['n'] ?? 0);

/** A promise and the means to keep others waiting for it. */
function gate(): { opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

async function increment(db: Firestore, ref: DocumentReference): Promise<void> {
  await db.runTransaction(async (tx) => {
    tx.set(ref, { n: numberIn((await tx.get(ref)).data()) + 1 });
  });
}

/** So that transactions that begin together overlap. */
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 60));

describe('transactions', () => {
  let bed: TestBed;
  let db: Firestore;
  before(async () => {
    bed = await testBed();
    db = bed.db;
  });
  after(async () => {
    // The client does not wait for its last rollbacks.
    await until(() => bed.server.stats().openTransactions <= 1);
    const { openTransactions, heldLocks, waitingRequests } = bed.server.stats();
    await bed.close();
    // The client never ends a read-only transaction: it expires.
    assert.deepEqual([openTransactions, heldLocks, waitingRequests], [1, 0, 0]);
  });

  test('let 20 clients increment one counter 20 times each without losing or refusing one', async () => {
    let attempts = 0;
    const clients = Array.from({ length: 20 }, () => bed.client());
    await Promise.all(
      clients.map(async (client) => {
        const ref = client.doc('counters/contended');
        for (let i = 0; i < 20; i++) {
          await client.runTransaction(async (tx) => {
            attempts += 1;
            tx.set(ref, { n: numberIn((await tx.get(ref)).data()) + 1 });
          });
        }
      }),
    );
    assert.equal(numberIn((await db.doc('counters/contended').get()).data()), 400);
    // They share what they read, and meet at the commit, where the younger ones have to try again.
    assert.ok(attempts >= 400, `${attempts} attempts`);
  });

  test('read one document at the same time, also where each waits for all the others', async () => {
    const all = gate();
    let inside = 0;
    const ref = db.doc('counters/shared');
    const look = (): Promise<void> =>
      db.runTransaction(async (tx) => {
        await tx.get(ref);
        await tx.get(db.collection('counters').where('n', '>', 0));
        inside += 1;
        if (inside === 10) all.open();
        await all.opened;
      });
    await Promise.all(Array.from({ length: 10 }, look));
    assert.equal(inside, 10, 'none had to try again');
  });

  test('give each of 60 jobs to exactly one of 10 workers that take the first of a query', async () => {
    const jobs = db.collection('jobs');
    const batch = db.batch();
    for (let i = 0; i < 60; i++) batch.set(jobs.doc(`job-${i}`), { state: 'ready', number: i });
    await batch.commit();
    const claims: string[] = [];
    const work = async (worker: Firestore): Promise<void> => {
      const query = worker.collection('jobs').where('state', '==', 'ready').limit(1);
      for (let i = 0; i < 61; i++) {
        const id = await worker.runTransaction(async (tx) => {
          const job = (await tx.get(query)).docs[0];
          if (job !== undefined) tx.update(job.ref, { state: 'claimed' });
          return job?.id;
        });
        if (id === undefined) return;
        claims.push(id);
      }
    };
    await Promise.all(Array.from({ length: 10 }, () => work(bed.client())));
    assert.equal(claims.length, 60);
    assert.equal(new Set(claims).size, 60);
  });

  test('keep phantoms out: an insert into a range that a transaction read waits for it', async () => {
    const range = db
      .collection('bookings')
      .where('room', '==', 'r1')
      .where('hour', '>=', 9)
      .where('hour', '<', 12);
    const [looked, others] = [gate(), gate()];
    const order: string[] = [];
    const booked = db.runTransaction(async (tx) => {
      const found = await tx.get(range);
      looked.open();
      await others.opened;
      if (found.empty) tx.create(db.doc('bookings/mine'), { room: 'r1', hour: 10 });
      order.push('transaction');
      return found.empty;
    });
    await looked.opened;
    const elsewhere = db.doc('bookings/other-room').set({ room: 'r2', hour: 10 });
    await elsewhere;
    assert.equal(order.length, 0, 'an insert outside the range does not wait');
    const inserted = db
      .doc('bookings/theirs')
      .set({ room: 'r1', hour: 11 })
      .then(() => order.push('insert'));
    await until(() => bed.server.stats().waitingRequests === 1);
    others.open();
    assert.equal(await booked, true);
    await inserted;
    assert.deepEqual(order, ['transaction', 'insert']);
  });

  test('let one of two transactions that both found a range empty see the other one', async () => {
    const range = db.collection('slots').where('hour', '==', 9);
    let attempts = 0;
    const book = (name: string): Promise<boolean> =>
      db.runTransaction(async (tx) => {
        attempts += 1;
        const found = await tx.get(range);
        await settled();
        if (found.empty) tx.create(db.collection('slots').doc(name), { hour: 9 });
        return found.empty;
      });
    const results = await Promise.all([book('a'), book('b'), book('c')]);
    assert.equal(results.filter(Boolean).length, 1);
    assert.equal((await range.get()).size, 1);
    assert.ok(attempts >= 3, `${attempts} attempts`);
  });

  test('refuse write skew on documents that are missing', async () => {
    const [mine, theirs] = [db.doc('on-call/alice'), db.doc('on-call/bob')];
    const leave = (own: DocumentReference): Promise<void> =>
      db.runTransaction(async (tx) => {
        const [a, b] = await tx.getAll(mine, theirs);
        await settled();
        if (a?.exists !== true && b?.exists !== true) tx.create(own, { left: true });
      });
    await Promise.all([leave(mine), leave(theirs)]);
    const left = await db.getAll(mine, theirs);
    assert.equal(left.filter((doc) => doc.exists).length, 1);
  });

  test('finish both of two transactions that read in crossing order', async () => {
    const [x, y] = [db.doc('crossing/x'), db.doc('crossing/y')];
    const bothRead = gate();
    let first = 0;
    let attempts = 0;
    const cross = async (tx: Transaction, from: DocumentReference, to: DocumentReference): Promise<void> => {
      attempts += 1;
      const a = numberIn((await tx.get(from)).data());
      first += 1;
      if (first === 2) bothRead.open();
      await bothRead.opened;
      const b = numberIn((await tx.get(to)).data());
      tx.set(from, { n: a + 1 });
      tx.set(to, { n: b + 1 });
    };
    const turns = await turnsDuring(() =>
      Promise.all([db.runTransaction((tx) => cross(tx, x, y)), db.runTransaction((tx) => cross(tx, y, x))]),
    );
    assert.equal(attempts, 3, 'one of them had to try again, once');
    assert.ok(turns < 5_000, 'refused at once, not after a lock wait');
    assert.deepEqual(
      (await db.getAll(x, y)).map((doc) => numberIn(doc.data())),
      [2, 2],
    );
  });

  test('end the loser of a deadlock with ABORTED when it may not try again', async () => {
    const [x, y] = [db.doc('loser/x'), db.doc('loser/y')];
    const bothRead = gate();
    let first = 0;
    const cross = (from: DocumentReference, to: DocumentReference): Promise<void> =>
      db.runTransaction(
        async (tx) => {
          await tx.get(from);
          first += 1;
          if (first === 2) bothRead.open();
          await bothRead.opened;
          await tx.get(to);
          tx.set(to, { n: 1 });
        },
        { maxAttempts: 1 },
      );
    const results = await Promise.allSettled([cross(x, y), cross(y, x)]);
    const codes = results.map((result) =>
      result.status === 'rejected' ? (result.reason as { code: number }).code : 0,
    );
    assert.deepEqual(
      codes.sort((a, b) => a - b),
      [0, ABORTED],
    );
  });

  test('make a plain write wait for a transaction that read the document, and a plain read not', async () => {
    const ref = db.doc('waiting/doc');
    await ref.set({ n: 1 });
    const order: string[] = [];
    const read = gate();
    const transaction = db.runTransaction(async (tx) => {
      const n = numberIn((await tx.get(ref)).data());
      read.open();
      await until(() => bed.server.stats().waitingRequests === 1);
      assert.equal(numberIn((await ref.get()).data()), 1);
      tx.update(ref, { n: n + 1 });
      order.push('transaction');
    });
    await read.opened;
    const write = ref.update({ n: FieldValue.increment(10) }).then(() => order.push('write'));
    await Promise.all([transaction, write]);
    assert.deepEqual(order, ['transaction', 'write']);
    assert.equal(numberIn((await ref.get()).data()), 12);
  });

  test('take more reads at a time and free everything when the function throws', async () => {
    const refs = Array.from({ length: 5 }, (_, i) => db.doc(`many/${i}`));
    await assert.rejects(
      db.runTransaction(async (tx) => {
        await Promise.all(refs.map((ref) => tx.get(ref)));
        throw new Error('changed my mind');
      }),
      /changed my mind/,
    );
    await Promise.all(refs.map((ref) => increment(db, ref)));
    assert.equal(numberIn((await db.doc('many/4').get()).data()), 1);
  });

  test('free the locks of a commit that fails', async () => {
    const ref = db.doc('failing/doc');
    const failing = db.runTransaction(async (tx) => {
      await tx.get(ref);
      tx.update(ref, { n: 1 });
    });
    await assert.rejects(failing, { code: 5 });
    await ref.set({ n: 5 });
    assert.equal(numberIn((await ref.get()).data()), 5);
  });

  test('show a read-only transaction one moment, and let writers go on', async () => {
    const [a, b] = [db.doc('snapshot/a'), db.doc('snapshot/b')];
    await Promise.all([a.set({ n: 1 }), b.set({ n: 1 })]);
    const seen = await db.runTransaction(
      async (tx) => {
        const first = numberIn((await tx.get(a)).data());
        const batch = db.batch();
        batch.delete(a).set(b, { n: 2 }).set(db.doc('snapshot/c'), { n: 2 });
        await batch.commit();
        const second = numberIn((await tx.get(b)).data());
        const all = await tx.get(db.collection('snapshot'));
        return [first, second, all.docs.map((doc) => [doc.id, numberIn(doc.data())])];
      },
      { readOnly: true },
    );
    assert.deepEqual(seen, [
      1,
      1,
      [
        ['a', 1],
        ['b', 1],
      ],
    ]);
    assert.deepEqual(
      (await db.collection('snapshot').get()).docs.map((doc) => doc.id),
      ['b', 'c'],
    );
  });
});
