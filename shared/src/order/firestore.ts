/**
 * The stream store in Firestore.
 *
 *   <collection>/<hashOf(consumer)>/<collection>-streams/<hashOf(consumer, source, key)>                a stream
 *   <collection>/<hashOf(consumer)>/<collection>-streams/<…>/<collection>-held/<hashOf(stream, number)>  a held message
 *
 * Held messages are under their stream and streams under their consumer, so that the queries (`number`, `readyAt`,
 * `waitingSince`, `blocked.at`) need only single-field indexes. All other fields should be exempt from indexing. Names
 * are hashes: increasing ones would put all writes on one server.
 *
 * Neither kind has an expiry: a held message is work, and a stream without its pointer would start again at 1.
 */
import type {
  CollectionReference,
  DocumentReference,
  DocumentSnapshot,
  Query,
} from '@google-cloud/firestore';
import type { Firestore } from '@google-cloud/firestore';
import { boundedCalls, type CallOptions, CALL_SHAPE } from '../firestore/calls.ts';
import { isRefused } from '../firestore/errors.ts';
import { checkOptions, text, whole } from '../options.ts';
import { sameFirestore } from '../firestore/copy.ts';
import { hashOf } from '../hash.ts';
import { counterDocuments, counterOf, type FirestoreCountersOptions } from '../sequence/firestore.ts';
import {
  heldFields,
  heldMessage,
  listedStream,
  millisOf,
  newStreamFields,
  streamFields,
  streamState,
  updateTimeOf,
  versionOf,
} from './firestore-documents.ts';
import { countOf, pageOf, shardOf } from './firestore-lists.ts';
import type { CounterStart } from './options.ts';
import type { StreamState } from './stream-state.ts';
import type { StreamAdmin, StreamChange, StreamDocument, StreamRef, StreamStore } from './stream-store.ts';

export { type FirestoreCountersOptions, firestoreCounters } from '../sequence/firestore.ts';

export type FirestoreStreamsOptions = CallOptions &
  Readonly<{
    /** Default `pubsub-guarantees-order`. */
    collection?: string;
    /**
     * Over how many ranges of their index the streams' times are spread (default 16, 1 to 100). Some 500 changes a second
     * fit into one; each sweep asks all of them. May be raised later, and lowered only while no stream is stored.
     */
    shards?: number;
  }>;

/** A document has at most 1,048,576 bytes with its name and field names: https://cloud.google.com/firestore/quotas#collections_documents_and_fields */
const MAX_HELD_BYTES = 1_040_000;
const MOST_SHARDS = 100;
/** A stream that is due this much longer is found by the next sweep; asking again would not be worth its price. */
const TOLERATED_SKEW_MS = 5_000;

/**
 * The caller owns `firestore` and closes it. Throws ConfigError `INVALID_OPTION`, also for a client of
 * another copy of its package.
 *
 * @example
 * const store = firestoreStreams(new Firestore());
 */
export function firestoreStreams(
  firestore: Firestore,
  options: FirestoreStreamsOptions = {},
): StreamStore & StreamAdmin {
  const client = sameFirestore(firestore);
  checkOptions<FirestoreStreamsOptions>(options, {
    ...CALL_SHAPE,
    collection: text,
    shards: whole(1, MOST_SHARDS),
  });
  const { collection = 'pubsub-guarantees-order', shards = 16 } = options;
  const calls = boundedCalls(options);

  const streamsOf = (consumer: string): CollectionReference =>
    client.collection(collection).doc(hashOf(consumer)).collection(`${collection}-streams`);
  const documentOf = (ref: StreamRef): DocumentReference =>
    streamsOf(ref.consumer).doc(hashOf(ref.consumer, ref.source, ref.key));
  const heldOf = (stream: DocumentReference): CollectionReference => stream.collection(`${collection}-held`);
  const heldDocument = (stream: DocumentReference, number: number): DocumentReference =>
    heldOf(stream).doc(hashOf(stream.id, String(number)));
  const heldFrom = (ref: StreamRef, from: number, limit: number): Query =>
    heldOf(documentOf(ref)).where('number', '>=', from).orderBy('number').limit(limit);

  /** What a batch of writes and a transaction have in common. Both refuse to create what exists. */
  type Writer = Readonly<{
    create(document: DocumentReference, data: object): unknown;
    update(document: DocumentReference, data: object): unknown;
    delete(document: DocumentReference): unknown;
  }>;
  const write = (
    writer: Writer,
    ref: StreamRef,
    exists: boolean,
    base: StreamState,
    change: StreamChange,
  ): void => {
    const { patch, create = [], remove = [] } = change;
    const stream = documentOf(ref);
    const shard = shardOf(stream.id, shards);
    if (exists) writer.update(stream, streamFields(patch, shard));
    else writer.create(stream, newStreamFields(ref, base, patch, shard));
    for (const held of create) writer.create(heldDocument(stream, held.number), heldFields(held));
    for (const number of remove) writer.delete(heldDocument(stream, number));
  };

  // The server's clock minus this process's, from the latest list: it says until when streams are due.
  let skewMs = 0;

  return {
    maxHeldBytes: MAX_HELD_BYTES,

    read: (ref) => calls.call('read of a stream', async () => streamDocument(await documentOf(ref).get())),

    held: (ref, from, limit) =>
      calls.call('read of held messages', async () =>
        (await heldFrom(ref, from, limit).get()).docs.map(heldMessage),
      ),

    async commit(ref, { version, state }, change) {
      const batch = firestore.batch();
      const guarded: Writer = {
        create: (document, data) => batch.create(document, data),
        update: (document, data) =>
          batch.update(document, data, { lastUpdateTime: updateTimeOf(version ?? '0') }),
        delete: (document) => batch.delete(document),
      };
      write(guarded, ref, version !== undefined, state, change);
      try {
        const [result] = await calls.call('commit to a stream', () => batch.commit());
        return versionOf(result?.writeTime);
      } catch (error) {
        if (isRefused(error)) return undefined;
        throw error;
      }
    },

    transact: (ref, work) =>
      calls.transaction('transaction on a stream', async (alive) => {
        let answer: Readonly<{ result: Awaited<ReturnType<typeof work>> }> | undefined;
        try {
          await firestore.runTransaction(
            async (transaction) => {
              alive();
              answer = undefined;
              let exists: boolean | undefined;
              const result = await work({
                async read() {
                  const snapshot = await transaction.get(documentOf(ref));
                  exists = snapshot.exists;
                  return streamDocument(snapshot);
                },
                held: async (from, limit) =>
                  (await transaction.get(heldFrom(ref, from, limit))).docs.map(heldMessage),
                commit: (state, change) => write(transaction, ref, exists ?? true, state, change),
              });
              alive();
              answer = { result };
            },
            { maxAttempts: calls.maxAttempts },
          );
        } catch (error) {
          if (answer === undefined || !isRefused(error)) throw error;
          return { applied: false, result: answer.result };
        }
        if (answer === undefined) throw new Error('the transaction ended without its work');
        return { applied: true, result: answer.result };
      }),

    list: (consumer, query) =>
      calls.call('list of streams', async () => {
        const streams = streamsOf(consumer);
        let untilMs = calls.clock.now() + skewMs;
        let found = await pageOf(streams, query, shards, untilMs);
        // This process's clock is behind, or has just jumped: the server says what time it is.
        if (found.documents.length < query.limit && found.nowMs - untilMs > TOLERATED_SKEW_MS) {
          untilMs = found.nowMs;
          found = await pageOf(streams, query, shards, untilMs);
        }
        skewMs = found.nowMs - calls.clock.now();
        return {
          streams: found.documents.map((document) => listedStream(document, consumer, documentOf)),
          ...(found.next !== undefined && { next: found.next }),
        };
      }),

    count: (consumer, state) =>
      calls.call('count of streams', () =>
        countOf(streamsOf(consumer), state, shards, calls.clock.now() + skewMs),
      ),

    countHeld: (ref) =>
      calls.call('count of held messages', async () => {
        return (await heldOf(documentOf(ref)).count().get()).data().count;
      }),
  };
}

/**
 * The sequencer's counters as the place where streams begin: the option `start`. It reads, and writes nothing.
 * `collection` and `scope` are those of the publishers' `firestoreCounters` or outbox. `read` rejects with
 * `STORE_UNAVAILABLE`, or with `UNREADABLE_COUNTER` for a document that is no counter. The caller owns `firestore`.
 *
 * @example
 * const streams = orderedDelivery(firestoreStreams(firestore), { start: firestoreCounterStart(firestore) });
 */
export function firestoreCounterStart(
  firestore: Firestore,
  options: FirestoreCountersOptions = {},
): CounterStart {
  sameFirestore(firestore);
  checkOptions<FirestoreCountersOptions>(options, { ...CALL_SHAPE, collection: text, scope: text });
  const calls = boundedCalls(options);
  const documentOf = counterDocuments(firestore, options);
  return {
    read: (key) =>
      calls.call('read of a counter', async () => {
        const snapshot = await documentOf(key).get();
        const counter = counterOf(snapshot.data(), snapshot.ref.path);
        return counter && { next: counter.next, epoch: counter.epoch };
      }),
  };
}

const streamDocument = (snapshot: DocumentSnapshot): StreamDocument => ({
  state: snapshot.exists ? streamState(snapshot) : undefined,
  version: versionOf(snapshot.updateTime),
  nowMs: millisOf(snapshot.readTime),
});
