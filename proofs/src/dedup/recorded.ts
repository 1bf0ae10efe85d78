/**
 * What a store really holds, as seen from the store itself and on its clock: which owner has the live claim on a key,
 * and whether the key was ever done. What a run believes is held against this.
 */
import type { Clock } from '../../../shared/src/clock.ts';
import type { ClaimDocuments, ClaimWrite, Written } from '../../../shared/src/dedup/document-claims.ts';

export type Recorded = Readonly<{
  documents: ClaimDocuments;
  /** The owner whose lease on the key is running now. */
  holderOf(key: string): string | undefined;
  /** Whose claim had the token. */
  ownerOf(key: string, token: string): string | undefined;
  wasDone(key: string): boolean;
}>;

type Claim = { owner: string; sinceMs: number; leaseMs: number };

/** Faults belong around it: it must see what arrives. */
export function recorded(inner: ClaimDocuments, clock: Clock): Recorded {
  const claims = new Map<string, Claim>();
  const owners = new Map<string, string>();
  const done = new Set<string>();

  const record = (key: string, write: ClaimWrite, written: Written): Written => {
    if (written.kind === 'refused') return written;
    const sinceMs = clock.monotonic();
    const claim = claims.get(key);
    if (write.kind === 'claim') {
      const { owner, leaseMs } = write.request;
      claims.set(key, { owner, sinceMs, leaseMs });
      owners.set(`${key} ${inner.tokenOf(written.revision)}`, owner);
    } else if (write.kind === 'done') {
      claims.delete(key);
      done.add(key);
    } else if (claim !== undefined) {
      claim.sinceMs = sinceMs;
    }
    return written;
  };

  return {
    documents: {
      create: async (key, write) => record(key, write, await inner.create(key, write)),
      read: (key) => inner.read(key),
      update: async (key, revision, write) => record(key, write, await inner.update(key, revision, write)),
      async remove(key, revision) {
        const removed = await inner.remove(key, revision);
        if (removed === 'removed') claims.delete(key);
        return removed;
      },
      tokenOf: (revision) => inner.tokenOf(revision),
    },
    holderOf(key) {
      const claim = claims.get(key);
      return claim !== undefined && clock.monotonic() < claim.sinceMs + claim.leaseMs
        ? claim.owner
        : undefined;
    },
    ownerOf: (key, token) => owners.get(`${key} ${token}`),
    wasDone: (key) => done.has(key),
  };
}
