/**
 * The inbox in Firestore. The claim is completed in the handler's own commit under the update time that its holder has
 * seen: a precondition, so the transaction reads and locks nothing of ours while the handler runs.
 *
 *   <claims>/<key>           the record of the message, as `dedup` keeps it
 *   <rows>/<key>.<…>.<n>     an outgoing message: a row of the outbox, removed once it is published
 *
 * Names of rows begin with a hash, so that no increasing name puts all writes on one server. Rows have no expiry: they
 * are work, and any relay of the outbox publishes them.
 */
import type { Firestore, Transaction } from '@google-cloud/firestore';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { sameFirestore } from '../firestore/copy.ts';
import { documentInbox, type InboxDocuments } from './document-inbox.ts';
import { at } from '../firestore/timestamps.ts';
import { completionOf, firestoreDocuments } from './firestore-documents.ts';
import { transactionFailure } from '../firestore/errors.ts';
import type { InboxStore } from './inbox-store.ts';
import { firestoreOutbox } from '../outbox/firestore.ts';
import type { OutboxStore } from '../outbox/outbox-store.ts';
import { checkOptions, clock as aClock, durationFrom, port, text, whole } from '../options.ts';

export type FirestoreInboxOptions = Readonly<{
  /** Records of messages, shared with `firestoreClaims`: default `pubsub-guarantees-claims`. */
  collection?: string;
  /** Where outgoing messages wait: default `firestoreOutbox(firestore)`. One relay over it serves both. */
  outbox?: OutboxStore<Transaction>;
  /** Bound on each operation but the transaction, with all its calls (default `5s`, at least `1ms`). */
  callTimeout?: Duration;
  /**
   * How long one attempt, and so one call of the handler, may take: default `60s`, `1ms` to `270s`. Firestore ends a
   * transaction after 270 s, and after 60 s in which it gets no request of it:
   * https://cloud.google.com/firestore/quotas#writes_and_transactions
   */
  attemptTimeout?: Duration;
  /**
   * How often the client starts a transaction at most, the first time included (default 5, the client's own; at least
   * 1).
   */
  maxAttempts?: number;
  /** Default: the machine's. */
  clock?: Clock;
}>;

const LONGEST_TRANSACTION = '270s';

/**
 * The caller makes the client and terminates it. Throws ConfigError for an invalid option.
 *
 * A commit (the handler's writes, the record, the outgoing messages) has at most 10 MiB, and a document at most 500 field
 * transforms. The older limit of 500 writes is gone; each document and each index entry still costs time.
 *
 * @example
 * const store = firestoreInbox(new Firestore(), { attemptTimeout: '30s' });
 */
export function firestoreInbox(
  firestore: Firestore,
  options: FirestoreInboxOptions = {},
): InboxStore<Transaction> {
  sameFirestore(firestore);
  checkOptions<FirestoreInboxOptions>(options, {
    collection: text,
    outbox: port(['writeSlot', 'claim'], 'a store of an outbox, for example firestoreOutbox(firestore)'),
    callTimeout: durationFrom('1ms'),
    attemptTimeout: durationFrom('1ms', LONGEST_TRANSACTION),
    maxAttempts: whole(1),
    clock: aClock,
  });
  const { collection = 'pubsub-guarantees-claims' } = options;
  const { callTimeout = '5s', attemptTimeout = '60s', maxAttempts = 5, clock = systemClock() } = options;
  const transactionMs = toMilliseconds(attemptTimeout, 'attemptTimeout');
  const claims = sameFirestore(firestore).collection(collection);
  const { outbox = firestoreOutbox(firestore, { callTimeout, clock }) } = options;
  const documents: InboxDocuments<Transaction> = {
    ...firestoreDocuments(claims, clock),
    transactionMs,
    maxMessageBytes: outbox.maxMessageBytes,
    outbox,
    async transact(attempt) {
      let thrown: unknown;
      try {
        await firestore.runTransaction(
          async (transaction) => {
            thrown = undefined;
            try {
              const { held, rows: written } = await attempt(transaction);
              const { key, owner, leaseMs } = held.request;
              transaction.update(claims.doc(key), completionOf(held.request, clock), at(held.revision));
              if (written.length > 0)
                outbox.writeSlot(transaction, { rows: written, lease: { owner, leaseMs } });
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
  return documentInbox(documents, clock, toMilliseconds(callTimeout, 'callTimeout'));
}
