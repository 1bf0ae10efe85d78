/**
 * Claims in Firestore, one document a key, by the protocol of document-claims.ts. State is judged by server timestamps
 * against the read time; `expiresAt` comes from this worker's clock and serves the TTL policy alone, a day late, so that
 * no clock that is wrong by hours removes a record that still counts.
 *
 * Cost: a fresh message is two writes and no read, a duplicate a failed create and a read.
 */
import {
  type DocumentData,
  type DocumentReference,
  FieldValue,
  type Firestore,
  Timestamp,
} from '@google-cloud/firestore';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import type { ClaimStore } from './claim-store.ts';
import {
  type ClaimDocuments,
  type ClaimRecord,
  type ClaimWrite,
  documentClaims,
  type FoundClaim,
  type Written,
} from './document-claims.ts';
import { isRefusal, unavailable } from './firestore-errors.ts';

export type FirestoreClaimsOptions = Readonly<{
  /** Default `pubsub-guarantees-claims`. Wants a TTL policy on `expiresAt`, and no single-field indexes. */
  collection?: string;
  /** Bound on each operation, default `5s`: the client itself waits for minutes when its server is down. */
  timeout?: Duration;
  clock?: Clock;
}>;

/** Format of the documents. */
const VERSION = 1;
/** Beyond the retention, for clocks that are slow. Expired documents are usually gone within another day. */
const GARBAGE_MARGIN_MS = 86_400_000;
/** No write is later than the read that shows it. The margin is for servers that round. */
const FUTURE_MARGIN_MS = 60_000;

/** The caller makes the client and terminates it. */
export function firestoreClaims(
  firestore: Firestore,
  {
    collection = 'pubsub-guarantees-claims',
    timeout = '5s',
    clock = systemClock(),
  }: FirestoreClaimsOptions = {},
): ClaimStore {
  const claims = firestore.collection(collection);
  return documentClaims(
    firestoreDocuments((key) => claims.doc(key), clock),
    clock,
    toMilliseconds(timeout, 'timeout'),
  );
}

function firestoreDocuments(at: (key: string) => DocumentReference, clock: Clock): ClaimDocuments {
  return {
    async create(key, write) {
      return attempt(() => at(key).create(fieldsOf(write, clock)));
    },
    async update(key, revision, write) {
      // A claim replaces whatever a completed record held.
      const cleared = write.kind === 'claim' ? { doneAt: FieldValue.delete() } : {};
      const fields = { ...fieldsOf(write, clock), ...cleared };
      return attempt(() => at(key).update(fields, { lastUpdateTime: toTimestamp(revision) }));
    },
    async remove(key, revision) {
      const removed = await attempt(() => at(key).delete({ lastUpdateTime: toTimestamp(revision) }));
      return removed.kind === 'written' ? 'removed' : 'refused';
    },
    async read(key) {
      try {
        const { updateTime, readTime, ...snapshot } = await look(at(key));
        if (snapshot.data === undefined || updateTime === undefined) return { kind: 'absent' };
        return parse(snapshot.data, toRevision(updateTime), readTime.toMillis());
      } catch (error) {
        throw unavailable(error);
      }
    },
    tokenOf: (revision) => revision.slice(0, -3),
  };
}

async function look(document: DocumentReference) {
  const snapshot = await document.get();
  return { data: snapshot.data(), updateTime: snapshot.updateTime, readTime: snapshot.readTime };
}

async function attempt(write: () => Promise<{ writeTime: Timestamp }>): Promise<Written> {
  try {
    return { kind: 'written', revision: toRevision((await write()).writeTime) };
  } catch (error) {
    if (isRefusal(error)) return { kind: 'refused' };
    throw unavailable(error);
  }
}

function fieldsOf(write: ClaimWrite, clock: Clock): DocumentData {
  if (write.kind === 'renewal') return { claimedAt: FieldValue.serverTimestamp(), nonce: write.nonce };
  const { owner, fingerprint, messageId, leaseMs, retentionMs } = write.request;
  const isDone = write.kind === 'done';
  return {
    v: VERSION,
    state: isDone ? 'done' : 'claimed',
    owner,
    fingerprint,
    messageId,
    leaseMs,
    nonce: 0,
    [isDone ? 'doneAt' : 'claimedAt']: FieldValue.serverTimestamp(),
    expiresAt: Timestamp.fromMillis(Math.ceil(clock.now()) + retentionMs + GARBAGE_MARGIN_MS),
  };
}

/** Strict: what is not exactly ours is not judged by. */
function parse(data: DocumentData, revision: string, readAtMs: number): FoundClaim {
  const foreign = (what: string): FoundClaim => ({ kind: 'foreign', what });
  if (data['v'] !== VERSION) return foreign(`format version ${String(data['v'])}, not ${VERSION}`);
  if (!(data['expiresAt'] instanceof Timestamp)) return foreign('no expiry: expiresAt is not a timestamp');
  const { state, owner, fingerprint, messageId, leaseMs, nonce } = data;
  if (state !== 'claimed' && state !== 'done') return foreign(`state ${String(state)}`);
  const since: unknown = state === 'done' ? data['doneAt'] : data['claimedAt'];
  const isWhole =
    [owner, fingerprint, messageId].every((field) => typeof field === 'string') &&
    [leaseMs, nonce].every((field) => Number.isSafeInteger(field)) &&
    since instanceof Timestamp;
  if (!isWhole) return foreign(`a field of the ${state} record is missing or of another type`);
  const sinceMs = since.toMillis();
  // It would count until then, and block its key for as long.
  if (sinceMs > readAtMs + FUTURE_MARGIN_MS) return foreign(`a time in the future: ${since.seconds} s`);
  if (leaseMs < 1 || nonce < 0) return foreign(`leaseMs ${leaseMs}, nonce ${nonce}`);
  const record: ClaimRecord = { state, owner, fingerprint, messageId, leaseMs, nonce, sinceMs };
  return { kind: 'found', record, revision, readAtMs };
}

/** A revision is the update time: seconds, then nine digits of nanoseconds. Without the last three: microseconds. */
const toRevision = (time: Timestamp): string => `${time.seconds}${String(time.nanoseconds).padStart(9, '0')}`;
const toTimestamp = (revision: string): Timestamp =>
  new Timestamp(Number(revision.slice(0, -9)), Number(revision.slice(-9)));
