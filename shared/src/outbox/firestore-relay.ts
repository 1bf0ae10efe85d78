/** What the relay reads and writes in Firestore. State is judged by server timestamps against read times. */
import {
  type CollectionReference,
  type DocumentReference,
  FieldPath,
  FieldValue,
  type Firestore,
  type Precondition,
  Timestamp,
  type WriteResult,
} from '@google-cloud/firestore';
import { type Calls, isRefused } from '../firestore/calls.ts';
import { counterOf } from '../sequence/firestore.ts';
import {
  createdMsOf,
  leaseFields,
  leaseOf,
  nextTryOf,
  PENDING_FIELDS,
  pendingRowOf,
  placeOf,
  placesEnd,
  rowOfFields,
  sentFields,
  streamFields,
  streamId,
  streamRowOf,
  streamStateOf,
} from './firestore-rows.ts';
import { firestoreTrouble } from './firestore-trouble.ts';
import type { RelayStore } from './outbox-store.ts';

export type Places = Readonly<{
  rows: CollectionReference;
  streams: CollectionReference;
  counterAt: (key: string) => DocumentReference;
  retentionMs: number;
}>;

export function firestoreRelay(
  firestore: Firestore,
  { call, clock }: Calls,
  { rows, streams, counterAt, retentionMs }: Places,
): RelayStore {
  const bound = streams.doc('bound');
  const sent = () => sentFields(clock.now(), retentionMs);
  /** The document's new version; undefined when the write was refused. */
  const unlessRefused = async (
    name: string,
    write: () => Promise<WriteResult | undefined>,
  ): Promise<string | undefined> => {
    try {
      const result = await call(name, write);
      return result === undefined ? undefined : toVersion(result.writeTime);
    } catch (error) {
      if (isRefused(error)) return undefined;
      throw error;
    }
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
    writeStream: (ref, version, state, ids) =>
      unlessRefused('write of a stream', async () => {
        const batch = firestore.batch();
        const document = streams.doc(streamId(ref));
        if (version === undefined) batch.create(document, streamFields(ref, state));
        else batch.update(document, streamFields(ref, state), at(version));
        for (const id of ids) batch.update(rows.doc(id), sent());
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
        const at: unknown = (await bound.get()).get('at');
        return at instanceof Timestamp ? at.toMillis() : 0;
      }),
    raiseBound: (boundMs) =>
      call('write of the bound', () =>
        firestore.runTransaction(async (transaction) => {
          const before: unknown = (await transaction.get(bound)).get('at');
          if (before instanceof Timestamp && before.toMillis() >= boundMs) return;
          transaction.set(bound, { v: 1, at: Timestamp.fromMillis(boundMs) });
        }),
      ),
    pending: (fromMs, after, limit) =>
      call('query of pending rows', async () => {
        const oldest = rows
          .where('pendingAt', '>=', Timestamp.fromMillis(fromMs))
          .orderBy('pendingAt')
          .orderBy(FieldPath.documentId())
          .select(...PENDING_FIELDS)
          .limit(limit);
        const query = after === undefined ? oldest : oldest.startAfter(...cursorOf(after));
        const { docs, readTime } = await query.get();
        const last = docs.at(-1);
        return {
          rows: docs.map(pendingRowOf),
          readMs: readTime.toMillis(),
          ...(docs.length === limit && last && { next: `${toVersion(last.get('pendingAt'))}/${last.id}` }),
        };
      }),
    look: (id) =>
      call('look at a row', async () => {
        const [row] = await firestore.getAll(rows.doc(id), { fieldMask: ['state', 'createdAt'] });
        if (row?.get('state') !== 'pending') return undefined;
        return { createdMs: createdMsOf(row), nowMs: row.readTime.toMillis() };
      }),
    async claim(id, owner, leaseMs) {
      const snapshot = await call('read of a row', () => rows.doc(id).get());
      const [data, { updateTime, readTime }] = [snapshot.data(), snapshot];
      if (data === undefined || updateTime === undefined || data['state'] !== 'pending') return undefined;
      const nowMs = readTime.toMillis();
      const lease = leaseOf(data);
      const isBusy = lease.owner !== undefined && lease.untilMs > nowMs;
      if (isBusy || nextTryOf(data) > nowMs) return undefined;
      const row = rowOfFields(id, data);
      const precondition = { lastUpdateTime: updateTime };
      // Refused may be one's own write, applied before: then nobody has the row until the lease is over.
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
    async putOff(id, version, how) {
      const failed = 'code' in how;
      const fields = failed
        ? { state: 'failed', pendingAt: FieldValue.delete(), failedAt: FieldValue.serverTimestamp() }
        : { attempts: how.attempts, nextTryAt: Timestamp.fromMillis(Math.ceil(how.nextTryMs)) };
      const failure = failed ? { failure: { code: how.code, text: how.text } } : {};
      await unlessRefused('write of a row', () =>
        rows.doc(id).update({ ...fields, ...failure, ...leaseFields(undefined) }, at(version)),
      );
    },
    ...firestoreTrouble(firestore, call, rows, streams),
  };
}

/** An update time: seconds, then nine digits of nanoseconds. */
const toVersion = (time: Timestamp): string => `${time.seconds}${String(time.nanoseconds).padStart(9, '0')}`;
const toTime = (version: string): Timestamp =>
  new Timestamp(Number(version.slice(0, -9)), Number(version.slice(-9)));
const at = (version: string): Precondition => ({ lastUpdateTime: toTime(version) });

function cursorOf(text: string): [Timestamp, string] {
  const slash = text.indexOf('/');
  return [toTime(text.slice(0, slash)), text.slice(slash + 1)];
}
