/** Transactions, one at a time: what they see, how they end, and what their calls answer. */
import assert from 'node:assert/strict';
import { accepted, type FirestoreCase, of, refused } from '../expect.ts';
import { METHODS, QUOTAS, TRANSACTIONS } from '../sources.ts';
import { begin, commit, read, rollback, setting } from '../transaction.ts';

const make = of('Transactions');

export const transactionCases: readonly FirestoreCase[] = [
  make('A transaction reads, then writes what it read plus one', TRANSACTIONS, async ({ db }) => {
    await db.doc('c/a').set({ n: 1 });
    await db.runTransaction(async (transaction) => {
      const { n } = (await transaction.get(db.doc('c/a'))).data() ?? {};
      transaction.update(db.doc('c/a'), { n: n + 1 });
    });
    assert.equal((await db.doc('c/a').get()).get('n'), 2);
  }),
  make('Nothing of a transaction is seen before its commit', TRANSACTIONS, async (world) => {
    const transaction = await begin(world);
    await read(world, transaction, 'c/a');
    assert.equal((await world.db.doc('c/a').get()).exists, false);
    await commit(world, transaction, setting(world, 'c/a', 1), setting(world, 'c/b', 1));
    assert.equal((await world.db.collection('c').get()).size, 2);
  }),
  make('Nothing of a transaction whose function throws is kept', TRANSACTIONS, async ({ db }) => {
    const failing = db.runTransaction(async (transaction) => {
      transaction.set(db.doc('c/a'), { n: 1 });
      throw new Error('no');
    });
    await assert.rejects(failing, /no/);
    assert.equal((await db.doc('c/a').get()).exists, false);
  }),
  make('A write of a transaction that fails fails all of them', TRANSACTIONS, async ({ db }) => {
    const failing = db.runTransaction(async (transaction) => {
      transaction.set(db.doc('c/a'), { n: 1 });
      transaction.create(db.doc('c/b'), {});
      transaction.update(db.doc('c/none'), { n: 1 });
    });
    await refused(failing, 'NOT_FOUND', 'an update of a missing document');
    assert.equal((await db.collection('c').get()).size, 0);
  }),
  make('A transaction begins with its first read', METHODS, async (world) => {
    const { call, database, doc } = world;
    const request = { database, documents: [doc('c/a')], newTransaction: { readWrite: {} } };
    const answers = (await call('BatchGetDocuments', request)) as unknown as readonly Readonly<{
      transaction: Buffer;
    }>[];
    const transaction = answers.map((answer) => answer.transaction).find((id) => id?.length > 0);
    assert.ok(transaction, 'no answer had the transaction');
    await accepted(commit(world, transaction, setting(world, 'c/a', 1)), 'its commit');
  }),
  make('A query in a transaction sees what is committed', TRANSACTIONS, async ({ db }) => {
    await db.doc('c/a').set({ n: 1 });
    const size = await db.runTransaction(async (transaction) => {
      const { docs } = await transaction.get(db.collection('c').where('n', '>', 0).orderBy('n').limit(5));
      for (const { ref } of docs) transaction.update(ref, { seen: true });
      return docs.length;
    });
    assert.equal(size, 1);
    assert.equal((await db.doc('c/a').get()).get('seen'), true);
  }),
  make('An aggregation in a transaction is computed', TRANSACTIONS, async ({ db }) => {
    await db.doc('c/a').set({ n: 1 });
    const seen = await db.runTransaction(async (transaction) =>
      (await transaction.get(db.collection('c').count())).data(),
    );
    assert.equal(seen.count, 1);
  }),
  make(
    'A read-only transaction sees one state, whatever is written meanwhile',
    TRANSACTIONS,
    async (world) => {
      const { db } = world;
      await db.doc('c/a').set({ n: 1 });
      const seen = await db.runTransaction(
        async (transaction) => {
          const first = (await transaction.get(db.doc('c/a'))).get('n');
          await accepted(db.doc('c/a').set({ n: 2 }), 'the write');
          await db.doc('c/b').set({ n: 2 });
          return [
            first,
            (await transaction.get(db.doc('c/a'))).get('n'),
            (await transaction.get(db.collection('c'))).size,
          ];
        },
        { readOnly: true },
      );
      assert.deepEqual(seen, [1, 1, 1]);
    },
  ),
  make('A write in a read-only transaction answers INVALID_ARGUMENT', METHODS, async (world) => {
    const transaction = await begin(world, { readOnly: {} });
    await read(world, transaction, 'c/a');
    await refused(commit(world, transaction, setting(world, 'c/a', 1)), 'INVALID_ARGUMENT', 'a write');
  }),
  make('A commit after the rollback answers INVALID_ARGUMENT', METHODS, async (world) => {
    const transaction = await begin(world);
    await rollback(world, transaction);
    await refused(commit(world, transaction, setting(world, 'c/a', 1)), 'INVALID_ARGUMENT', 'the commit');
  }),
  make('A second commit of a transaction answers INVALID_ARGUMENT', METHODS, async (world) => {
    const transaction = await begin(world);
    await commit(world, transaction, setting(world, 'c/a', 1));
    await refused(
      commit(world, transaction, setting(world, 'c/a', 2)),
      'INVALID_ARGUMENT',
      'the second commit',
    );
  }),
  make('A read in a transaction that never was answers INVALID_ARGUMENT', METHODS, async (world) => {
    await refused(read(world, Buffer.from('nonsense'), 'c/a'), 'INVALID_ARGUMENT', 'the read');
  }),
  make('Rollback of a transaction that never was answers INVALID_ARGUMENT', METHODS, async (world) => {
    await refused(rollback(world, Buffer.from('nonsense')), 'INVALID_ARGUMENT', 'the rollback');
  }),
  make(
    'BeginTransaction in a name that is no database answers INVALID_ARGUMENT',
    METHODS,
    async ({ one }) => {
      await refused(one('BeginTransaction', { database: 'projects/p' }), 'INVALID_ARGUMENT', 'projects/p');
    },
  ),
  make('A retry names the transaction that it follows, and is done', METHODS, async (world) => {
    const first = await begin(world);
    await read(world, first, 'c/a');
    await rollback(world, first);
    const second = await begin(world, { readWrite: { retryTransaction: first } });
    await read(world, second, 'c/a');
    await accepted(commit(world, second, setting(world, 'c/a', 1)), 'the commit of the retry');
  }),
  make(
    'A transaction that is idle for 60 s has expired',
    QUOTAS,
    async (world) => {
      const transaction = await begin(world);
      await read(world, transaction, 'c/a');
      await world.pass(59_000);
      await read(world, transaction, 'c/a');
      await world.pass(61_000);
      const { details = '' } = await refused(
        commit(world, transaction, setting(world, 'c/a', 1)),
        'INVALID_ARGUMENT',
        'the commit',
      );
      assert.match(details, /transaction has expired/i);
      await accepted(world.db.doc('c/a').set({ n: 5 }), 'a write of what it had read');
    },
    'waits two minutes',
  ),
  make(
    'A transaction of more than 270 s has expired, although it was in use',
    QUOTAS,
    async (world) => {
      const transaction = await begin(world);
      for (let seconds = 0; seconds < 270; seconds += 45) {
        await accepted(read(world, transaction, 'c/a'), `a read after ${seconds} s`);
        await world.pass(45_000);
      }
      await world.pass(1_000);
      await refused(commit(world, transaction, setting(world, 'c/a', 1)), 'INVALID_ARGUMENT', 'the commit');
    },
    'waits 270 seconds',
  ),
];
