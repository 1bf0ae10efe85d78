/**
 * How rows and streams stand in Firestore, and back. Strict: what is not exactly ours is neither published nor written.
 */
import {
  type DocumentData,
  type DocumentSnapshot,
  FieldValue,
  type QueryDocumentSnapshot,
  Timestamp,
} from '@google-cloud/firestore';
import { TransientError } from '../errors.ts';
import { hashOf } from '../hash.ts';
import type { PayloadRef } from '../payload/payload-room.ts';
import type { PendingRow, StreamRow, StreamState, StreamWrite } from './outbox-store.ts';
import type { Place, Row, StreamRef } from './rows.ts';

/** Format of the documents. Rows whose data is elsewhere have the next one: who does not know of it leaves them alone. */
const VERSION = 1;
const APART_VERSION = 2;
/** Digits of the largest number, 2^53 - 1: so texts have the order of their numbers. */
const DIGITS = 16;

/** The name of a stream's document, and the beginning of its rows' places. */
export const streamId = ({ key, epoch }: StreamRef): string => hashOf('stream', key, epoch);

/** Where a number stands in the index: rows of a stream together, streams spread out. */
export const placeOf = (ref: StreamRef, number: number): string =>
  `${streamId(ref)}.${String(number).padStart(DIGITS, '0')}`;

/** Beyond the last number of a stream. */
export const placesEnd = (ref: StreamRef): string => `${streamId(ref)}.~`;

/** `pendingAt` is there exactly while the row is pending: it is what relays select by. */
export function newRowFields(
  { topic, message, place, payload }: Row,
  count: number,
  lease: Readonly<{ owner: string; leaseMs: number }> | undefined,
): DocumentData {
  return {
    v: payload === undefined ? VERSION : APART_VERSION,
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
    ...(place === undefined && { attempts: 0, nextTryAt: null, ...leaseFields(lease) }),
    createdAt: FieldValue.serverTimestamp(),
    pendingAt: FieldValue.serverTimestamp(),
  };
}

export const leaseFields = (
  lease: Readonly<{ owner: string; leaseMs: number }> | undefined,
): DocumentData => ({
  owner: lease?.owner ?? null,
  leaseMs: lease?.leaseMs ?? 0,
  leasedAt: FieldValue.serverTimestamp(),
});

/** `expiresAt` is by this process's clock and serves the TTL policy alone. */
export const sentFields = (nowMs: number, retentionMs: number): DocumentData => ({
  state: 'sent',
  pendingAt: FieldValue.delete(),
  expiresAt: Timestamp.fromMillis(Math.ceil(nowMs) + retentionMs),
});

export function rowOfFields(id: string, data: DocumentData): Row {
  const { v, state, topic, message } = data;
  const isWhole = typeof topic === 'string' && message instanceof Uint8Array;
  const isKnown = state === 'pending' || state === 'sent' || state === 'failed';
  const payload = payloadOf(data);
  const hasFormat = v === (payload === undefined ? VERSION : APART_VERSION);
  if (!hasFormat || !isWhole || !isKnown) throw unreadable(id, `v ${String(v)}, state ${String(state)}`);
  const place = placeOfFields(id, data);
  return {
    id,
    topic,
    message,
    ...(place !== undefined && { place }),
    ...(payload !== undefined && { payload }),
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
export const PENDING_FIELDS = ['pendingAt', 'key', 'epoch', 'number', 'after'] as const;

export function pendingRowOf(document: QueryDocumentSnapshot): PendingRow {
  const { id } = document;
  const createdMs = (document.get('pendingAt') as Timestamp).toMillis();
  try {
    const place = placeOfFields(id, document.data());
    return { id, createdMs, ...(place !== undefined && { place }) };
  } catch (error) {
    if (!(error instanceof TransientError)) throw error;
    return { id, createdMs, problem: error };
  }
}

function placeOfFields(id: string, { key, epoch, number, after }: DocumentData): Place | undefined {
  if (key === undefined) return undefined;
  const isWhole = typeof key === 'string' && typeof epoch === 'string';
  if (!isWhole || !Number.isSafeInteger(number) || !Number.isSafeInteger(after))
    throw unreadable(id, 'a field of its place is missing or of another type');
  return { key, epoch, number, after };
}

/** `haltedAt` is there exactly while the stream is halted: it is what `troubled` selects by. */
export function streamFields({ key, epoch }: StreamRef, state: StreamWrite): DocumentData {
  const { sent, owner, leaseMs, attempts, nextTryMs, halted } = state;
  return {
    v: VERSION,
    key,
    epoch,
    sent,
    ...leaseFields(owner === undefined ? undefined : { owner, leaseMs }),
    attempts,
    nextTryAt: nextTryMs === 0 ? null : Timestamp.fromMillis(Math.ceil(nextTryMs)),
    halted: halted === undefined ? null : { ...halted },
    haltedAt: halted === undefined ? null : FieldValue.serverTimestamp(),
  };
}

export function streamStateOf(id: string, data: DocumentData): StreamState {
  const { v, sent, attempts, halted } = data;
  const isWhole = v === VERSION && Number.isSafeInteger(sent) && Number.isSafeInteger(attempts);
  if (!isWhole || halted === undefined) throw unreadable(id, 'it is no stream');
  const { owner, untilMs } = leaseOf(data);
  return { sent, owner, untilMs, attempts, nextTryMs: nextTryOf(data), halted: halted ?? undefined };
}

export function leaseOf({ owner, leasedAt, leaseMs }: DocumentData): Pick<StreamState, 'owner' | 'untilMs'> {
  const isLeased = typeof owner === 'string' && leasedAt instanceof Timestamp;
  if (!isLeased) return { owner: undefined, untilMs: 0 };
  return { owner, untilMs: leasedAt.toMillis() + Number(leaseMs) };
}

export const nextTryOf = ({ nextTryAt }: DocumentData): number =>
  nextTryAt instanceof Timestamp ? nextTryAt.toMillis() : 0;

const unreadable = (id: string, text: string): TransientError =>
  new TransientError('UNREADABLE_ROW', `document ${id} of the outbox cannot be used: ${text}`);
