/**
 * The claim protocol over documents that can be created, read, and changed under a precondition on their revision.
 *
 * Clients of such stores repeat writes by themselves, so a lost reply shows up as a refusal of one's own write. On
 * every refusal the record is read once, and if its owner is this one the record is adopted. A request that arrives
 * late fails its precondition, or makes a claim that no delivery works on, which lapses after one lease.
 */
import type { Clock } from '../clock.ts';
import { storeUnavailable } from '../errors.ts';
import type { Budget } from '../async/time-limit.ts';
import { claimBudget } from './claim-budget.ts';
import type { ClaimAnswer, ClaimRequest, ClaimStore, HeldClaim, RenewalAnswer } from './claim-store.ts';

export type ClaimRecord = Readonly<{
  state: 'claimed' | 'done';
  owner: string;
  fingerprint: string;
  messageId: string;
  /** When it was claimed, renewed or done, on the store's clock. */
  sinceMs: number;
  leaseMs: number;
  /** The last renewal that was applied; 0 is the claim itself. */
  nonce: number;
}>;

export type FoundClaim =
  | Readonly<{ kind: 'absent' }>
  | Readonly<{ kind: 'unrecognised'; what: string }>
  /** `readAtMs` is on the store's clock. */
  | Readonly<{ kind: 'found'; record: ClaimRecord; revision: string; readAtMs: number }>;

export type ClaimWrite =
  | Readonly<{ kind: 'claim'; request: ClaimRequest }>
  | Readonly<{ kind: 'renewal'; nonce: number }>
  | Readonly<{ kind: 'done'; request: ClaimRequest }>;

/** `refused`: the document exists, is missing, or has another revision. Nothing was changed by this attempt. */
export type Written = Readonly<{ kind: 'written'; revision: string }> | Readonly<{ kind: 'refused' }>;

/** Writes are atomic and stamp the store's time. Every method rejects with TransientError when the outcome is unknown. */
export type ClaimDocuments = Readonly<{
  create(key: string, write: ClaimWrite): Promise<Written>;
  read(key: string): Promise<FoundClaim>;
  /** A claim replaces the whole record; the others change their own fields. */
  update(key: string, revision: string, write: ClaimWrite): Promise<Written>;
  remove(key: string, revision: string): Promise<'removed' | 'refused'>;
  /** A decimal number that grows with every revision of a key. */
  tokenOf(revision: string): string;
}>;

type Claimed = Extract<ClaimAnswer, { kind: 'claimed' }>;

/** Refusals in a row that one operation follows up. More means that others keep changing the record. */
const ROUNDS = 3;

export function documentClaims(documents: ClaimDocuments, clock: Clock, timeoutMs: number): ClaimStore {
  return {
    claim: (request) => claim(documents, request, claimBudget(clock, timeoutMs, 'the claim')),
    renew: (held, nonce) =>
      renew(documents, held, nonce, claimBudget(clock, timeoutMs, 'the renewal of a claim')),
    complete: (held) => complete(documents, held, claimBudget(clock, timeoutMs, 'the completion of a claim')),
    release: (held) => release(documents, held, claimBudget(clock, timeoutMs, 'the release of a claim')),
  };
}

async function claim(documents: ClaimDocuments, request: ClaimRequest, within: Budget): Promise<ClaimAnswer> {
  const { key } = request;
  const write: ClaimWrite = { kind: 'claim', request };
  const claimed = (revision: string, adopted: boolean): Claimed => {
    return {
      kind: 'claimed',
      held: { request, revision },
      fencingToken: documents.tokenOf(revision),
      adopted,
    };
  };
  for (let round = 1; round <= ROUNDS; round += 1) {
    const created = await within(() => documents.create(key, write));
    if (created.kind === 'written') return claimed(created.revision, false);
    // Refused: look. A take-over that is refused has changed under us, and the new state decides.
    for (let look = 1; look <= ROUNDS; look += 1) {
      const found = await within(() => documents.read(key));
      if (found.kind === 'absent') break;
      if (found.kind === 'unrecognised') return found;
      const answer = judge(found, request);
      if (answer === 'mine') return claimed(found.revision, true);
      if (answer !== 'expired') return answer;
      if (!request.mayTakeOver) return { kind: 'inProgress', remainingMs: 0 };
      const taken = await within(() => documents.update(key, found.revision, write));
      if (taken.kind === 'written') {
        const renewed = claimed(taken.revision, false);
        return found.record.state === 'claimed' ? { ...renewed, recovered: true } : renewed;
      }
    }
  }
  return { kind: 'inProgress', remainingMs: 0 };
}

function judge(
  { record, readAtMs }: Extract<FoundClaim, { kind: 'found' }>,
  request: ClaimRequest,
): ClaimAnswer | 'mine' | 'expired' {
  const { fingerprint, messageId } = record;
  const ageMs = readAtMs - record.sinceMs;
  if (record.state === 'done') {
    if (ageMs >= request.retentionMs) return 'expired';
    const kind = fingerprint === request.fingerprint ? 'duplicate' : 'conflict';
    return { kind, fingerprint, messageId };
  }
  if (record.owner === request.owner) return 'mine';
  if (ageMs >= record.leaseMs) return 'expired';
  return { kind: 'inProgress', remainingMs: record.leaseMs - ageMs };
}

async function renew(
  documents: ClaimDocuments,
  held: HeldClaim,
  nonce: number,
  within: Budget,
): Promise<RenewalAnswer> {
  const { request } = held;
  const renewed = await within(() =>
    documents.update(request.key, held.revision, { kind: 'renewal', nonce }),
  );
  if (renewed.kind === 'written')
    return { kind: 'renewed', held: { request, revision: renewed.revision }, nonce };
  const found = await within(() => documents.read(request.key));
  if (!isHeldBy(found, request)) return { kind: 'lost' };
  // Not written again: the lease is what the record says, from the renewal that arrived.
  return { kind: 'renewed', held: { request, revision: found.revision }, nonce: found.record.nonce };
}

async function complete(
  documents: ClaimDocuments,
  held: HeldClaim,
  within: Budget,
): Promise<'completed' | 'stolen'> {
  const { request } = held;
  const write: ClaimWrite = { kind: 'done', request };
  let written = await within(() => documents.update(request.key, held.revision, write));
  for (let round = 1; round <= ROUNDS && written.kind === 'refused'; round += 1) {
    const found = await within(() => documents.read(request.key));
    if (found.kind === 'unrecognised') return 'stolen';
    if (found.kind === 'absent') {
      // Taken over and released since: the work is done all the same, and its record spares the next run.
      written = await within(() => documents.create(request.key, write));
    } else if (found.record.owner !== request.owner) {
      return 'stolen';
    } else if (found.record.state === 'done') {
      return 'completed';
    } else {
      written = await within(() => documents.update(request.key, found.revision, write));
    }
  }
  if (written.kind === 'refused') throw contended('completion');
  return 'completed';
}

async function release(documents: ClaimDocuments, held: HeldClaim, within: Budget): Promise<void> {
  const { request } = held;
  let { revision } = held;
  for (let round = 1; round <= ROUNDS; round += 1) {
    const at = revision;
    if ((await within(() => documents.remove(request.key, at))) === 'removed') return;
    const found = await within(() => documents.read(request.key));
    if (!isHeldBy(found, request)) return;
    revision = found.revision;
  }
  throw contended('release');
}

type Found = Extract<FoundClaim, { kind: 'found' }>;

function isHeldBy(found: FoundClaim, request: ClaimRequest): found is Found {
  return found.kind === 'found' && found.record.state === 'claimed' && found.record.owner === request.owner;
}

const contended = (what: string): Error =>
  storeUnavailable(`the ${what} of a claim was refused ${ROUNDS} times in a row`);
