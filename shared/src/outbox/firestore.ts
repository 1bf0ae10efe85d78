/**
 * The outbox in Firestore.
 *
 *   <rows>/<hash>        a message, until its retention is over: state pending → sent | failed
 *   <streams>/<hash>     a stream: the last number that was published, its lease, why it is halted
 *   <streams>/bound      below which nothing is pending
 *   <counters>/<hash>    the sequencer's counter of the key
 *
 * Queries are over one field each: rows by `pendingAt` and by `place`, rows by `failedAt`, streams by `haltedAt`. All
 * other fields should be exempt from indexing; rows want a TTL policy on `expiresAt`, which only what is done has.
 * `pendingAt` grows with time and so takes about 500 writes a second in one collection:
 * https://cloud.google.com/firestore/docs/best-practices#hotspots; more than that wants several collections.
 */
import type { Firestore, Transaction } from '@google-cloud/firestore';
import { type Duration, toMilliseconds } from '../duration.ts';
import { ConfigError } from '../errors.ts';
import { boundedCalls, type CallOptions } from '../firestore/calls.ts';
import { counterDocuments, counterOf } from '../sequence/firestore.ts';
import { sameFirestore } from '../firestore/copy.ts';
import { firestoreRelay } from './firestore-relay.ts';
import { newRowFields, rowOfFields } from './firestore-rows.ts';
import type { OutboxStore } from './outbox-store.ts';
import { checkOptions, clock as aClock, duration, text } from '../options.ts';

export type FirestoreOutboxOptions = Pick<CallOptions, 'callTimeout' | 'clock'> &
  Readonly<{
    /** Default `pubsub-guarantees-outbox-rows`. */
    rows?: string;
    /** Default `pubsub-guarantees-outbox-streams`. */
    streams?: string;
    /** As for `firestoreCounters`: the two share the counters of the same options. */
    counters?: string;
    scope?: string;
    /**
     * How long rows stay once they are sent, default `8d`: what a gap can be repaired from, and how long the name of a
     * call is known. Longer than a subscription keeps a message by default (7 days).
     */
    retention?: Duration;
  }>;

/** A document has at most 1,048,576 bytes with its name and field names: https://cloud.google.com/firestore/quotas#collections_documents_and_fields */
const MAX_MESSAGE_BYTES = 1_040_000;

/** The caller makes the client and terminates it. Throws ConfigError for an invalid option. */
export function firestoreOutbox(
  firestore: Firestore,
  options: FirestoreOutboxOptions = {},
): OutboxStore<Transaction> {
  sameFirestore(firestore);
  checkOptions<FirestoreOutboxOptions>(options, {
    callTimeout: duration,
    clock: aClock,
    rows: text,
    streams: text,
    counters: text,
    scope: text,
    retention: duration,
  });
  const { rows = 'pubsub-guarantees-outbox-rows', streams = 'pubsub-guarantees-outbox-streams' } = options;
  const { retention = '8d', counters, scope } = options;
  const retentionMs = toMilliseconds(retention, 'retention');
  if (retentionMs < 60_000) {
    throw new ConfigError('INVALID_OPTION', `retention is ${retention}; accepted: at least 1m`);
  }
  const rowsOf = sameFirestore(firestore).collection(rows);
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
    }),
    maxMessageBytes: MAX_MESSAGE_BYTES,
    async readSlot(transaction, firstRow, key) {
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
      for (const row of written) {
        transaction.create(rowsOf.doc(row.id), newRowFields(row, written.length, lease));
      }
      if (head === undefined) return;
      const { key, epoch, next, outboxed, isNew } = head;
      if (isNew) transaction.create(counterAt(key), { v: 1, epoch, next, outboxed, requests: [] });
      else transaction.update(counterAt(key), { next, outboxed });
    },
  };
}

const placeIn = ({ place }: ReturnType<typeof rowOfFields>) => (place === undefined ? {} : { place });
