/**
 * The inbox in Firestore. The claim is completed in the handler's own commit under the update time that its holder has
 * seen: a precondition, so the transaction reads and locks nothing of ours while the handler runs.
 *
 *   <claims>/<key>           the record of the message, as `dedup` keeps it
 *   <outbox>/<key>.<…>.<n>   an outgoing message: v = 1 · state = "pending" · key · topic · message = bytes, as
 *                            `encodeMessage` writes them · createdAt = server timestamp; removed once it is published
 *
 * Names of rows begin with a hash, so that no increasing name or indexed time puts all writes on one server; nothing
 * needs an index, and all fields of both collections should be exempt from indexing. Rows have no expiry: they are work.
 */
import {
  type CollectionReference,
  FieldPath,
  FieldValue,
  type Firestore,
  type QueryDocumentSnapshot,
  type QuerySnapshot,
  type Timestamp,
  type Transaction,
} from '@google-cloud/firestore';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { ConfigError } from '../errors.ts';
import { sameFirestore } from '../firestore/copy.ts';
import { documentInbox, type InboxDocuments } from './document-inbox.ts';
import { at, completionOf, firestoreDocuments } from './firestore-documents.ts';
import { transactionFailure, unavailable } from './firestore-errors.ts';
import type { InboxStore, OutboxRow, OutboxRows, PendingRow } from './inbox-store.ts';
import { anything, checkOptions, clock as aClock, duration, text } from '../options.ts';

export type FirestoreInboxOptions = Readonly<{
  /** Records of messages, shared with `firestoreClaims`: default `pubsub-guarantees-claims`. */
  collection?: string;
  /** Outgoing messages, default `pubsub-guarantees-outbox`. */
  outbox?: string;
  /** Bound on each operation but the transaction, default `5s`. */
  timeout?: Duration;
  /**
   * How long one call of the handler may take, default `60s`, at most `270s`. Firestore ends a transaction after 270 s,
   * and after 60 s in which it hears nothing of it: https://cloud.google.com/firestore/quotas#writes_and_transactions
   */
  transactionTime?: Duration;
  /** How often the client runs a transaction that met another one, default 5, the client's own. */
  maxAttempts?: number;
  clock?: Clock;
}>;

const VERSION = 1;
const LONGEST_TRANSACTION_MS = 270_000;
/** A document has at most 1,048,576 bytes with its name and field names: https://cloud.google.com/firestore/quotas#collections_documents_and_fields */
const MAX_MESSAGE_BYTES = 1_040_000;
/** Deletes in one commit; far below the 10 MiB of a request. */
const REMOVALS = 500;

/**
 * The caller makes the client and terminates it. Throws ConfigError for an invalid option.
 *
 * A commit (the handler's writes, the record, the outgoing messages) has at most 10 MiB, and a document at most 500 field
 * transforms. The older limit of 500 writes is gone; each document and each index entry still costs time.
 */
export function firestoreInbox(
  firestore: Firestore,
  options: FirestoreInboxOptions = {},
): InboxStore<Transaction> {
  sameFirestore(firestore);
  checkOptions<FirestoreInboxOptions>(options, {
    collection: text,
    outbox: text,
    timeout: duration,
    transactionTime: duration,
    maxAttempts: anything,
    clock: aClock,
  });
  const { collection = 'pubsub-guarantees-claims', outbox = 'pubsub-guarantees-outbox' } = options;
  const { timeout = '5s', transactionTime = '60s', maxAttempts = 5, clock = systemClock() } = options;
  const transactionMs = toMilliseconds(transactionTime, 'transactionTime');
  if (transactionMs < 1 || transactionMs > LONGEST_TRANSACTION_MS) {
    const text = `transactionTime is ${transactionTime}; accepted: 1ms to ${LONGEST_TRANSACTION_MS} ms`;
    throw new ConfigError('INVALID_OPTION', text);
  }
  if (!Number.isSafeInteger(maxAttempts) || maxAttempts < 1) {
    const text = `maxAttempts is ${JSON.stringify(maxAttempts)}; accepted: a whole number from 1`;
    throw new ConfigError('INVALID_OPTION', text);
  }
  const claims = sameFirestore(firestore).collection(collection);
  const rows = firestore.collection(outbox);
  const documents: InboxDocuments<Transaction> = {
    ...firestoreDocuments(claims, clock),
    transactionMs,
    maxMessageBytes: MAX_MESSAGE_BYTES,
    rows: firestoreRows(firestore, rows),
    async transact(attempt) {
      let thrown: unknown;
      try {
        await firestore.runTransaction(
          async (transaction) => {
            thrown = undefined;
            try {
              const { held, rows: written } = await attempt(transaction);
              const { key } = held.request;
              transaction.update(claims.doc(key), completionOf(held.request, clock), at(held.revision));
              for (const row of written) transaction.create(rows.doc(row.id), fieldsOf(row));
            } catch (error) {
              thrown = error;
              throw error;
            }
          },
          { maxAttempts },
        );
      } catch (error) {
        throw error === thrown ? error : transactionFailure(error);
      }
    },
  };
  return documentInbox(documents, clock, toMilliseconds(timeout, 'timeout'));
}

function firestoreRows(firestore: Firestore, collection: CollectionReference): OutboxRows {
  const byName = collection.orderBy(FieldPath.documentId());
  const read = async (query: { get(): Promise<QuerySnapshot> }): Promise<readonly PendingRow[]> => {
    try {
      const { docs, readTime } = await query.get();
      return docs.map((document) => pendingOf(document, readTime));
    } catch (error) {
      throw unavailable(error);
    }
  };
  return {
    // A key has no dot, and the rest of a name nothing that comes after a tilde.
    of: (key) => read(byName.startAt(`${key}.`).endAt(`${key}.~`)),
    page: (after, limit) => read((after === undefined ? byName : byName.startAfter(after)).limit(limit)),
    async remove(ids) {
      for (let from = 0; from < ids.length; from += REMOVALS) {
        const batch = firestore.batch();
        for (const id of ids.slice(from, from + REMOVALS)) batch.delete(collection.doc(id));
        try {
          await batch.commit();
        } catch (error) {
          throw unavailable(error);
        }
      }
    },
  };
}

const fieldsOf = ({ key, topic, message }: OutboxRow) => ({
  v: VERSION,
  state: 'pending',
  key,
  topic,
  message,
  createdAt: FieldValue.serverTimestamp(),
});

/** Strict: what is not exactly ours is not published. */
function pendingOf(document: QueryDocumentSnapshot, readTime: Timestamp): PendingRow {
  const { id } = document;
  const ageMs = readTime.toMillis() - document.createTime.toMillis();
  const { v, state, key, topic, message } = document.data();
  if (v !== VERSION || state !== 'pending') {
    return { id, ageMs, what: `format version ${String(v)}, state ${String(state)}` };
  }
  if (typeof key !== 'string' || typeof topic !== 'string' || !(message instanceof Uint8Array)) {
    return { id, ageMs, what: 'a field is missing or of another type' };
  }
  return { id, ageMs, row: { id, key, topic, message } };
}
