/**
 * The lists of keys in Firestore: each state is found by the single-field index of the time at which it began.
 */
import {
  type CollectionReference,
  type DocumentReference,
  FieldPath,
  type Query,
  type QueryDocumentSnapshot,
  Timestamp,
} from '@google-cloud/firestore';
import { PermanentError } from '../errors.ts';
import { keyState, millisOf, unreadable, versionOf } from './firestore-documents.ts';
import type { KeyQuery, KeyRef, ListedState, ReadyKey } from './order-store.ts';

const FIELD = { ready: 'readyAt', waiting: 'waitingSince', halted: 'halted.at' } as const;

/** `nowMs` is the server's present time as far as it is known. */
export function pageOf(keys: CollectionReference, query: KeyQuery, nowMs: number): Query {
  const { state, forMs = 0, after } = query;
  const cursor = after === undefined ? [] : read(after, state === 'any' ? 1 : 3);
  if (state === 'any') {
    const all = keys.orderBy(FieldPath.documentId());
    return cursor.length === 0 ? all : all.startAfter(keys.doc(String(cursor[0])));
  }
  const until = Timestamp.fromMillis(Math.max(0, Math.floor(nowMs - forMs)));
  const since = keys.where(FIELD[state], '<=', until).orderBy(FIELD[state]).orderBy(FieldPath.documentId());
  const [id, seconds, nanoseconds] = cursor;
  if (id === undefined) return since;
  return since.startAfter(new Timestamp(Number(seconds), Number(nanoseconds)), keys.doc(String(id)));
}

export function cursorOf(state: ListedState, document: QueryDocumentSnapshot): string {
  const at: unknown = state === 'any' ? undefined : document.get(FIELD[state]);
  const parts = at instanceof Timestamp ? [document.id, at.seconds, at.nanoseconds] : [document.id];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

export function readyKey(
  document: QueryDocumentSnapshot,
  consumer: string,
  keyOf: (ref: KeyRef) => DocumentReference,
): ReadyKey {
  const ref = { consumer, key: String(document.get('key')) };
  const nowMs = millisOf(document.readTime);
  try {
    if (keyOf(ref).id !== document.id) throw unreadable(document, 'its key is that of another one');
    return { ref, state: keyState(document), version: versionOf(document.updateTime), nowMs };
  } catch (error) {
    return { ref, error };
  }
}

function read(after: string, length: number): readonly (string | number)[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(after, 'base64url').toString());
    if (Array.isArray(parts) && parts.length === length && /^[\w-]{1,100}$/.test(String(parts[0])))
      return parts;
  } catch {
    // Not ours: below.
  }
  throw new PermanentError('INVALID_PAGE', 'the page is none that a list of this state has answered');
}
