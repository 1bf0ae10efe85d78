/**
 * The outbox in Firestore.
 *
 *   <rows>/<hash>        a message, until its retention is over: state pending → sent | failed
 *   <rows>/stream.<hash> a stream in place of its rows, while it is blocked or backs off
 *   <streams>/<hash>     a stream: the last number that was published, its lease, why it is blocked
 *   <streams>/bound      below which nothing is pending
 *   <counters>/<hash>    the sequencer's counter of the key
 *
 * Queries are over one field each: rows by `pendingAt` and by `place`, rows by `failedAt`, streams by `blockedAt`. All
 * other fields should be exempt from indexing; rows want a TTL policy on `expiresAt`, which only what is done has.
 * `pendingAt` is a map with one field, named after a shard (`s000` …), whose subfields inherit the one index of it
 * (https://firebase.google.com/docs/firestore/query-data/index-overview): a time that grows has as many ranges as there
 * are shards, and each takes about 500 writes a second (https://cloud.google.com/firestore/docs/best-practices#hotspots).
 */
import type { Firestore, Transaction } from '@google-cloud/firestore';
import { type Duration, toMilliseconds } from '../duration.ts';
import { refused } from '../errors.ts';
import { boundedCalls, type CallOptions } from '../firestore/calls.ts';
import { counterDocuments, counterOf } from '../sequence/firestore.ts';
import { sameFirestore } from '../firestore/copy.ts';
import { projectOf } from '../firestore/project.ts';
import { firestoreRelay } from './firestore-relay.ts';
import { newRowFields, rowOfFields } from './firestore-rows.ts';
import type { OutboxStore } from './outbox-store.ts';
import {
  checkOptions,
  clock as aClock,
  durationFrom,
  keptFor,
  text,
  transaction as aTransaction,
} from '../options.ts';
import { SHARDS, someShards } from '../shards.ts';

export type FirestoreOutboxOptions = Pick<CallOptions, 'callTimeout' | 'clock'> &
  Readonly<{
    /** Default `pubsub-guarantees-outbox-rows`. */
    rows?: string;
    /** Default `pubsub-guarantees-outbox-streams`. */
    streams?: string;
    /**
     * Collection of the counters, as for `firestoreCounters` (default `pubsub-guarantees-counters`): the two share
     * the counters of the same options.
     */
    counters?: string;
    /** As for `firestoreCounters` (default: none). */
    scope?: string;
    /**
     * How long rows stay once they are sent (default `8d`, at least `1m`, at most `36500d`): what a gap can be
     * repaired from, and how long the name of a call is known. Longer than a subscription keeps a message by default
     * (7 days).
     */
    retention?: Duration;
    /**
     * How many ranges of the index hold pending rows (default 16, about 4,000 rows a second, two writes of the
     * index each; 1 to 256). Each pass asks each of them. The same for all publishers and relays of the rows; a relay
     * must not have fewer than a publisher.
     */
    shards?: number;
  }>;

/** A document has at most 1,048,576 bytes with its name and field names: https://cloud.google.com/firestore/quotas#collections_documents_and_fields */
const MAX_MESSAGE_BYTES = 1_040_000;

/**
 * The caller makes the client and terminates it. Throws ConfigError for an invalid option.
 *
 * @example
 * const store = firestoreOutbox(new Firestore(), { retention: '14d' });
 */
export function firestoreOutbox(
  firestore: Firestore,
  options: FirestoreOutboxOptions = {},
): OutboxStore<Transaction> {
  sameFirestore(firestore);
  checkOptions<FirestoreOutboxOptions>(options, {
    callTimeout: durationFrom('1ms'),
    clock: aClock,
    rows: text,
    streams: text,
    counters: text,
    scope: text,
    retention: keptFor('1m'),
    shards: someShards,
  });
  const { rows = 'pubsub-guarantees-outbox-rows', streams = 'pubsub-guarantees-outbox-streams' } = options;
  const { retention = '8d', counters, scope, shards = SHARDS } = options;
  if (rows === streams) throw refused('rows', rows, `another collection than streams ("${streams}")`);
  const retentionMs = toMilliseconds(retention, 'retention');
  const rowsOf = firestore.collection(rows);
  const counterAt = counterDocuments(firestore, {
    ...(counters !== undefined && { collection: counters }),
    ...(scope !== undefined && { scope }),
  });

  return {
    ...firestoreRelay(firestore, boundedCalls(options), {
      rows: rowsOf,
      streams: firestore.collection(streams),
      counterAt,
      retentionMs,
      shards,
    }),
    project: () => projectOf(firestore),
    maxMessageBytes: MAX_MESSAGE_BYTES,
    async readSlot(transaction, firstRow, key) {
      aTransaction('transaction', transaction);
      const document = rowsOf.doc(firstRow);
      const [row, counter] = await (key === undefined
        ? transaction.getAll(document)
        : transaction.getAll(document, counterAt(key)));
      const data = row?.data();
      const head = counter && counterOf(counter.data(), counter.ref.path);
      const outboxed: unknown = counter?.get('outboxed') ?? 0;
      const committed = data && {
        count: Number(data['count']),
        ...placeIn(rowOfFields(firstRow, data)),
      };
      return {
        ...(committed !== undefined && { committed }),
        ...(head !== undefined && {
          head: { epoch: head.epoch, next: head.next, outboxed: Number(outboxed) },
        }),
      };
    },
    writeSlot(transaction, { rows: written, head, lease }) {
      for (const [index, row] of written.entries()) {
        const of = { count: written.length, index, lease, shards };
        transaction.create(rowsOf.doc(row.id), newRowFields(row, of));
      }
      if (head === undefined) return;
      const { key, epoch, next, outboxed, isNew } = head;
      if (isNew) transaction.create(counterAt(key), { v: 1, epoch, next, outboxed, requests: [] });
      else transaction.update(counterAt(key), { next, outboxed });
    },
  };
}

const placeIn = ({ place }: ReturnType<typeof rowOfFields>) => (place === undefined ? {} : { place });
