/** Documents that expire. */
import assert from 'node:assert/strict';
import { Timestamp } from '@google-cloud/firestore';
import { type FirestoreCase, of } from '../expect.ts';
import { TTL } from '../sources.ts';
import { EXPIRING } from '../world.ts';

const ttl = of('Time to live');
const NO_POLICY = 'has no policies';
const DAY_MS = 86_400_000;
const { collectionGroup, field } = EXPIRING;

export const ttlCases: readonly FirestoreCase[] = [
  ttl(
    'A document is deleted within 24 hours after the time in its field',
    TTL,
    async ({ db, now, pass }) => {
      await db.doc(`${collectionGroup}/a`).set({ [field]: Timestamp.fromMillis(now() + DAY_MS) });
      await pass(DAY_MS - 60_000);
      assert.equal((await db.doc(`${collectionGroup}/a`).get()).exists, true, 'it is gone before its time');
      await pass(DAY_MS + 60_000);
      assert.equal((await db.doc(`${collectionGroup}/a`).get()).exists, false, 'it is still there');
    },
    NO_POLICY,
  ),
  ttl(
    'A document that has expired is found until it is deleted',
    TTL,
    async ({ db, now, pass }) => {
      await db.doc(`${collectionGroup}/a`).set({ [field]: Timestamp.fromMillis(now() - 1) });
      assert.equal((await db.collection(collectionGroup).get()).size, 1);
      await pass(DAY_MS);
      assert.equal((await db.collection(collectionGroup).get()).size, 0);
    },
    NO_POLICY,
  ),
  ttl(
    'A time that is moved on in time keeps the document',
    TTL,
    async ({ db, now, pass }) => {
      const doc = db.doc(`${collectionGroup}/a`);
      await doc.set({ [field]: Timestamp.fromMillis(now() + DAY_MS) });
      await doc.set({ [field]: Timestamp.fromMillis(now() + 5 * DAY_MS) });
      await pass(3 * DAY_MS);
      assert.equal((await doc.get()).exists, true);
    },
    NO_POLICY,
  ),
  ttl(
    'A field that is no timestamp never expires',
    TTL,
    async ({ db, now, pass }) => {
      await db.doc(`${collectionGroup}/a`).set({ [field]: now() - DAY_MS });
      await db.doc(`${collectionGroup}/b`).set({ other: Timestamp.fromMillis(now() - DAY_MS) });
      await pass(3 * DAY_MS);
      assert.equal((await db.collection(collectionGroup).get()).size, 2);
    },
    NO_POLICY,
  ),
  ttl(
    'The documents of subcollections stay',
    TTL,
    async ({ db, now, pass }) => {
      await db.doc(`${collectionGroup}/a`).set({ [field]: Timestamp.fromMillis(now()) });
      await db.doc(`${collectionGroup}/a/s/1`).set({ n: 1 });
      await pass(DAY_MS);
      assert.equal((await db.doc(`${collectionGroup}/a`).get()).exists, false);
      assert.equal((await db.doc(`${collectionGroup}/a/s/1`).get()).exists, true);
    },
    NO_POLICY,
  ),
  ttl(
    'Other collections do not expire',
    TTL,
    async ({ db, now, pass }) => {
      await db.doc('c/a').set({ [field]: Timestamp.fromMillis(now() - DAY_MS) });
      await pass(3 * DAY_MS);
      assert.equal((await db.doc('c/a').get()).exists, true);
    },
    NO_POLICY,
  ),
];
