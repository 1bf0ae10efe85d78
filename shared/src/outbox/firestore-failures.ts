/** The streams that are blocked in Firestore, and the rows without order that failed for good. */
import { type CollectionReference, FieldValue, type Firestore, Timestamp } from '@google-cloud/firestore';
import type { Calls } from '../firestore/calls.ts';
import { reopenedFields } from './firestore-rows.ts';
import type { RowFailure, RelayStore } from './outbox-store.ts';

export function firestoreFailures(
  firestore: Firestore,
  call: Calls['call'],
  rows: CollectionReference,
  streams: CollectionReference,
): Pick<RelayStore, 'listFailures' | 'reopen'> {
  return {
    listFailures: (limit) =>
      call('query of what is blocked', async () => {
        const [blocked, failed] = await Promise.all([
          streams
            .orderBy('blockedAt', 'desc')
            .where('blockedAt', '>', new Timestamp(0, 0))
            .limit(limit)
            .get(),
          rows.orderBy('failedAt', 'desc').limit(limit).select('failure').get(),
        ]);
        return {
          streams: blocked.docs.map((document) => ({
            ref: { key: String(document.get('key')), epoch: String(document.get('epoch')) },
            blocked: document.get('blocked') as RowFailure,
            sent: Number(document.get('sent')),
          })),
          rows: failed.docs.map((document) => ({
            id: document.id,
            code: String(document.get('failure.code')),
            text: String(document.get('failure.text')),
          })),
        };
      }),
    reopen: (id) =>
      call('write of a row', () =>
        firestore.runTransaction(async (transaction) => {
          if ((await transaction.get(rows.doc(id))).get('state') !== 'failed') return false;
          transaction.update(rows.doc(id), {
            state: 'pending',
            attempts: 0,
            nextTryAt: null,
            ...reopenedFields(),
            failedAt: FieldValue.delete(),
            failure: FieldValue.delete(),
          });
          return true;
        }),
      ),
  };
}
