import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { type Firestore, Timestamp } from '@google-cloud/firestore';
import { until } from '../until.ts';
import { startFirestore } from './index.ts';
import { LOCK_WAIT_MS } from './locks.ts';
import { type ManualClock, manualClock } from '../manual-clock.ts';
import { type TestBed, testBed } from './testing.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

describe('time to live', () => {
  let bed: TestBed;
  let db: Firestore;
  let clock: ManualClock;
  before(async () => {
    clock = manualClock();
    bed = await testBed(clock, {
      ttl: [
        { collectionGroup: 'leases', field: 'expireAt' },
        { collectionGroup: 'nested', field: 'meta.until' },
      ],
    });
    db = bed.db;
  });
  after(async () => {
    await bed.close();
    assert.equal(clock.timers(), 0, 'closing drops every timer');
  });
  beforeEach(() => bed.server.clear());

  const inMs = (milliseconds: number) => Timestamp.fromMillis(clock.now() + milliseconds);
  const ids = async (path = 'leases'): Promise<string[]> =>
    (await db.collection(path).get()).docs.map(({ id }) => id);
  /** What a deletion that waits for nothing needs to be done. */
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  async function waiting(count: number): Promise<void> {
    await until(
      () => bed.server.stats().waitingRequests === count,
      () => `${bed.server.stats().waitingRequests} requests wait, not ${count}`,
    );
  }

  test('deletes a document within an hour after its time, and never before', async () => {
    await db.doc('leases/past').set({ expireAt: inMs(-DAY_MS) });
    await db.doc('leases/soon').set({ expireAt: inMs(90 * MINUTE_MS) });
    await db.doc('leases/later').set({ expireAt: inMs(45 * DAY_MS) });
    assert.deepEqual(await ids(), ['later', 'past', 'soon'], 'what has passed goes with the next sweep');
    clock.advance(HOUR_MS);
    assert.deepEqual(await ids(), ['later', 'soon']);
    clock.advance(30 * MINUTE_MS - 1);
    assert.deepEqual(await ids(), ['later', 'soon']);
    clock.advance(HOUR_MS);
    assert.deepEqual(await ids(), ['later']);
    clock.advance(43 * DAY_MS);
    assert.deepEqual(await ids(), ['later']);
    clock.advance(2 * DAY_MS);
    assert.deepEqual([await ids(), bed.server.stats().documents, clock.timers()], [[], 0, 0]);
  });

  test('leaves other collections, other fields and other types alone', async () => {
    const expireAt = inMs(0);
    await db.doc('others/a').set({ expireAt });
    await db.doc('leases/number').set({ expireAt: 0 });
    await db.doc('leases/none').set({ other: expireAt });
    assert.equal(clock.timers(), 0, 'nothing waits for what cannot expire');
    await db.doc('deep/er/leases/gone').set({ expireAt });
    await db.doc('nested/gone').set({ meta: { until: expireAt } });
    await db.doc('nested/leases').set({ meta: { until: null } });
    clock.advance(2 * DAY_MS);
    assert.deepEqual([await ids('others'), await ids()], [['a'], ['none', 'number']]);
    assert.deepEqual([await ids('deep/er/leases'), await ids('nested')], [[], ['leases']]);
  });

  test('follows a time that is moved or taken away, in every database', async () => {
    const other = bed.client('test-project', 'other');
    await other.doc('leases/a').set({ expireAt: inMs(HOUR_MS) });
    for (const id of ['moved', 'kept', 'sooner'])
      await db.doc(`leases/${id}`).set({ expireAt: inMs(5 * HOUR_MS) });
    await db.doc('leases/moved').update({ expireAt: inMs(20 * HOUR_MS) });
    await db.doc('leases/kept').update({ expireAt: null });
    await db.doc('leases/sooner').update({ expireAt: inMs(0) });
    clock.advance(HOUR_MS);
    assert.deepEqual(await ids(), ['kept', 'moved']);
    clock.advance(10 * HOUR_MS);
    assert.deepEqual([await ids(), (await other.collection('leases').get()).size], [['kept', 'moved'], 0]);
    clock.advance(10 * HOUR_MS);
    assert.deepEqual(await ids(), ['kept']);
  });

  test('waits for a transaction that holds the document, and leaves it alone when that renewed it', async () => {
    const doc = db.doc('leases/a');
    await doc.set({ expireAt: inMs(HOUR_MS) });
    clock.advance(2 * HOUR_MS - (clock.now() % HOUR_MS) - 1_000);
    await db.runTransaction(async (transaction) => {
      await transaction.get(doc);
      clock.advance(1_000);
      await waiting(1);
      transaction.update(doc, { expireAt: inMs(HOUR_MS) });
    });
    await turn();
    assert.deepEqual(await ids(), ['a']);
    clock.advance(2 * HOUR_MS);
    assert.deepEqual(await ids(), []);
  });

  test('tries again an hour later when a transaction held the document for too long', async () => {
    const doc = db.doc('leases/a');
    await doc.set({ expireAt: inMs(0) });
    clock.advance(HOUR_MS - (clock.now() % HOUR_MS) - 1_000);
    await db.runTransaction(async (transaction) => {
      await transaction.get(doc);
      clock.advance(1_000);
      await waiting(1);
      clock.advance(LOCK_WAIT_MS);
      await waiting(0);
    });
    assert.deepEqual(await ids(), ['a']);
    clock.advance(HOUR_MS);
    assert.deepEqual(await ids(), []);
  });

  test('listeners hear of it', async () => {
    await db.doc('leases/a').set({ expireAt: inMs(0) });
    const sizes: number[] = [];
    const gone = new Promise<void>((resolve) => {
      const stop = db.collection('leases').onSnapshot(({ size }) => {
        sizes.push(size);
        if (size === 1) clock.advance(HOUR_MS);
        if (size > 0) return;
        stop();
        resolve();
      });
    });
    await gone;
    assert.deepEqual(sizes, [1, 0]);
  });

  test('a policy that is not legal stops the start', async () => {
    for (const [policies, message] of [
      [[{ collectionGroup: 'a/b', field: 'x' }], /a\/b/],
      [[{ collectionGroup: 'a', field: 'x..y' }], /x\.\.y/],
      [
        [
          { collectionGroup: 'a', field: 'x' },
          { collectionGroup: 'a', field: 'y' },
        ],
        /more than one field/,
      ],
    ] as const) {
      await assert.rejects(startFirestore({ clock, ttl: policies }), message);
    }
  });
});
