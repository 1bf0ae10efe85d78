/**
 * Many clients and few documents. Each case has a limit of its own for what a slow server does not end, because its cases
 * run beside others.
 */
import assert from 'node:assert/strict';
import { FieldValue, type Firestore } from '@google-cloud/firestore';
import { atOnce, type FirestoreCase, of } from '../expect.ts';
import { CONTENTION, TRANSACTIONS } from '../sources.ts';
import { type Stopped, unless, within } from '../stoppable.ts';

const make = of('Contention');
const increment = (db: Firestore, stopped: Stopped, maxAttempts?: number, thinkMs = 0): Promise<void> =>
  db.runTransaction(
    unless(stopped, async (transaction) => {
      const counter = await transaction.get(db.doc('c/counter'));
      if (thinkMs > 0) await new Promise((resolve) => setTimeout(resolve, thinkMs));
      transaction.set(counter.ref, { n: (counter.get('n') ?? 0) + 1 });
    }),
    maxAttempts === undefined ? {} : { maxAttempts },
  );

const times = <T>(count: number, make: () => T): readonly T[] => Array.from({ length: count }, make);

/** Each of the clients increments one after the other. */
async function contended(clients: readonly Firestore[], each: number): Promise<void> {
  let [done, failed] = [0, 0];
  await within(
    (stopped) =>
      Promise.all(
        clients.map(async (db) => {
          for (let i = 0; i < each && !stopped(); i += 1) {
            await increment(db, stopped).then(
              () => (done += 1),
              () => (failed += 1),
            );
          }
        }),
      ),
    `${clients.length} × ${each} transactions`,
    () => `${done} done, ${failed} failed`,
  );
  assert.equal(failed, 0, `${failed} of ${clients.length * each} failed`);
  const seen = await clients[0]?.doc('c/counter').get();
  assert.equal(seen?.get('n'), clients.length * each);
}

export const contentionCases: readonly FirestoreCase[] = [
  make('5 clients × 10 transactions on one counter all succeed', TRANSACTIONS, async ({ client }) => {
    await contended(
      times(5, () => client()),
      10,
    );
  }),
  make(
    '20 clients × 20 transactions on one counter all succeed with the default 5 attempts',
    TRANSACTIONS,
    async ({ client }) => {
      await contended(
        times(20, () => client()),
        20,
      );
    },
  ),
  make('20 × 20 transactions of one client on one counter all succeed', TRANSACTIONS, async ({ db }) => {
    await contended(
      times(20, () => db),
      20,
    );
  }),
  make('20 × 20 transactions on 20 counters all succeed', TRANSACTIONS, async ({ db }) => {
    const twenty = async (counter: number, stopped: Stopped): Promise<void> => {
      for (let i = 0; i < 20; i += 1) {
        await db.runTransaction(
          unless(stopped, async (transaction) => {
            const found = await transaction.get(db.doc(`c/${counter}`));
            transaction.set(found.ref, { n: (found.get('n') ?? 0) + 1 });
          }),
        );
      }
    };
    await within((stopped) => atOnce(20, (counter) => twenty(counter, stopped)), '400 transactions');
    assert.ok((await db.collection('c').get()).docs.every((found) => found.get('n') === 20));
  }),
  make(
    'Transactions with one attempt are done or answer ABORTED, and count right',
    CONTENTION,
    async ({ db }) => {
      let done = 0;
      const codes = new Set<number>();
      const one = (stopped: Stopped): Promise<unknown> =>
        increment(db, stopped, 1, 50).then(
          () => (done += 1),
          ({ code }: { code: number }) => codes.add(code),
        );
      await within(
        (stopped) => atOnce(10, () => one(stopped)),
        '10 transactions',
        () => `${done} done`,
      );
      assert.deepEqual(
        [...codes].filter((code) => code !== 10),
        [],
        'other codes than ABORTED',
      );
      assert.ok(done >= 1, 'none was done');
      assert.equal((await db.doc('c/counter').get()).get('n'), done);
    },
  ),
  make(
    '10 workers that claim 60 jobs by a query each claim theirs once, and all end',
    CONTENTION,
    async ({ db }) => {
      const batch = db.batch();
      for (let i = 0; i < 60; i += 1) batch.set(db.doc(`jobs/${i}`), { state: 'open', i });
      await batch.commit();
      const claimed: string[] = [];
      let failed = 0;
      const claim = (stopped: Stopped): Promise<string | undefined> =>
        db.runTransaction(
          unless(stopped, async (transaction) => {
            const open = db.collection('jobs').where('state', '==', 'open').limit(1);
            const [job] = (await transaction.get(open)).docs;
            if (job !== undefined) transaction.update(job.ref, { state: 'claimed' });
            return job?.id;
          }),
        );
      const work = async (stopped: Stopped): Promise<void> => {
        for (let attempts = 0; attempts < 100 && !stopped(); attempts += 1) {
          try {
            const id = await claim(stopped);
            if (id === undefined) return;
            claimed.push(id);
          } catch {
            failed += 1;
          }
        }
      };
      const seen = (): string => `${claimed.length} claimed, ${failed} failed`;
      await within((stopped) => atOnce(10, () => work(stopped)), 'the claims', seen);
      assert.deepEqual([new Set(claimed).size, claimed.length], [60, 60], seen());
      assert.equal(failed, 0, `${failed} claims failed for contention`);
    },
  ),
  make('16 parallel claims of one document that is missing have one winner', CONTENTION, async ({ db }) => {
    const wins: boolean[] = [];
    const claim = async (stopped: Stopped): Promise<void> => {
      const mark = unless(stopped, async (transaction) => {
        const found = await transaction.get(db.doc('c/mark'));
        if (!found.exists) transaction.create(found.ref, {});
        return !found.exists;
      });
      wins.push(await db.runTransaction(mark));
    };
    await within(
      (stopped) => atOnce(16, () => claim(stopped)),
      '16 claims',
      () => `${wins.length} have ended`,
    );
    assert.equal(wins.filter(Boolean).length, 1);
  }),
  make(
    'Plain increments against transactions on the same document are not lost',
    CONTENTION,
    async ({ db }) => {
      const plain = (): Promise<unknown> =>
        db.doc('c/counter').set({ n: FieldValue.increment(1) }, { merge: true });
      const both = (stopped: Stopped): Promise<unknown> =>
        Promise.all([atOnce(20, plain), atOnce(5, () => increment(db, stopped))]);
      await within(both, '25 increments');
      assert.equal((await db.doc('c/counter').get()).get('n'), 25);
    },
  ),
];
