/**
 * How payloads are stored in Firestore, and read back. A manifest says that all chunks are there; without it nothing
 * is.
 *
 * `expiresAt` comes from the worker's clock: it serves the TTL policy and the sweep, days or weeks away from anything
 * that counts. Server timestamps decide whether a payload is done or unfinished.
 */
import { type DocumentData, type DocumentSnapshot, FieldValue, Timestamp } from '@google-cloud/firestore';
import { timestampAt } from '../firestore/timestamps.ts';
import { PermanentError, TransientError } from '../errors.ts';
import type { PayloadRef } from './payload-store.ts';

/** The format of both kinds of document. */
const VERSION = 1;

export type Manifest = Readonly<{
  bytes: number;
  digest: string;
  chunkBytes: number;
  isDone: boolean;
  expiresAtMs: number;
  updateTime: Timestamp;
}>;

/** What is there, or why it cannot be used. */
export type Found =
  | Readonly<{ kind: 'absent' }>
  | Readonly<{ kind: 'found'; manifest: Manifest }>
  | Readonly<{ kind: 'damaged'; what: string; updateTime: Timestamp }>;

export const manifestFields = (ref: PayloadRef, chunkBytes: number, expiresAtMs: number): DocumentData => ({
  v: VERSION,
  bytes: ref.bytes,
  digest: ref.digest,
  chunkBytes,
  storedAt: FieldValue.serverTimestamp(),
  doneAt: null,
  expiresAt: timestampAt(expiresAtMs),
});

export const doneFields = (expiresAtMs: number): DocumentData => ({
  doneAt: FieldValue.serverTimestamp(),
  expiresAt: timestampAt(expiresAtMs),
});

export const chunkFields = (ref: PayloadRef, index: number, data: Uint8Array, expiresAtMs: number) => ({
  v: VERSION,
  payload: ref.id,
  index,
  data,
  expiresAt: timestampAt(expiresAtMs),
});

/** Throws TransientError `UNREADABLE_STATE` for a later format: it waits for a reader that knows it. */
export function manifestIn(snapshot: DocumentSnapshot): Found {
  const data = snapshot.data();
  if (data === undefined || snapshot.updateTime === undefined) return { kind: 'absent' };
  knownVersion(snapshot, data);
  const { updateTime } = snapshot;
  const { bytes, digest, chunkBytes, doneAt, expiresAt } = data;
  const isWhole =
    [bytes, chunkBytes].every((field) => Number.isSafeInteger(field) && field >= 0) &&
    chunkBytes > 0 &&
    typeof digest === 'string' &&
    expiresAt instanceof Timestamp;
  if (!isWhole)
    return { kind: 'damaged', what: 'a field of its manifest has no value of its kind', updateTime };
  const isDone = doneAt instanceof Timestamp;
  const expiresAtMs = expiresAt.toMillis();
  return { kind: 'found', manifest: { bytes, digest, chunkBytes, isDone, expiresAtMs, updateTime } };
}

/** The bytes of the chunk. Throws PermanentError `PAYLOAD_DAMAGED` where it is not what its place asks for. */
export function chunkIn(
  snapshot: DocumentSnapshot,
  ref: PayloadRef,
  index: number,
  bytes: number,
): Uint8Array {
  const data = snapshot.data();
  if (data === undefined) throw damaged(ref, `chunk ${index} is missing`);
  knownVersion(snapshot, data);
  const isOurs = data['payload'] === ref.id && data['index'] === index;
  const content: unknown = data['data'];
  if (!isOurs || !(content instanceof Uint8Array)) throw damaged(ref, `chunk ${index} is another document`);
  if (content.length !== bytes) {
    throw damaged(ref, `chunk ${index} has ${content.length} bytes; accepted: ${bytes}`);
  }
  return content;
}

export const damaged = (ref: PayloadRef, what: string): PermanentError =>
  new PermanentError('PAYLOAD_DAMAGED', `payload ${ref.id} cannot be used: ${what}`);

function knownVersion(snapshot: DocumentSnapshot, data: DocumentData): void {
  if (data['v'] === VERSION) return;
  throw new TransientError(
    'UNREADABLE_STATE',
    `document ${snapshot.ref.path} has format version ${JSON.stringify(data['v'])}; accepted: ${VERSION}`,
  );
}
