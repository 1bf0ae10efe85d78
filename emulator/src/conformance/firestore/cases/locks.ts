/** What waits for an open transaction, and what does not. */
import assert from 'node:assert/strict';
import { accepted, type FirestoreCase, int, of, refused, settles } from '../expect.ts';
import { CODES, CONTENTION, METHODS } from '../sources.ts';
import { begin, commit, read, rollback, setting } from '../transaction.ts';

const make = of('Locks');
/** Enough for a call that is not held up, on a slow machine. */
const HELD_MS = 700;

export const lockCases: readonly FirestoreCase[] = [
  make('A write waits while a transaction has read the document', CONTENTION, async (world) => {
    await world.db.doc('c/a').set({ n: 1 });
    const transaction = await begin(world);
    await read(world, transaction, 'c/a');
    const write = world.db.doc('c/a').set({ n: 5 });
    assert.equal(await settles(write, HELD_MS), false, 'the write did not wait');
    await accepted(commit(world, transaction, setting(world, 'c/a', 2)), 'the commit');
    await accepted(write, 'the write');
    assert.equal((await world.db.doc('c/a').get()).get('n'), 5);
  }),
  make(
    'A create waits while a transaction has read that the document is missing',
    CONTENTION,
    async (world) => {
      const transaction = await begin(world);
      await read(world, transaction, 'c/a');
      const create = world.db.doc('c/a').create({ n: 5 });
      // Otherwise it is unhandled while the commit is on its way.
      create.catch(() => {});
      assert.equal(await settles(create, HELD_MS), false, 'the create did not wait');
      await accepted(commit(world, transaction, setting(world, 'c/a', 2)), 'the commit');
      await refused(create, 'ALREADY_EXISTS', 'the create');
    },
  ),
  make('A create into what a transaction’s query would find waits', CONTENTION, async (world) => {
    await world.db.doc('c/a').set({ n: 1 });
    const structuredQuery = {
      from: [{ collectionId: 'c' }],
      where: { fieldFilter: { field: { fieldPath: 'n' }, op: 'EQUAL', value: int(1) } },
    };
    const transaction = await begin(world);
    await world.call('RunQuery', { parent: `${world.database}/documents`, structuredQuery, transaction });
    const create = world.db.doc('c/b').create({ n: 1 });
    assert.equal(await settles(create, HELD_MS), false, 'the create did not wait');
    await accepted(rollback(world, transaction), 'the rollback');
    await accepted(create, 'the create');
  }),
  make('Reads outside of transactions do not wait', CONTENTION, async (world) => {
    await world.db.doc('c/a').set({ n: 1 });
    const transaction = await begin(world);
    await read(world, transaction, 'c/a');
    const seen = world.db.doc('c/a').get();
    assert.equal(await settles(seen, HELD_MS), true, 'the read waited');
    assert.equal((await seen).get('n'), 1);
    await rollback(world, transaction);
  }),
  make(
    'A read outside of it, in the function of a transaction, does not wait',
    CONTENTION,
    async ({ db }) => {
      await db.doc('c/a').set({ n: 1 });
      const seen = db.runTransaction(async (transaction) => {
        await transaction.get(db.doc('c/a'));
        const outside = (await db.doc('c/a').get()).get('n');
        transaction.update(db.doc('c/a'), { n: 2 });
        return outside;
      });
      assert.equal(await settles(seen, 10 * HELD_MS), true, 'the transaction waits for its own read');
      assert.equal(await seen, 1);
    },
  ),
  make('Rollback frees what the transaction had read', METHODS, async (world) => {
    const transaction = await begin(world);
    await read(world, transaction, 'c/a');
    await accepted(rollback(world, transaction), 'Rollback');
    const write = world.db.doc('c/a').set({ n: 5 });
    assert.equal(await settles(write, HELD_MS), true, 'the write still waits');
  }),
  make(
    'Of two transactions that wait for each other one answers ABORTED, and the other is done',
    CONTENTION,
    async (world) => {
      const [one, two] = [await begin(world), await begin(world)];
      await read(world, one, 'c/a');
      await read(world, two, 'c/b');
      const results = await Promise.allSettled([
        read(world, one, 'c/b').then(() =>
          commit(world, one, setting(world, 'c/a', 1), setting(world, 'c/b', 1)),
        ),
        read(world, two, 'c/a').then(() =>
          commit(world, two, setting(world, 'c/a', 2), setting(world, 'c/b', 2)),
        ),
      ]);
      const failed = results.flatMap((result) =>
        result.status === 'rejected' ? [result.reason as { code: number }] : [],
      );
      assert.deepEqual(
        failed.map(({ code }) => code),
        [10],
        `${2 - failed.length} of 2 are done`,
      );
    },
  ),
  make('A transaction whose client has used up all attempts answers ABORTED', CODES, async (world) => {
    const { db } = world;
    const holder = await begin(world);
    await read(world, holder, 'c/a');
    const tried = db.runTransaction(
      async (transaction) => {
        await transaction.get(db.doc('c/b'));
        transaction.set(db.doc('c/a'), { n: 1 });
      },
      { maxAttempts: 1 },
    );
    tried.catch(() => {});
    assert.equal(await settles(tried, HELD_MS), false, 'its commit did not wait');
    // The older one changes what the younger has read, which closes the circle.
    await accepted(commit(world, holder, setting(world, 'c/b', 1)), 'the older transaction');
    await refused(tried, 'ABORTED', 'the younger transaction');
  }),
];
