/**
 * Countermeasures against what others see of a saga that has not ended, on documents of the caller's own: a semantic lock,
 * and a value that is read again. Both are reads and writes of the caller's transaction, so they are committed with its
 * work or not at all, and outlast the process that made them.
 *
 * A lock is a field of the document. It has no lease, for a saga ends; whatever does not look at it is not kept out.
 */
import {
  type CollectionReference,
  type DocumentReference,
  type DocumentSnapshot,
  FieldValue,
  type Transaction,
} from '@google-cloud/firestore';
import { ConfigError } from '../errors.ts';
import { toVersion } from '../firestore/timestamps.ts';
import { checkOptions, port, text } from '../options.ts';
import type { SagaStep } from './participant.ts';

export type FirestoreLocksOptions = Readonly<{
  /** The field that holds the lock, default `lockedBy`. */
  field?: string;
}>;

export type SemanticLock = Readonly<{
  /** `missing`: there is no such document. */
  status: 'free' | 'mine' | 'taken' | 'missing';
  /** The document as it was read: the caller need not read it again. */
  snapshot: DocumentSnapshot;
  /** The saga that has it, `<saga>/<sagaId>`; absent where none has. */
  heldBy?: string;
  /** Marks the document; does nothing where it is marked already. Throws ConfigError where it is another's, or missing. */
  take(): void;
  /** Takes the mark away; does nothing where it is another's, or none. */
  release(): void;
}>;

export type FirestoreLocks = Readonly<{
  /** Reads the document in the transaction, so before its first write. */
  read(transaction: Transaction, id: string, saga: Pick<SagaStep, 'saga' | 'id'>): Promise<SemanticLock>;
  /** For operators: documents that are locked by this instance. */
  heldBy(saga: string, id: string): Promise<readonly DocumentReference[]>;
}>;

/**
 * Semantic locks on the documents of one collection. Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * const locks = firestoreLocks(firestore.collection('accounts'));
 * // in `do` of the first step that works on the account
 * const lock = await locks.read(transaction, accountId, saga);
 * if (lock.status === 'taken') return refused('LOCKED');
 * lock.take();
 * // in its `undo`, and in the last retriable step
 * (await locks.read(transaction, accountId, saga)).release();
 */
export function firestoreLocks(
  collection: CollectionReference,
  options: FirestoreLocksOptions = {},
): FirestoreLocks {
  port(['doc', 'where'], "a collection, for example firestore.collection('orders')")(
    'collection',
    collection,
  );
  checkOptions<FirestoreLocksOptions>(options, { field: text });
  const { field = 'lockedBy' } = options;
  const nameOf = ({ saga, id }: Pick<SagaStep, 'saga' | 'id'>): string => `${saga}/${id}`;

  return {
    async read(transaction, id, saga) {
      const own = nameOf(saga);
      const snapshot = await transaction.get(collection.doc(id));
      const value: unknown = snapshot.get(field);
      const heldBy = typeof value === 'string' ? value : undefined;
      const others = heldBy === undefined ? 'free' : 'taken';
      const status = heldBy === own ? 'mine' : others;
      return {
        status: snapshot.exists ? status : 'missing',
        snapshot,
        ...(heldBy !== undefined && { heldBy }),
        take() {
          if (!snapshot.exists || status === 'taken') {
            const what = snapshot.exists ? `is locked by ${heldBy}` : 'does not exist';
            throw new ConfigError(
              'LOCK_TAKEN',
              `${snapshot.ref.path} ${what}; accepted: a lock that is free`,
            );
          }
          if (status === 'free') transaction.update(snapshot.ref, { [field]: own });
        },
        release() {
          if (status === 'mine') transaction.update(snapshot.ref, { [field]: FieldValue.delete() });
        },
      };
    },
    async heldBy(saga, id) {
      text('saga', saga);
      text('id', id);
      const { docs } = await collection.where(field, '==', nameOf({ saga, id })).select().get();
      return docs.map(({ ref }) => ref);
    },
  };
}

/**
 * Another with every write that changes the document; empty where there is none. For the body of a command.
 *
 * @example
 * const seen = versionOf(await firestore.doc('prices/17').get());
 */
export function versionOf(snapshot: DocumentSnapshot): string {
  port(['get', 'data'], 'a snapshot of a document')('snapshot', snapshot);
  return snapshot.updateTime === undefined ? '' : toVersion(snapshot.updateTime);
}

/**
 * The document, if it is still the version that was seen before; undefined where it has been changed since. Reads in the
 * transaction, so before its first write.
 *
 * @example
 * const seen = versionOf(await firestore.doc('prices/17').get()); // in the program that starts the saga
 * const isSame = await firestore.runTransaction(
 *   async (transaction) => (await reread(transaction, firestore.doc('prices/17'), seen)) !== undefined,
 * );
 */
export async function reread(
  transaction: Transaction,
  document: DocumentReference,
  version: string,
): Promise<DocumentSnapshot | undefined> {
  port(['get'], 'the transaction of a step')('transaction', transaction);
  const snapshot = await transaction.get(document);
  return versionOf(snapshot) === version ? snapshot : undefined;
}
