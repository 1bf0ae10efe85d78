/**
 * Records of claims as Firestore documents. State is judged by server timestamps against the read time; `expiresAt` comes
 * from this worker's clock and serves the TTL policy alone, a day late, so that no clock that is wrong by hours removes a
 * record that still counts.
 */
import { type CollectionReference, type DocumentData, FieldValue, Timestamp } from '@google-cloud/firestore';
import type { Clock } from '../clock.ts';
import type { ClaimRequest } from './claim-store.ts';
import type { ClaimDocuments, ClaimRecord, ClaimWrite, FoundClaim, Written } from './document-claims.ts';
import { isWriteRefused, unavailable } from '../firestore/errors.ts';
import { at, timestampAt, toVersion } from '../firestore/timestamps.ts';
import { documentTurns } from '../firestore/turns.ts';

/** Format of the documents. */
const VERSION = 1;
/** Beyond the retention, for clocks that are slow. Expired documents are usually gone within another day. */
const GARBAGE_MARGIN_MS = 86_400_000;
/** No write is later than the read that shows it. The margin is for servers that round. */
const FUTURE_MARGIN_MS = 60_000;

/** A completion, for a commit that has other writes too. */
export const completionOf = (request: ClaimRequest, clock: Clock): DocumentData =>
  fieldsOf({ kind: 'done', request }, clock);

/** One for all deliveries of a process, which share its requests. */
export function firestoreDocuments(collection: CollectionReference, clock: Clock): ClaimDocuments {
  const turns = documentTurns(collection);
  return {
    async create(key, write) {
      return attempt(() => turns.create(key, fieldsOf(write, clock)));
    },
    async update(key, revision, write) {
      // A claim replaces whatever a completed record held.
      const cleared = write.kind === 'claim' ? { doneAt: FieldValue.delete() } : {};
      const fields = { ...fieldsOf(write, clock), ...cleared };
      return attempt(() => turns.update(key, fields, at(revision)));
    },
    async remove(key, revision) {
      const removed = await attempt(() => collection.doc(key).delete(at(revision)));
      return removed.kind === 'written' ? 'removed' : 'refused';
    },
    async read(key) {
      try {
        const snapshot = await turns.get(key);
        const [data, { updateTime, readTime }] = [snapshot.data(), snapshot];
        if (data === undefined || updateTime === undefined) return { kind: 'absent' };
        return parse(data, toVersion(updateTime), readTime.toMillis());
      } catch (error) {
        throw unavailable(error);
      }
    },
    // Seconds and nanoseconds, without the last three digits: microseconds.
    tokenOf: (revision) => revision.slice(0, -3),
  };
}

async function attempt(write: () => Promise<{ writeTime: Timestamp }>): Promise<Written> {
  try {
    return { kind: 'written', revision: toVersion((await write()).writeTime) };
  } catch (error) {
    if (isWriteRefused(error)) return { kind: 'refused' };
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
    expiresAt: timestampAt(clock.now() + retentionMs + GARBAGE_MARGIN_MS),
  };
}

/** Strict: what is not exactly ours is not judged by. */
function parse(data: DocumentData, revision: string, readAtMs: number): FoundClaim {
  const unrecognised = (what: string): FoundClaim => ({ kind: 'unrecognised', what });
  if (data['v'] !== VERSION) return unrecognised(`format version ${String(data['v'])}, not ${VERSION}`);
  if (!(data['expiresAt'] instanceof Timestamp))
    return unrecognised('no expiry: expiresAt is not a timestamp');
  const { state, owner, fingerprint, messageId, leaseMs, nonce } = data;
  if (state !== 'claimed' && state !== 'done') return unrecognised(`state ${String(state)}`);
  const since: unknown = state === 'done' ? data['doneAt'] : data['claimedAt'];
  const isWhole =
    [owner, fingerprint, messageId].every((field) => typeof field === 'string') &&
    [leaseMs, nonce].every((field) => Number.isSafeInteger(field)) &&
    since instanceof Timestamp;
  if (!isWhole) return unrecognised(`a field of the ${state} record is missing or of another type`);
  const sinceMs = since.toMillis();
  // It would count until then, and block its key for as long.
  if (sinceMs > readAtMs + FUTURE_MARGIN_MS) return unrecognised(`a time in the future: ${since.seconds} s`);
  if (leaseMs < 1 || nonce < 0) return unrecognised(`leaseMs ${leaseMs}, nonce ${nonce}`);
  const record: ClaimRecord = { state, owner, fingerprint, messageId, leaseMs, nonce, sinceMs };
  return { kind: 'found', record, revision, readAtMs };
}
