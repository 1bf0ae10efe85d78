/**
 * The schedule ledger in Firestore, one document a key, named by a hash.
 *
 * Queries are over one field each (`sweep`, `byKey`, `byDueTime`), which Firestore indexes by itself; all other fields
 * should be exempt from indexing, and `expiresAt` wants a TTL policy. The indexed texts begin with a hash of the
 * consumer. Times grow, and Firestore splits a range of an index that grows only gradually beyond 500 writes per second
 * (https://cloud.google.com/firestore/docs/best-practices#hotspots): `sweep` has one for each shard, so the entries of one
 * consumer have sixteen. `byDueTime` has what has a key alone, and one range for each consumer and source.
 *
 * A lost reply makes the client run a transaction again; the rules answer as they did. Time is the store's read time.
 */
import type { Firestore, Transaction } from '@google-cloud/firestore';
import { toMilliseconds, type Duration } from '../duration.ts';
import { CALL_SHAPE, boundedCalls, type CallOptions } from '../firestore/calls.ts';
import { isRefused } from '../firestore/errors.ts';
import { sameFirestore } from '../firestore/copy.ts';
import { inRange, pageOf } from '../firestore/pages.ts';
import { at, toVersion } from '../firestore/timestamps.ts';
import { dueMsOf, dueText, SHARDS, someShards } from '../shards.ts';
import { entryOf, fieldsOf, millisOf } from './firestore-entries.ts';
import { LEDGER_TIMES, type TransactionalLedger } from './ledger.ts';
import { dueRange, isListed, listRange, pendingRange } from './sort-keys.ts';
import { checkOptions, durationFrom, keptFor, text, transaction as aTransaction } from '../options.ts';

export type FirestoreLedgerOptions = CallOptions &
  Readonly<{
    /** Default `pubsub-guarantees-schedules`. */
    collection?: string;
    /**
     * How long the record of an end is kept (default `32d`, `31d` to `36500d`): longer than a message about it may
     * come again, seek included (31 days at most: https://cloud.google.com/pubsub/quotas#resource_limits). After that
     * a redelivery would schedule it anew.
     */
    retention?: Duration;
    /**
     * When a task counts as lost (default `10m`, at least `1s`): longer after its time than the queue's own backlog
     * ever is.
     */
    lostAfter?: Duration;
    /**
     * In how many ranges of the index the entries of a consumer wait for the sweep, default 16, 1 to 256. Each sweep asks
     * each of them. The same for all that write and sweep the entries.
     */
    shards?: number;
  }>;

/** The longest that a source keeps a message: https://cloud.google.com/pubsub/quotas#resource_limits */
const SHORTEST_RETENTION = '31d';

/**
 * The caller makes the client and terminates it. Throws ConfigError for an invalid option.
 *
 * @example
 * const later = delay(queue, { topic: 'projects/shop/topics/orders', ledger: firestoreLedger(new Firestore()) });
 */
export function firestoreLedger(
  firestore: Firestore,
  options: FirestoreLedgerOptions = {},
): TransactionalLedger<Transaction> {
  sameFirestore(firestore);
  checkOptions<FirestoreLedgerOptions>(options, {
    ...CALL_SHAPE,
    collection: text,
    retention: keptFor(SHORTEST_RETENTION),
    lostAfter: durationFrom('1s'),
    shards: someShards,
  });
  const {
    collection = 'pubsub-guarantees-schedules',
    retention = '32d',
    lostAfter = '10m',
    shards = SHARDS,
  } = options;
  const calls = boundedCalls(options);
  const endedRetentionMs = toMilliseconds(retention, 'retention');
  const times = { ...LEDGER_TIMES, endedRetentionMs, lostGraceMs: toMilliseconds(lostAfter, 'lostAfter') };
  const entries = sameFirestore(firestore).collection(collection);

  // The server's clock minus this process's, from the latest query: it says until when entries are due.
  let skewMs = 0;

  const ledger: TransactionalLedger<Transaction> = {
    times,
    change: (id, rule) =>
      calls.transaction('change of a schedule', (alive) =>
        firestore.runTransaction(
          async (transaction) => {
            alive();
            const { entry, nowMs } = await ledger.readIn(transaction, id);
            const decision = rule(entry, nowMs);
            if (decision.entry !== undefined) ledger.writeIn(transaction, id, decision.entry);
            alive();
            return decision;
          },
          { maxAttempts: calls.maxAttempts },
        ),
      ),
    read: (id) =>
      calls.call('read of a schedule', async () => {
        const snapshot = await entries.doc(id).get();
        return { entry: entryOf(snapshot), nowMs: millisOf(snapshot.readTime) };
      }),
    async readIn(transaction, id) {
      aTransaction('transaction', transaction);
      const snapshot = await transaction.get(entries.doc(id));
      return { entry: entryOf(snapshot), nowMs: millisOf(snapshot.readTime) };
    },
    writeIn: (transaction, id, entry) =>
      void transaction.set(entries.doc(id), fieldsOf(id, entry, times, shards)),
    shards,
    due: (consumer, shard, limit, after) =>
      calls.call('query of schedules to look at', async () => {
        const range = dueRange(consumer, shard, calls.clock.now() + skewMs);
        const { docs, readTime } = await inRange(entries, range, limit, after).select(range.field).get();
        skewMs = millisOf(readTime) - calls.clock.now();
        const items = docs.map((document) => ({
          id: document.id,
          dueMs: dueMsOf(String(document.get(range.field))),
          version: toVersion(document.updateTime),
        }));
        return pageOf(docs, range.field, limit, items);
      }),
    async defer({ id, version }, consumer, untilMs) {
      try {
        await calls.call('write of a schedule', () =>
          entries.doc(id).update({ sweep: dueText(id, consumer, untilMs, shards) }, at(version)),
        );
      } catch (error) {
        if (!isRefused(error)) throw error;
      }
    },
    pending: (consumer) =>
      calls.call('count of schedules', async () => {
        const { field, from, to } = pendingRange(consumer);
        const found = await entries.where(field, '>=', from).where(field, '<', to).count().get();
        return found.data().count;
      }),
    list: (query) =>
      calls.call('query of schedules', async () => {
        const range = listRange(query);
        const { docs } = await inRange(entries, range, query.limit, query.after).get();
        const found = docs.map((document) => entryOf(document)).filter((entry) => entry !== undefined);
        return pageOf(
          docs,
          range.field,
          query.limit,
          found.filter((entry) => isListed(entry, query)),
        );
      }),
  };
  return ledger;
}
