/**
 * Plausible ways of de-duplicating, each with one rule removed, to test the property. None is for use.
 */
import { codeOf } from '../../../shared/src/errors.ts';
import { ack, type Outcome } from '../../../shared/src/outcome.ts';
import type { ClaimRequest, ClaimStore } from '../../../shared/src/dedup/claim-store.ts';
import { dedup } from '../../../shared/src/dedup/dedup.ts';
import { type ClaimDocuments, documentClaims } from '../../../shared/src/dedup/document-claims.ts';
import { identify } from '../../../shared/src/dedup/identity.ts';
import type { Invariant } from './invariants.ts';
import { type Dedup, STORE_TIMEOUT_MS } from './play.ts';

export type Mutant = Readonly<{ name: string; breaks: Invariant; way: Dedup }>;

const overStore =
  (change: (store: ClaimStore, documents: ClaimDocuments) => ClaimStore): Dedup =>
  (documents, { clock, guardClock, newId }) =>
    dedup(change(documentClaims(documents, guardClock, STORE_TIMEOUT_MS), documents), { clock, newId });

const withRequest = (change: (request: ClaimRequest) => ClaimRequest): Dedup =>
  overStore((store) => ({ ...store, claim: (request) => store.claim(change(request)) }));

const markFirst = overStore((store) => ({
  async claim(request) {
    const answer = await store.claim(request);
    if (answer.kind === 'claimed') await store.complete(answer.held);
    return answer;
  },
  renew: async (held, nonce) => ({ kind: 'renewed', held, nonce }),
  complete: async () => 'completed',
  release: async () => {},
}));

const markLast: Dedup =
  (documents, { newId }) =>
  (next) =>
  async (message, context) => {
    const { key, fingerprint } = identify(message, context);
    const found = await documents.read(key);
    if (found.kind === 'found') return ack('duplicate');
    const outcome = await next(message, context);
    const times = { leaseMs: 30_000, retentionMs: 8 * 86_400_000, mayTakeOver: true };
    const request = { key, fingerprint, owner: newId(), messageId: message.id, ...times };
    if (outcome.kind === 'ack') await documents.create(key, { kind: 'done', request });
    return outcome;
  };

/** Every write goes to the record as it is, whosever that is. */
const noOwnerCheck: Dedup = (documents, { clock, guardClock, newId }) => {
  const blind: ClaimDocuments = {
    ...documents,
    async update(key, revision, write) {
      const found = write.kind === 'claim' ? undefined : await documents.read(key);
      return documents.update(key, found?.kind === 'found' ? found.revision : revision, write);
    },
    async remove(key, revision) {
      const found = await documents.read(key);
      return documents.remove(key, found.kind === 'found' ? found.revision : revision);
    },
  };
  return dedup(documentClaims(blind, guardClock, STORE_TIMEOUT_MS), { clock, newId });
};

/** The renewal is not waited for, and writes its claim without a look at the state. */
const racingHeartbeat = overStore((store, documents) => ({
  ...store,
  async renew(held, nonce) {
    const { request } = held;
    const send = async (): Promise<void> => {
      const found = await documents.read(request.key);
      if (found.kind !== 'found' || found.record.owner !== request.owner) return;
      await documents.update(request.key, found.revision, { kind: 'claim', request });
    };
    send().catch(() => {});
    return { kind: 'renewed', held, nonce };
  },
}));

const completeOnDeadLetter: Dedup = (documents, { clock, guardClock, newId }) => {
  const once = dedup(documentClaims(documents, guardClock, STORE_TIMEOUT_MS), { clock, newId });
  return (next) => async (message, context) => {
    let given: Outcome | undefined;
    const inner = once(async (...delivery) => {
      const outcome = await next(...delivery);
      if (outcome.kind !== 'deadLetter') return outcome;
      given = outcome;
      return ack();
    });
    const outcome = await inner(message, context);
    return outcome.kind === 'ack' ? (given ?? outcome) : outcome;
  };
};

const ackInProgress: Dedup = (documents, { clock, guardClock, newId }) => {
  const once = dedup(documentClaims(documents, guardClock, STORE_TIMEOUT_MS), { clock, newId });
  return (next) => async (message, context) => {
    const outcome = await once(next)(message, context);
    const isElsewhere = outcome.kind === 'retry' && codeOf(outcome.error) === 'IN_PROGRESS_ELSEWHERE';
    return isElsewhere ? ack('duplicate') : outcome;
  };
};

/** The heartbeat believes that it holds a lease which the store does not have. */
const deafToLoss = overStore((store) => ({
  ...store,
  renew: async (held, nonce) => ({ kind: 'renewed', held, nonce }),
}));

/** Releases a key after a completion of unknown outcome. */
const releaseOfUnknown = overStore((store, documents) => ({
  ...store,
  async complete(held) {
    try {
      return await store.complete(held);
    } catch (error) {
      const found = await documents.read(held.request.key);
      if (found.kind === 'found') await documents.remove(held.request.key, found.revision);
      throw error;
    }
  },
}));

export const mutants: readonly Mutant[] = [
  { name: 'mark first', breaks: 'acked unworked', way: markFirst },
  { name: 'mark last', breaks: 'two live leases', way: markLast },
  { name: 'no owner check', breaks: 'two live leases', way: noOwnerCheck },
  { name: 'heartbeat racing complete', breaks: 'run after done', way: racingHeartbeat },
  { name: 'complete on deadLetter', breaks: 'acked unworked', way: completeOnDeadLetter },
  { name: 'ack while in progress', breaks: 'acked unworked', way: ackInProgress },
  {
    name: 'one lifetime for both states, the longer',
    breaks: 'effect lost',
    way: withRequest((request) => ({ ...request, leaseMs: request.retentionMs })),
  },
  {
    name: 'one lifetime for both states, the shorter',
    breaks: 'run after done',
    way: withRequest((request) => ({ ...request, retentionMs: request.leaseMs })),
  },
  { name: 'a renewal that confirms itself', breaks: 'two live leases', way: deafToLoss },
  { name: 'release after a completion of unknown outcome', breaks: 'run after done', way: releaseOfUnknown },
];
