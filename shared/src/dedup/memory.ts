/**
 * Claims in this process's memory, by the same protocol as Firestore's: for tests, and for a single process that
 * accepts to forget everything when it ends.
 */
import { type Clock, systemClock } from '../clock.ts';
import type { ClaimStore } from './claim-store.ts';
import {
  type ClaimDocuments,
  type ClaimRecord,
  type ClaimWrite,
  documentClaims,
  type Written,
} from './document-claims.ts';
import { checkOptions, clock as aClock } from '../options.ts';

/** A memory answers at once; the bound is there because the protocol has one. */
const TIMEOUT_MS = 5_000;
/** Expired records are cleared whenever the number of records has doubled since the last time, from here on. */
const FIRST_CLEARING = 1_024;

/**
 * The store's clock is `clock.monotonic()`; fencing tokens follow `clock.now()`, in microseconds. Throws ConfigError
 * `INVALID_OPTION`.
 *
 * @example
 * const once = dedup(memoryClaims());
 */
export function memoryClaims(options: Readonly<{ clock?: Clock }> = {}): ClaimStore {
  checkOptions<{ clock: Clock }>(options, { clock: aClock });
  const { clock = systemClock() } = options;
  return documentClaims(memoryDocuments({ clock }), clock, TIMEOUT_MS);
}

type Document = Readonly<{ record: ClaimRecord; revision: string; retentionMs: number }>;

export type MemoryDocuments = ClaimDocuments &
  Readonly<{
    /** Counts what is kept, expired or not. */
    size(): number;
    /**
     * Of the record at this moment: a caller that writes in the same turn of the event loop writes atomically with it.
     */
    revisionOf(key: string): string | undefined;
  }>;

/** For tests that put faults between the protocol and its documents. Writes are applied before their promise is given. */
export function memoryDocuments({ clock }: Readonly<{ clock: Clock }>): MemoryDocuments {
  const documents = new Map<string, Document>();
  let clearAt = FIRST_CLEARING;
  let last = 0n;

  const clearExpired = (): void => {
    if (documents.size < clearAt) return;
    const now = clock.monotonic();
    for (const [key, { record, retentionMs }] of documents) {
      const countsMs = record.state === 'done' ? retentionMs : record.leaseMs;
      if (now - record.sinceMs >= countsMs) documents.delete(key);
    }
    clearAt = Math.max(FIRST_CLEARING, documents.size * 2);
  };

  const put = (key: string, record: ClaimRecord, retentionMs: number): Written => {
    const micros = BigInt(Math.floor(clock.now() * 1_000));
    last = micros > last ? micros : last + 1n;
    documents.set(key, { record, revision: String(last), retentionMs });
    return { kind: 'written', revision: String(last) };
  };

  const apply = (key: string, write: ClaimWrite, before: Document | undefined): Written => {
    const sinceMs = clock.monotonic();
    if (write.kind === 'renewal') {
      if (before === undefined) return { kind: 'refused' };
      return put(key, { ...before.record, sinceMs, nonce: write.nonce }, before.retentionMs);
    }
    const { owner, fingerprint, messageId, leaseMs, retentionMs } = write.request;
    const state = write.kind === 'done' ? 'done' : 'claimed';
    return put(key, { state, owner, fingerprint, messageId, leaseMs, sinceMs, nonce: 0 }, retentionMs);
  };

  return {
    async create(key, write) {
      clearExpired();
      return documents.has(key) ? { kind: 'refused' } : apply(key, write, undefined);
    },
    async read(key) {
      const document = documents.get(key);
      if (document === undefined) return { kind: 'absent' };
      const { record, revision } = document;
      return { kind: 'found', record, revision, readAtMs: clock.monotonic() };
    },
    async update(key, revision, write) {
      const before = documents.get(key);
      return before?.revision === revision ? apply(key, write, before) : { kind: 'refused' };
    },
    async remove(key, revision) {
      if (documents.get(key)?.revision !== revision) return 'refused';
      documents.delete(key);
      return 'removed';
    },
    tokenOf: (revision) => revision,
    size: () => documents.size,
    revisionOf: (key) => documents.get(key)?.revision,
  };
}
