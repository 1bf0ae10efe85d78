/**
 * Sagas and step records in Firestore: one document for each instance, one for each step at its participant, named by
 * hashes.
 *
 * Queries are over one field each (`wake`, `byState`), which Firestore indexes by itself; all other fields should be exempt
 * from indexing, and `expiresAt` wants a TTL policy. `wake` is in sixteen ranges of its index; `byState` is written
 * when an instance starts, ends, or is parked, in one range for each consumer, and Firestore splits such a range only
 * gradually beyond 500 writes a second (https://cloud.google.com/firestore/docs/best-practices#hotspots).
 *
 * Documents are read and written in the inbox's own transaction: it is not committed if another one changed them.
 */
import type { Firestore, Transaction } from '@google-cloud/firestore';
import { boundedCalls, CALL_SHAPE, type CallOptions } from '../firestore/calls.ts';
import { sameFirestore } from '../firestore/copy.ts';
import { inRange, pageOf } from '../firestore/pages.ts';
import { givenProjectOf } from '../firestore/project.ts';
import { checkOptions, text } from '../options.ts';
import { dueMsOf, SHARDS, someShards } from '../shards.ts';
import { instanceFields, instanceOf, recordFields, recordOf } from './firestore-documents.ts';
import { bufferedTransactions } from './firestore-buffer.ts';
import { instanceId, type SagaRef } from './instance.ts';
import { SAGA_TIMES, type SagaStore } from './saga-store.ts';
import { dueRange, isListed, listRange } from './sort-keys.ts';
import { stepRecordId, type StepRecords, type StepRef } from './step-records.ts';

export {
  type FirestoreLocks,
  firestoreLocks,
  type FirestoreLocksOptions,
  reread,
  type SemanticLock,
  versionOf,
} from './firestore-locks.ts';
export { firestoreTraces, type FirestoreTracesOptions } from './firestore-traces.ts';

export type FirestoreSagasOptions = CallOptions &
  Readonly<{
    /** Default `pubsub-guarantees-sagas`. */
    collection?: string;
    /**
     * In how many ranges of the index the instances of a consumer wait for the sweep, default 16, 1 to 256. The same for
     * all that write and sweep the instances.
     */
    shards?: number;
  }>;

export type FirestoreStepRecordsOptions = CallOptions &
  Readonly<{
    /** Default `pubsub-guarantees-saga-steps`. */
    collection?: string;
  }>;

/**
 * The caller makes the client and terminates it. Throws ConfigError for an invalid option.
 *
 * @example
 * const store = firestoreSagas(firestore);
 * const handle = inbox(firestoreInbox(firestore), { publisher })(orchestrator(store, [placeOrder], { topic: 'saga' }));
 */
export function firestoreSagas(
  firestore: Firestore,
  options: FirestoreSagasOptions = {},
): SagaStore<Transaction> {
  sameFirestore(firestore);
  checkOptions<FirestoreSagasOptions>(options, { ...CALL_SHAPE, collection: text, shards: someShards });
  const { collection = 'pubsub-guarantees-sagas', shards = SHARDS } = options;
  const calls = boundedCalls(options);
  const instances = sameFirestore(firestore).collection(collection);
  const at = (ref: SagaRef) => instances.doc(instanceId(ref));

  // The server's clock minus this process's, from the latest query: it says until when instances are due.
  let skewMs = 0;

  return {
    project: () => givenProjectOf(firestore),
    shards,
    async readIn(transaction, ref) {
      const snapshot = await transaction.get(at(ref));
      return { instance: instanceOf(snapshot), nowMs: snapshot.readTime.toMillis() };
    },
    writeIn: (transaction, instance) =>
      void transaction.set(at(instance.ref), instanceFields(instance, shards, SAGA_TIMES)),
    read: (ref) =>
      calls.call('read of a saga', async () => {
        const snapshot = await at(ref).get();
        return { instance: instanceOf(snapshot), nowMs: snapshot.readTime.toMillis() };
      }),
    due: (consumer, shard, graceMs, limit, after) =>
      calls.call('query of sagas to wake', async () => {
        const range = dueRange(consumer, shard, calls.clock.now() + skewMs - graceMs);
        const { docs, readTime } = await inRange(instances, range, limit, after)
          .select('saga', 'id', range.field)
          .get();
        skewMs = readTime.toMillis() - calls.clock.now();
        const items = docs.map((document) => ({
          ref: { consumer, saga: String(document.get('saga')), id: String(document.get('id')) },
          wakeAtMs: dueMsOf(String(document.get(range.field))),
        }));
        return pageOf(docs, range.field, limit, items);
      }),
    list: (query) =>
      calls.call('query of sagas', async () => {
        const range = listRange(query);
        const { docs } = await inRange(instances, range, query.limit, query.after).get();
        const found = docs.map((document) => instanceOf(document)).filter((one) => one !== undefined);
        const items = found.filter((instance) => isListed(instance, query));
        return pageOf(docs, range.field, query.limit, items);
      }),
  };
}

/**
 * The caller makes the client and terminates it. Throws ConfigError for an invalid option.
 *
 * @example
 * const credit = participant(firestoreStepRecords(firestore), { replyTo: ['saga'], steps });
 */
export function firestoreStepRecords(
  firestore: Firestore,
  options: FirestoreStepRecordsOptions = {},
): StepRecords<Transaction> {
  sameFirestore(firestore);
  checkOptions<FirestoreStepRecordsOptions>(options, { ...CALL_SHAPE, collection: text });
  const { collection = 'pubsub-guarantees-saga-steps' } = options;
  const calls = boundedCalls(options);
  const records = sameFirestore(firestore).collection(collection);
  const at = (ref: StepRef) => records.doc(stepRecordId(ref));

  return {
    project: () => givenProjectOf(firestore),
    readIn: async (transaction, ref) => recordOf(await transaction.get(at(ref))),
    writeIn: (transaction, record) =>
      void transaction.set(at(record.ref), recordFields(record, calls.clock.now())),
    buffered: bufferedTransactions(),
    change: (ref, rule) =>
      calls.transaction('change of a step record', (alive) =>
        firestore.runTransaction(
          async (transaction) => {
            alive();
            const { answer, record } = rule(recordOf(await transaction.get(at(ref))));
            if (record !== undefined) transaction.set(at(ref), recordFields(record, calls.clock.now()));
            alive();
            return answer;
          },
          { maxAttempts: calls.maxAttempts },
        ),
      ),
  };
}
