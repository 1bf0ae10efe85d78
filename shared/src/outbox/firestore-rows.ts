/**
 * How rows and streams are stored in Firestore, and read back. Strict: what is not exactly ours is neither published
 * nor written.
 */
import {
  type DocumentData,
  type DocumentSnapshot,
  FieldPath,
  FieldValue,
  type QueryDocumentSnapshot,
  Timestamp,
} from '@google-cloud/firestore';
import { TransientError } from '../errors.ts';
import { hashOf } from '../hash.ts';
import type { PayloadRef } from '../payload/payload-store.ts';
import { isFullTopicName } from '../publish/topic-name.ts';
import type { LookedRow, PendingRow, StreamRow, StreamState, StreamWrite } from './outbox-store.ts';
import type { Place, Row, StreamRef } from './rows.ts';
import { timestampAt, toVersion } from '../firestore/timestamps.ts';
import { shardOf } from '../shards.ts';

/**
 * Formats of the documents. Rows of 1 and 2 had one range of `pendingAt` for all of them and short names of topics: they
 * are not selected, and refused where they are met.
 */
const ROW_VERSION = 3;
const STREAM_VERSION = 2;
/** Digits of the largest number, 2^53 - 1: so texts have the order of their numbers. */
const DIGITS = 16;

/** The name of a stream's document, and the beginning of its rows' places. */
export const streamId = ({ key, epoch }: StreamRef): string => hashOf('stream', key, epoch);

/** The document that is selected in place of a stream's rows, among them. */
export const watchId = (ref: StreamRef): string => `stream.${streamId(ref)}`;

/** Where a number is in the index: rows of a stream together, streams spread out. */
export const placeOf = (ref: StreamRef, number: number): string =>
  `${streamId(ref)}.${String(number).padStart(DIGITS, '0')}`;

/** Beyond the last number of a stream. */
export const placesEnd = (ref: StreamRef): string => `${streamId(ref)}.~`;

/** `pendingAt` is a map with one field, named after the shard: each has a range of the index of its own. */
const SHARD_DIGITS = 3;
const shardField = (shard: number): string => `s${String(shard).padStart(SHARD_DIGITS, '0')}`;
/** Which every relay asks, whatever an operator's tool knows of the number of shards. */
const FIRST = shardField(0);
export const shardPath = (shard: number): FieldPath => new FieldPath('pendingAt', shardField(shard));
const pendingIn = (name: string, shards: number, at: Timestamp | FieldValue): DocumentData => ({
  [shardField(shardOf(name, shards))]: at,
});
const serverTime = (): FieldValue => FieldValue.serverTimestamp();

/** At once where it is 0: by the store's clock. */
const timeOf = (milliseconds: number): Timestamp | FieldValue =>
  milliseconds === 0 ? serverTime() : timestampAt(milliseconds);

/** Of a row that an operator puts back: at once. */
export const reopenedFields = (): DocumentData => ({ pendingAt: { [FIRST]: serverTime() } });

/** Of a row without order, or of one that cannot be used. Its writer may have had other shards; all are asked. */
export const movedFields = (id: string, milliseconds: number, shards: number): DocumentData => ({
  pendingAt: pendingIn(groupOf(id), shards, timeOf(milliseconds)),
});

const groupOf = (id: string): string => (id.includes('.') ? id.slice(0, id.lastIndexOf('.')) : id);

type Lease = Readonly<{ owner: string; leaseMs: number }> | undefined;

/** `pendingAt` is there exactly while the row is selected: it is what relays look for. */
export function newRowFields(
  { id, topic, message, place, payload, group }: Row,
  { count, index, lease, shards }: Readonly<{ count: number; index: number; lease: Lease; shards: number }>,
): DocumentData {
  const isBehind = group !== undefined && index > 0;
  const shardName = place === undefined ? (group ?? id) : streamId(place);
  return {
    v: ROW_VERSION,
    state: 'pending',
    topic,
    message,
    ...(payload !== undefined && { payload: { ...payload } }),
    count,
    ...(place !== undefined && {
      key: place.key,
      epoch: place.epoch,
      number: place.number,
      after: place.after,
      place: placeOf(place, place.number),
    }),
    ...(group !== undefined && { group }),
    ...(place === undefined && {
      attempts: 0,
      nextTryAt: null,
      ...leaseFields(isBehind ? undefined : lease),
    }),
    createdAt: serverTime(),
    ...(!isBehind && { pendingAt: pendingIn(shardName, shards, serverTime()) }),
  };
}

export const leaseFields = (lease: Lease): DocumentData => ({
  owner: lease?.owner ?? null,
  leaseMs: lease?.leaseMs ?? 0,
  leasedAt: serverTime(),
});

/** `expiresAt` is by this process's clock and serves the TTL policy alone. */
export const sentFields = (nowMs: number, retentionMs: number): DocumentData => ({
  state: 'sent',
  pendingAt: FieldValue.delete(),
  expiresAt: timestampAt(nowMs + retentionMs),
});

export function rowOfFields(id: string, data: DocumentData): Row {
  const { v, state, topic, message, group } = data;
  if (v !== ROW_VERSION) throw unreadable(id, `format version ${String(v)}; accepted: ${ROW_VERSION}`);
  const isWhole = typeof topic === 'string' && isFullTopicName(topic) && message instanceof Uint8Array;
  const isKnown = state === 'pending' || state === 'sent' || state === 'failed';
  const isGroup = group === undefined || (typeof group === 'string' && id.startsWith(`${group}.`));
  if (!isWhole || !isKnown || !isGroup)
    throw unreadable(id, `topic, message, group or state ${String(state)}`);
  const place = placeOfFields(id, data);
  const payload = payloadOf(data);
  return {
    id,
    topic,
    message,
    ...(place !== undefined && { place }),
    ...(payload !== undefined && { payload }),
    ...(group !== undefined && { group }),
  };
}

function payloadOf(data: DocumentData): PayloadRef | undefined {
  const { id, bytes, digest } = (data['payload'] ?? {}) as Partial<Record<keyof PayloadRef, unknown>>;
  if (typeof id !== 'string' || typeof digest !== 'string' || !Number.isSafeInteger(bytes)) return undefined;
  return { id, bytes: Number(bytes), digest };
}

/** One that cannot be used says so, and does not hide the rows before it. */
export function streamRowOf(document: QueryDocumentSnapshot, ref: StreamRef): StreamRow {
  const { id } = document;
  const rest = { createdMs: createdMsOf(document), isSent: document.get('state') !== 'pending' };
  try {
    const row = rowOfFields(id, document.data());
    if (row.place === undefined) throw unreadable(id, 'no place in a stream');
    return { ...row, place: row.place, ...rest };
  } catch (error) {
    if (!(error instanceof TransientError)) throw error;
    const number = Number(String(document.get('place')).slice(-DIGITS));
    const place = { ...ref, number: Number.isSafeInteger(number) ? number : 0, after: 0 };
    return { id, topic: '', message: new Uint8Array(0), place, ...rest, problem: error };
  }
}

/** The time of the commit; of a row that does not say so, now would be as good: it is measured with, nothing more. */
export function createdMsOf(document: DocumentSnapshot): number {
  const at: unknown = document.get('createdAt');
  return at instanceof Timestamp ? at.toMillis() : document.readTime.toMillis();
}

/** What a pass needs to know: the message itself is not read. */
export const PENDING_FIELDS = [
  'v',
  'state',
  'pendingAt',
  'createdAt',
  'key',
  'epoch',
  'number',
  'after',
  'owner',
  'leasedAt',
  'leaseMs',
  'nextTryAt',
] as const;

export function pendingRowOf(document: QueryDocumentSnapshot, shard: number): PendingRow {
  const { id } = document;
  const data = document.data();
  const dueMs = (document.get(shardPath(shard)) as Timestamp).toMillis();
  const version = toVersion(document.updateTime);
  const base = { id, version, createdMs: createdMsOf(document), dueMs, freeMs: freeMsOf(data) };
  try {
    const { v, state, key, epoch } = data;
    const isStream = state === 'stream' && typeof key === 'string' && typeof epoch === 'string';
    const place = isStream ? undefined : placeOfFields(id, data);
    // One with a place is judged in its stream, which waits at it.
    if (place !== undefined) return { ...base, place };
    if (v !== ROW_VERSION) throw unreadable(id, `format version ${String(v)}; accepted: ${ROW_VERSION}`);
    return { ...base, ...(isStream && { stream: { key, epoch } }) };
  } catch (error) {
    if (!(error instanceof TransientError)) throw error;
    return { ...base, problem: error };
  }
}

function placeOfFields(id: string, { key, epoch, number, after }: DocumentData): Place | undefined {
  if (key === undefined) return undefined;
  const isWhole = typeof key === 'string' && typeof epoch === 'string';
  if (!isWhole || !Number.isSafeInteger(number) || !Number.isSafeInteger(after))
    throw unreadable(id, 'a field of its place is missing or of another type');
  return { key, epoch, number, after };
}

/** `blockedAt` is there exactly while the stream is blocked: it is what `listFailures` selects by. */
export function streamFields({ key, epoch }: StreamRef, state: StreamWrite): DocumentData {
  const { sent, owner, leaseMs, attempts, nextTryMs, blocked, parkedMs } = state;
  return {
    v: STREAM_VERSION,
    key,
    epoch,
    sent,
    ...leaseFields(owner === undefined ? undefined : { owner, leaseMs }),
    attempts,
    nextTryAt: nextTryMs === 0 ? null : timestampAt(nextTryMs),
    blocked: blocked === undefined ? null : { ...blocked },
    blockedAt: blocked === undefined ? null : serverTime(),
    parkedAt: parkedMs === undefined ? null : timestampAt(parkedMs),
  };
}

/** The stream in place of its rows; `blocked`: not selected, and there for when it is resumed. */
export function watchFields(ref: StreamRef, { parkedMs = 0, nextTryMs, blocked }: StreamWrite): DocumentData {
  return {
    v: ROW_VERSION,
    state: 'stream',
    key: ref.key,
    epoch: ref.epoch,
    createdAt: timestampAt(parkedMs),
    ...(blocked === undefined && { pendingAt: { [FIRST]: timeOf(nextTryMs) } }),
  };
}

export function streamStateOf(id: string, data: DocumentData): StreamState {
  const { v, sent, attempts, blocked, parkedAt } = data;
  if (v !== STREAM_VERSION) throw unreadable(id, `format version ${String(v)}; accepted: ${STREAM_VERSION}`);
  const isWhole = Number.isSafeInteger(sent) && Number.isSafeInteger(attempts);
  if (!isWhole || blocked === undefined) throw unreadable(id, 'it is no stream');
  const { owner, untilMs } = leaseOf(data);
  const parkedMs = parkedAt instanceof Timestamp ? parkedAt.toMillis() : undefined;
  const rest = { nextTryMs: nextTryOf(data), blocked: blocked ?? undefined, parkedMs };
  return { sent, owner, untilMs, attempts, ...rest };
}

export function leaseOf({ owner, leasedAt, leaseMs }: DocumentData): Pick<StreamState, 'owner' | 'untilMs'> {
  const isLeased = typeof owner === 'string' && leasedAt instanceof Timestamp;
  if (!isLeased) return { owner: undefined, untilMs: 0 };
  return { owner, untilMs: leasedAt.toMillis() + Number(leaseMs) };
}

/** The lease and the row have one time: the store's, of one commit. */
export const isWritersLease = ({ createdAt, leasedAt }: DocumentData): boolean =>
  createdAt instanceof Timestamp && leasedAt instanceof Timestamp && leasedAt.isEqual(createdAt);

/** What `lookedOf` and `createdMsOf` need: the message itself is not read. */
export const LOOKED_FIELDS = [
  'state',
  'pendingAt',
  'createdAt',
  'key',
  'epoch',
  'number',
  'after',
  'owner',
  'leasedAt',
  'leaseMs',
] as const;

/** Throws TransientError for a row whose place cannot be used. */
export function lookedOf(id: string, data: DocumentData, nowMs: number): Omit<LookedRow, 'createdMs'> {
  const place = placeOfFields(id, data);
  return {
    nowMs,
    isSelected: data['pendingAt'] !== undefined,
    isWriters: isWritersLease(data) && leaseOf(data).untilMs > nowMs,
    ...(place !== undefined && { place }),
  };
}

export const nextTryOf = ({ nextTryAt }: DocumentData): number =>
  nextTryAt instanceof Timestamp ? nextTryAt.toMillis() : 0;

/** From when on a row may be leased. */
export const freeMsOf = (data: DocumentData): number => Math.max(leaseOf(data).untilMs, nextTryOf(data));

const unreadable = (id: string, text: string): TransientError =>
  new TransientError('UNREADABLE_ROW', `document ${id} of the outbox cannot be used: ${text}`);
