/** What the relay reads and writes in Firestore. State is judged by server timestamps against read times. */
import {
  type CollectionReference,
  type DocumentReference,
  FieldPath,
  FieldValue,
  type Firestore,
  Timestamp,
} from '@google-cloud/firestore';
import type { Calls } from '../firestore/calls.ts';
import { at, refusable, timestampAt, toTime, toVersion } from '../firestore/timestamps.ts';
import { counterOf } from '../sequence/firestore.ts';
import {
  createdMsOf,
  isWritersLease,
  leaseFields,
  leaseOf,
  LOOKED_FIELDS,
  lookedOf,
  nextTryOf,
  PENDING_FIELDS,
  pendingRowOf,
  placeOf,
  placesEnd,
  rowOfFields,
  sentFields,
  shardPath,
  streamFields,
  streamId,
  streamRowOf,
  streamStateOf,
  watchFields,
  watchId,
} from './firestore-rows.ts';
import { firestoreGroups } from './firestore-groups.ts';
import { firestoreFailures } from './firestore-failures.ts';
import type { RelayStore } from './outbox-store.ts';

export type Places = Readonly<{
  rows: CollectionReference;
  streams: CollectionReference;
  counterAt: (key: string) => DocumentReference;
  retentionMs: number;
  shards: number;
}>;

/** So that what was committed a moment ago is among what is due, whatever the way of a reply took. */
const DUE_MARGIN_MS = 1_000;

export function firestoreRelay(
  firestore: Firestore,
  calls: Calls,
  { rows, streams, counterAt, retentionMs, shards }: Places,
): RelayStore {
  const { call, clock } = calls;
  const bound = streams.doc('bound');
  const sent = () => sentFields(clock.now(), retentionMs);
  const unlessRefused = refusable(calls);
  // The server's clock minus this process's, from the latest read: it says until when rows are due.
  let skewMs = 0;
  const seen = (readTime: Timestamp): number => {
    skewMs = readTime.toMillis() - clock.now();
    return readTime.toMillis();
  };

  return {
    readStream: (ref) =>
      call('read of a stream', async () => {
        const snapshot = await streams.doc(streamId(ref)).get();
        const [data, { updateTime, readTime }] = [snapshot.data(), snapshot];
        return {
          state: data === undefined ? undefined : streamStateOf(snapshot.id, data),
          version: updateTime === undefined ? undefined : toVersion(updateTime),
          nowMs: readTime.toMillis(),
        };
      }),
    writeStream: (ref, version, state, ids, { parked = [], isOver } = {}) =>
      unlessRefused('write of a stream', async () => {
        const batch = firestore.batch();
        const document = streams.doc(streamId(ref));
        if (version === undefined) batch.create(document, streamFields(ref, state));
        else batch.update(document, streamFields(ref, state), at(version));
        for (const id of ids) batch.update(rows.doc(id), sent());
        for (const id of parked) batch.update(rows.doc(id), { pendingAt: FieldValue.delete() });
        const watch = rows.doc(watchId(ref));
        if (isOver) batch.delete(watch);
        else if (state.parkedMs !== undefined && state.owner === undefined)
          batch.set(watch, watchFields(ref, state));
        return (await batch.commit())[0];
      }),
    after: (ref, number, limit) =>
      call('query of rows', async () => {
        const query = rows
          .where('place', '>', placeOf(ref, number))
          .where('place', '<', placesEnd(ref))
          .orderBy('place')
          .limit(limit);
        return (await query.get()).docs.map((document) => streamRowOf(document, ref));
      }),
    streamOf: (key) =>
      call('read of a counter', async () => {
        const snapshot = await counterAt(key).get();
        const counter = counterOf(snapshot.data(), snapshot.ref.path);
        return counter === undefined ? undefined : { key, epoch: counter.epoch };
      }),
    bound: () =>
      call('read of the bound', async () => {
        const snapshot = await bound.get();
        seen(snapshot.readTime);
        const at: unknown = snapshot.get('at');
        return at instanceof Timestamp ? at.toMillis() : 0;
      }),
    raiseBound: (boundMs) =>
      call('write of the bound', () =>
        firestore.runTransaction(async (transaction) => {
          const before: unknown = (await transaction.get(bound)).get('at');
          if (before instanceof Timestamp && before.toMillis() >= boundMs) return;
          transaction.set(bound, { v: 1, at: timestampAt(boundMs) });
        }),
      ),
    shards,
    pending: (shard, fromMs, after, limit) =>
      call('query of pending rows', async () => {
        const path = shardPath(shard);
        const due = rows
          .where(path, '>=', timestampAt(fromMs))
          .where(path, '<=', timestampAt(Math.max(fromMs, clock.now() + skewMs + DUE_MARGIN_MS)))
          .orderBy(path)
          .orderBy(FieldPath.documentId())
          .select(...PENDING_FIELDS)
          .limit(limit);
        const query = after === undefined ? due : due.startAfter(...cursorOf(after));
        const { docs, readTime } = await query.get();
        const last = docs.at(-1);
        return {
          rows: docs.map((document) => pendingRowOf(document, shard)),
          readMs: seen(readTime),
          ...(docs.length === limit && last && { next: `${toVersion(last.get(path))}/${last.id}` }),
        };
      }),
    countBlocked: () =>
      call('count of blocked streams', async () => {
        const blocked = streams.orderBy('blockedAt', 'desc').where('blockedAt', '>', new Timestamp(0, 0));
        return (await blocked.count().get()).data().count;
      }),
    look: (id) =>
      call('look at a row', async () => {
        const [row] = await firestore.getAll(rows.doc(id), { fieldMask: [...LOOKED_FIELDS] });
        const data = row?.data();
        if (row === undefined || data?.['state'] !== 'pending') return undefined;
        return { createdMs: createdMsOf(row), ...lookedOf(id, data, row.readTime.toMillis()) };
      }),
    async claim(id, owner, leaseMs, { fromWriter = false } = {}) {
      const snapshot = await call('read of a row', () => rows.doc(id).get());
      const [data, { updateTime, readTime }] = [snapshot.data(), snapshot];
      if (data === undefined || updateTime === undefined || data['state'] !== 'pending') return undefined;
      const nowMs = readTime.toMillis();
      const lease = leaseOf(data);
      const isBusy = lease.owner !== undefined && lease.owner !== owner && lease.untilMs > nowMs;
      const isTaken = isBusy && !(fromWriter && isWritersLease(data));
      if (isTaken || nextTryOf(data) > nowMs) return undefined;
      const row = rowOfFields(id, data);
      const precondition = { lastUpdateTime: updateTime };
      // Refused may be one's own write, applied before: then no process has the row until the lease is over.
      const version = await unlessRefused('lease of a row', () =>
        rows.doc(id).update(leaseFields({ owner, leaseMs }), precondition),
      );
      if (version === undefined) return undefined;
      return { row, version, attempts: Number(data['attempts']), createdMs: createdMsOf(snapshot), nowMs };
    },
    async markSent(ids) {
      const writer = (id: string) => unlessRefused('mark of a row', () => rows.doc(id).update(sent()));
      await Promise.all(ids.map(writer));
    },
    ...firestoreGroups(firestore, calls, rows, shards),
    ...firestoreFailures(firestore, call, rows, streams),
  };
}

function cursorOf(text: string): [Timestamp, string] {
  const slash = text.indexOf('/');
  return [toTime(text.slice(0, slash)), text.slice(slash + 1)];
}
