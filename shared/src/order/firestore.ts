/**
 * The order store in Firestore.
 *
 *   <collection>/<hashOf(consumer)>/<collection>-keys/<hashOf(consumer, key)>                            a key
 *   <collection>/<hashOf(consumer)>/<collection>-keys/<…>/<collection>-held/<hashOf(key id, number)>    a held message
 *
 * Held messages stand under their key and keys under their consumer, so that the queries (`number` from; `readyAt`,
 * `waitingSince` and `halted.at` until) need only the single-field indexes that Firestore makes by itself. All other
 * fields should be exempt from indexing. Names are hashes: increasing ones would put all writes on one server.
 *
 * Neither kind has an expiry: a held message is work, and a key without its pointer would start again at 1.
 */
import type {
  CollectionReference,
  DocumentReference,
  Firestore,
  QuerySnapshot,
  Transaction,
} from '@google-cloud/firestore';
import { Timestamp } from '@google-cloud/firestore';
import { sameFirestore } from '../firestore/copy.ts';
import { hashOf } from '../hash.ts';
import { boundedCalls, type CallOptions, isRefused } from '../firestore/calls.ts';
import {
  heldFields,
  heldMessage,
  keyFields,
  keyState,
  millisOf,
  newKeyFields,
  updateTimeOf,
  versionOf,
} from './firestore-documents.ts';
import { cursorOf, pageOf, readyKey } from './firestore-queries.ts';
import { oneByOne } from './one-by-one.ts';
import type { HeldMessage, HeldQuery, KeyRef, OrderStore } from './order-store.ts';

export { firestoreCounterStart } from './firestore-counter-start.ts';
export { type FirestoreCountersOptions, firestoreCounters } from '../sequence/firestore.ts';

export type FirestoreOrderOptions = CallOptions & Readonly<{ collection?: string }>;

/** A document has at most 1,048,576 bytes with its name and field names: https://cloud.google.com/firestore/quotas#collections_documents_and_fields */
const MAX_HELD_BYTES = 1_040_000;

/** A key that is due this much longer is found by the next sweep; a second query for it would not be worth its price. */
const TOLERATED_SKEW_MS = 5_000;

/** The caller owns `firestore` and closes it. Throws ConfigError for a client of another copy of its package. */
export function firestoreOrder(firestore: Firestore, options: FirestoreOrderOptions = {}): OrderStore {
  const { collection = 'pubsub-guarantees-order' } = options;
  const calls = boundedCalls(options);
  const client = sameFirestore(firestore);

  const keysOf = (consumer: string): CollectionReference =>
    client.collection(collection).doc(hashOf(consumer)).collection(`${collection}-keys`);
  const keyOf = (ref: KeyRef): DocumentReference => keysOf(ref.consumer).doc(hashOf(ref.consumer, ref.key));
  const heldOf = (key: DocumentReference): CollectionReference => key.collection(`${collection}-held`);
  const heldDoc = (key: DocumentReference, number: number): DocumentReference =>
    heldOf(key).doc(hashOf(key.id, String(number)));
  const heldFrom = (key: DocumentReference, from: number, limit: number) =>
    heldOf(key).where('number', '>=', from).orderBy('number').limit(limit);

  async function heldIn(
    transaction: Transaction,
    key: DocumentReference,
    query: HeldQuery,
  ): Promise<HeldMessage[]> {
    if ('numbers' in query) {
      const all = await transaction.getAll(...query.numbers.map((number) => heldDoc(key, number)));
      return all.filter(({ exists }) => exists).map(heldMessage);
    }
    return (await transaction.get(heldFrom(key, query.from, query.limit))).docs.map(heldMessage);
  }

  const readyKeys = (consumer: string, untilMs: number, limit: number): Promise<QuerySnapshot> =>
    keysOf(consumer)
      .where('readyAt', '<=', Timestamp.fromMillis(untilMs))
      .orderBy('readyAt')
      .limit(limit)
      .get();

  // Each has its own time, counted from its turn: those before it end within theirs.
  const inTurn = oneByOne();
  // The server's clock minus this process's, from the latest query: it says until when keys are due.
  let skewMs = 0;

  return {
    maxHeldBytes: MAX_HELD_BYTES,

    read: (ref) =>
      calls.call('read of a key', async () => {
        const snapshot = await keyOf(ref).get();
        return {
          state: snapshot.exists ? keyState(snapshot) : undefined,
          version: snapshot.updateTime && versionOf(snapshot.updateTime),
          nowMs: millisOf(snapshot.readTime),
        };
      }),

    async write(ref, expected, patch, remove = []) {
      const key = keyOf(ref);
      const batch = firestore.batch();
      if (expected.version === undefined) batch.create(key, newKeyFields(ref, expected.base, patch));
      else batch.update(key, keyFields(patch), { lastUpdateTime: updateTimeOf(expected.version) });
      for (const number of remove) batch.delete(heldDoc(key, number));
      try {
        const [result] = await inTurn(key.path, () => calls.call('write of a key', () => batch.commit()));
        return result && versionOf(result.writeTime);
      } catch (error) {
        if (isRefused(error)) return undefined;
        throw error;
      }
    },

    transact: (ref, base, query, decide) =>
      inTurn(keyOf(ref).path, () =>
        calls.transaction('transaction on a key', (alive) =>
          firestore.runTransaction(
            async (transaction) => {
              alive();
              const key = keyOf(ref);
              const snapshot = await transaction.get(key);
              const held = await heldIn(transaction, key, query);
              const state = snapshot.exists ? keyState(snapshot) : base;
              const decision = decide(state, held, millisOf(snapshot.readTime));
              const { patch, create = [], remove = [] } = decision;
              if (patch !== undefined && snapshot.exists) transaction.update(key, keyFields(patch));
              else if (patch !== undefined) transaction.create(key, newKeyFields(ref, base, patch));
              for (const held of create) transaction.create(heldDoc(key, held.number), heldFields(held));
              for (const number of remove) transaction.delete(heldDoc(key, number));
              alive();
              return decision.result;
            },
            { maxAttempts: calls.maxAttempts },
          ),
        ),
      ),

    held: (ref, from, limit) =>
      calls.call('read of held messages', async () =>
        (await heldFrom(keyOf(ref), from, limit).get()).docs.map(heldMessage),
      ),

    ready: (consumer, limit) =>
      calls.call('query of ready keys', async () => {
        let untilMs = Math.floor(calls.clock.now() + skewMs);
        let found = await readyKeys(consumer, untilMs, limit);
        // This process's clock is behind, or has just jumped: the server says what time it is.
        if (found.size < limit && millisOf(found.readTime) - untilMs > TOLERATED_SKEW_MS) {
          untilMs = millisOf(found.readTime);
          found = await readyKeys(consumer, untilMs, limit);
        }
        skewMs = millisOf(found.readTime) - calls.clock.now();
        return found.docs.map((document) => readyKey(document, consumer, keyOf));
      }),

    list: (consumer, query) =>
      calls.call('list of keys', async () => {
        const limit = query.limit + 1;
        const found = await pageOf(keysOf(consumer), query, calls.clock.now() + skewMs)
          .limit(limit)
          .get();
        skewMs = millisOf(found.readTime) - calls.clock.now();
        const documents = found.docs.slice(0, query.limit);
        const end = documents.at(-1);
        return {
          keys: documents.map((document) => readyKey(document, consumer, keyOf)),
          ...(end !== undefined && found.size > query.limit && { next: cursorOf(query.state, end) }),
        };
      }),

    count: (consumer, state) =>
      calls.call('count of keys', async () => {
        const query = pageOf(keysOf(consumer), { state, limit: 0 }, calls.clock.now() + skewMs);
        return (await query.count().get()).data().count;
      }),

    countHeld: (ref) =>
      calls.call('count of held messages', async () => {
        return (await heldOf(keyOf(ref)).count().get()).data().count;
      }),
  };
}
