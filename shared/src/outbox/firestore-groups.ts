/**
 * Rows without order in Firestore that failed or wait, and those of a group: the names of its rows sort together, so
 * they are found without an index.
 */
import { type CollectionReference, FieldPath, FieldValue, type Firestore } from '@google-cloud/firestore';
import type { Calls } from '../firestore/calls.ts';
import { freeMsOf, leaseFields, movedFields, rowOfFields } from './firestore-rows.ts';
import { at, refusable, timestampAt } from '../firestore/timestamps.ts';
import type { RelayStore } from './outbox-store.ts';

/** Deletes in one commit; far below the 10 MiB of a request. */
const REMOVALS = 500;

export function firestoreGroups(
  firestore: Firestore,
  calls: Calls,
  rows: CollectionReference,
  shards: number,
): Pick<RelayStore, 'reschedule' | 'remove' | 'first' | 'behind' | 'defer'> {
  const { call } = calls;
  const unlessRefused = refusable(calls);
  const byName = rows.orderBy(FieldPath.documentId());
  return {
    async reschedule(id, version, how, { removed, next } = { removed: [], next: id }) {
      const failed = 'code' in how;
      const fields = failed
        ? { state: 'failed', pendingAt: FieldValue.delete(), failedAt: FieldValue.serverTimestamp() }
        : {
            attempts: how.attempts,
            nextTryAt: how.nextTryMs === 0 ? null : timestampAt(how.nextTryMs),
            ...movedFields(id, how.nextTryMs, shards),
          };
      const failure = failed ? { failure: { code: how.code, text: how.text } } : {};
      await unlessRefused('write of a row', async () => {
        const batch = firestore.batch();
        const all = { ...fields, ...failure, ...leaseFields(undefined) };
        if (next === id && version !== undefined) batch.update(rows.doc(id), all, at(version));
        else batch.update(rows.doc(next), all);
        for (const gone of removed) {
          if (gone === id && version !== undefined) batch.delete(rows.doc(gone), at(version));
          else batch.delete(rows.doc(gone));
        }
        return (await batch.commit())[0];
      });
    },
    async remove(ids) {
      for (let from = 0; from < ids.length; from += REMOVALS) {
        const batch = firestore.batch();
        for (const id of ids.slice(from, from + REMOVALS)) batch.delete(rows.doc(id));
        await call('removal of rows', () => batch.commit());
      }
    },
    first: (prefix) =>
      call('look for the rows of a delivery', async () => {
        const named = byName.startAt(prefix).endAt(`${prefix}~`);
        const { docs, readTime } = await named
          .select('state', 'owner', 'leasedAt', 'leaseMs', 'nextTryAt')
          .limit(1)
          .get();
        const [row] = docs;
        if (row === undefined) return undefined;
        const isFailed = row.get('state') === 'failed';
        return { id: row.id, isFailed, freeMs: freeMsOf(row.data()), nowMs: readTime.toMillis() };
      }),
    behind: (group, id, limit) =>
      call('query of the rows of a delivery', async () => {
        const { docs } = await byName.startAfter(id).endAt(`${group}.~`).limit(limit).get();
        return docs.map((document) => rowOfFields(document.id, document.data()));
      }),
    async defer({ id, version }, untilMs) {
      await unlessRefused('write of a row', () =>
        rows.doc(id).update(movedFields(id, untilMs, shards), at(version)),
      );
    },
  };
}
