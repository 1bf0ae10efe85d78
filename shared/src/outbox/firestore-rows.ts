/**
 * How rows and streams stand in Firestore, and back. Strict: what is not exactly ours is neither published nor written.
 */
import {
  type DocumentData,
  FieldValue,
  type QueryDocumentSnapshot,
  Timestamp,
} from '@google-cloud/firestore';
import { TransientError } from '../errors.ts';
import { hashOf } from '../hash.ts';
import type { PendingRow, StreamRow, StreamState, StreamWrite } from './outbox-store.ts';
import type { Place, Row, StreamRef } from './rows.ts';

/** Format of the documents. */
const VERSION = 1;
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
  { topic, message, place }: Row,
  count: number,
  lease: Readonly<{ owner: string; leaseMs: number }> | undefined,
): DocumentData {
  return {
    v: VERSION,
    state: 'pending',
    topic,
    message,
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
  if (v !== VERSION || !isWhole || !isKnown) throw unreadable(id, `v ${String(v)}, state ${String(state)}`);
  const place = placeOfFields(id, data);
  return { id, topic, message, ...(place !== undefined && { place }) };
}

export function streamRowOf(document: QueryDocumentSnapshot): StreamRow {
  const row = rowOfFields(document.id, document.data());
  if (row.place === undefined) throw unreadable(document.id, 'no place in a stream');
  return { ...row, place: row.place, isSent: document.get('state') !== 'pending' };
}

/** What a pass needs to know: the message itself is not read. */
export const PENDING_FIELDS = ['pendingAt', 'key', 'epoch', 'number', 'after'] as const;

export function pendingRowOf(document: QueryDocumentSnapshot): PendingRow {
  const place = placeOfFields(document.id, document.data());
  const createdMs = (document.get('pendingAt') as Timestamp).toMillis();
  return { id: document.id, createdMs, ...(place !== undefined && { place }) };
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
