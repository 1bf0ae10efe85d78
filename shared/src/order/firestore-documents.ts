/**
 * How streams and held messages are stored in Firestore, and read back. A document of another format, or one that
 * another program has written to, is refused as a whole: a pointer that is no number would make every comparison false.
 *
 * A lease's end is never stored: `leasedAt` is the server's commit time, and readers add the length and compare with
 * their read time, so no process's clock takes part. The other times are worked out from read times.
 */
import {
  type DocumentData,
  type DocumentReference,
  type DocumentSnapshot,
  FieldValue,
  Timestamp,
} from '@google-cloud/firestore';
import { TransientError } from '../errors.ts';
import type { PayloadRef } from '../payload/payload-store.ts';
import { STREAM_FORMAT, type StreamPatch, type StreamState } from './stream-state.ts';
import type { HeldMessage, ListedStream, StreamRef } from './stream-store.ts';

/**
 * `shard` precedes `readyAt` and `waitingSince`, which are indexed: see `firestore-lists.ts`.
 */
export function streamFields(patch: StreamPatch, shard: string): DocumentData {
  const {
    lease,
    nextTryAt,
    waitingSince,
    repairedAt,
    readyAt,
    run,
    blocked,
    skipped,
    recentHashes,
    ...plain
  } = patch;
  return {
    ...plain,
    ...(lease !== undefined && {
      owner: lease?.owner ?? null,
      leaseMs: lease?.lengthMs ?? 0,
      leaseTo: lease?.to ?? 0,
      leasedAt: lease === null ? null : FieldValue.serverTimestamp(),
    }),
    ...(nextTryAt !== undefined && { nextTryAt: timestamp(nextTryAt) }),
    ...(repairedAt !== undefined && { repairedAt: timestamp(repairedAt) }),
    ...(waitingSince !== undefined && { waitingSince: sortable(shard, waitingSince) }),
    ...(readyAt !== undefined && { readyAt: sortable(shard, readyAt) }),
    ...(blocked !== undefined && {
      blocked: blocked && { at: sortable('', blocked.atMs), code: blocked.code, text: blocked.text },
    }),
    // Joined: a list would be one index entry for each element, where an index is left on.
    ...(run !== undefined && { run: run && { number: run.number, hashes: run.hashes.join(' ') } }),
    ...(recentHashes !== undefined && { recentHashes: recentHashes.join(' ') }),
    ...(skipped !== undefined && { skipped: skipped.map((range) => ({ ...range })) }),
  };
}

/** A whole document, for a stream that has none. */
export function newStreamFields(
  ref: StreamRef,
  base: StreamState,
  patch: StreamPatch,
  shard: string,
): DocumentData {
  const { lease: _, ...fields } = base;
  return { ...streamFields({ ...fields, lease: null, ...patch }, shard), v: STREAM_FORMAT, ...ref };
}

/**
 * Throws TransientError `UNREADABLE_STATE`: the messages wait until a reader knows the format, or the document is
 * corrected.
 */
export function streamState(snapshot: DocumentSnapshot): StreamState {
  const data = checked(snapshot, STREAM_FIELDS);
  const leasedAt = data.leasedAt instanceof Timestamp ? micros(data.leasedAt) : undefined;
  return {
    last: data.last as number,
    epoch: data.epoch as string | null,
    commit: data.commit as string,
    held: data.held as number,
    lease:
      leasedAt === undefined || data.owner === null
        ? null
        : {
            owner: data.owner as string,
            untilMs: Math.ceil(leasedAt / 1_000) + (data.leaseMs as number),
            to: data.leaseTo as number,
          },
    attempts: data.attempts as number,
    suspectsTo: data.suspectsTo as number,
    nextTryAt: millis(data.nextTryAt) ?? 0,
    waitingSince: sortedMillis(data.waitingSince),
    gapAt: data.gapAt as number | null,
    repairedAt: millis(data.repairedAt),
    readyAt: sortedMillis(data.readyAt),
    run: data.run && { number: data.run.number, hashes: split(data.run.hashes) },
    blocked: data.blocked && {
      code: data.blocked.code,
      text: data.blocked.text,
      atMs: sortedMillis(data.blocked.at) ?? 0,
    },
    skipped: data.skipped as StreamState['skipped'],
    recentHashes: split(data.recentHashes),
    ...(data.opening !== undefined && { opening: data.opening as number }),
  };
}

export const heldFields = (held: HeldMessage): DocumentData => ({
  v: STREAM_FORMAT,
  number: held.number,
  hash: held.hash,
  source: held.source,
  message: Buffer.from(held.message),
  ...(held.payload !== undefined && { payload: { ...held.payload } }),
});

/** Throws as `streamState` does. */
export function heldMessage(snapshot: DocumentSnapshot): HeldMessage {
  const data = checked(snapshot, HELD_FIELDS);
  return {
    number: data.number as number,
    hash: data.hash as string,
    source: data.source as string,
    message: data.message as Uint8Array,
    ...(data.payload !== undefined && { payload: data.payload as PayloadRef }),
  };
}

/** `documentOf` says where a stream's document is: one that says that it belongs to another is not used. */
export function listedStream(
  snapshot: DocumentSnapshot,
  consumer: string,
  documentOf: (ref: StreamRef) => DocumentReference,
): ListedStream {
  const ref = { consumer, source: String(snapshot.get('source')), key: String(snapshot.get('key')) };
  try {
    const state = streamState(snapshot);
    if (documentOf(ref).id !== snapshot.id)
      throw unreadable(snapshot, 'its source and key are those of another one');
    const [version, nowMs] = [versionOf(snapshot.updateTime), millisOf(snapshot.readTime)];
    if (version === undefined) throw unreadable(snapshot, 'it is gone');
    return { ref, state, version, nowMs };
  } catch (error) {
    return { ref, error };
  }
}

/** The update time in microseconds: a whole number of them fits a double until the year 2255. */
export const versionOf = (updateTime: Timestamp | undefined): string | undefined =>
  updateTime && String(micros(updateTime));

export function updateTimeOf(version: string): Timestamp {
  const all = Number(version);
  const seconds = Math.floor(all / 1_000_000);
  return new Timestamp(seconds, (all - seconds * 1_000_000) * 1_000);
}

export const millisOf = (time: Timestamp): number => Math.floor(micros(time) / 1_000);

/** A time that sorts as text, behind its shard: `07 2026-12-01T08:00:00.000Z`. Rounded up, so that nothing is early. */
export const sortable = (shard: string, ms: number | null): string | null =>
  ms === null ? null : `${shard}${new Date(Math.ceil(ms)).toISOString()}`;

/** What `sortable` stands before, without the shard; empty where it is no such text. */
export const sortedTime = (value: unknown): string =>
  typeof value === 'string' ? (SORTABLE.exec(value)?.[1] ?? '') : '';

const SORTABLE = /^(?:\d\d )?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$/;

function sortedMillis(value: unknown): number | null {
  const time = sortedTime(value);
  return time === '' ? null : Date.parse(time);
}

const micros = ({ seconds, nanoseconds }: Timestamp): number =>
  seconds * 1_000_000 + Math.floor(nanoseconds / 1_000);

const millis = (value: unknown): number | null => (value instanceof Timestamp ? millisOf(value) : null);

/** Rounded up, so that nothing is due before its time. 0 means "not set", as null does. */
const timestamp = (ms: number | null): Timestamp | null =>
  ms === null || ms === 0 ? null : Timestamp.fromMillis(Math.ceil(ms));

const split = (text: string): readonly string[] => (text === '' ? [] : text.split(' '));

type Check = (value: unknown) => boolean;
type Fields = Readonly<Record<string, Check>>;

function checked(snapshot: DocumentSnapshot, fields: Fields): DocumentData {
  const data = snapshot.data() ?? {};
  if (data.v !== STREAM_FORMAT) {
    const found = JSON.stringify(data.v);
    throw unreadable(snapshot, `it has format version ${found}; accepted: ${STREAM_FORMAT}`);
  }
  const wrong = wrongField(fields, data);
  if (wrong === undefined) return data;
  throw unreadable(snapshot, `its field ${wrong} has no value of its kind`);
}

const unreadable = (snapshot: DocumentSnapshot, text: string): TransientError =>
  new TransientError('UNREADABLE_STATE', `document ${snapshot.ref.path} cannot be used: ${text}`);

/** The first field that is not what it must be. */
const wrongField = (fields: Fields, data: Readonly<Record<string, unknown>>): string | undefined =>
  Object.entries(fields).find(([name, isRight]) => !isRight(data[name]))?.[0];

const isWhole: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isText: Check = (value) => typeof value === 'string';
const isTime: Check = (value) => value instanceof Timestamp;
const isSortable: Check = (value) => sortedTime(value) !== '';
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
const has =
  (fields: Fields): Check =>
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    wrongField(fields, value as Record<string, unknown>) === undefined;

const STREAM_FIELDS: Fields = {
  last: isWhole,
  epoch: orNull(isText),
  commit: isText,
  held: isWhole,
  owner: orNull(isText),
  leasedAt: orNull(isTime),
  leaseMs: isWhole,
  leaseTo: isWhole,
  attempts: isWhole,
  suspectsTo: isWhole,
  nextTryAt: orNull(isTime),
  waitingSince: orNull(isSortable),
  gapAt: orNull(isWhole),
  repairedAt: orNull(isTime),
  readyAt: orNull(isSortable),
  run: orNull(has({ number: isWhole, hashes: isText })),
  blocked: orNull(has({ at: isSortable, code: isText, text: isText })),
  skipped: (value) => Array.isArray(value) && value.every(has({ from: isWhole, to: isWhole })),
  recentHashes: isText,
  // Only where the stream began at its counter.
  opening: (value) => value === undefined || isWhole(value),
};

const HELD_FIELDS: Fields = {
  number: isWhole,
  hash: isText,
  source: isText,
  message: (value) => value instanceof Uint8Array,
  payload: (value) => value === undefined || has({ id: isText, bytes: isWhole, digest: isText })(value),
};
