/**
 * The inbox over documents: the claim protocol of document-claims.ts, and what it takes to know after a failed commit
 * whether it was applied after all. Reading alone cannot tell, for a commit may arrive late; taking the claim away
 * under its revision can, because then the late commit is refused.
 */
import type { Clock } from '../clock.ts';
import { storeUnavailable } from '../errors.ts';
import { claimBudget } from './claim-budget.ts';
import type { HeldClaim } from './claim-store.ts';
import { type ClaimDocuments, documentClaims, type FoundClaim } from './document-claims.ts';
import type { ClaimStatus, InboxStore } from './inbox-store.ts';

export type InboxDocuments<Tx> = ClaimDocuments &
  Pick<InboxStore<Tx>, 'transactionMs' | 'maxMessageBytes' | 'outbox' | 'transact'>;

const READING = 'the reading of outgoing messages';

/** Refusals in a row that a withdrawal follows up. */
const ROUNDS = 3;

/** `timeoutMs` bounds each operation but `transact`, which lasts as long as its attempts do. */
export function documentInbox<Tx>(
  documents: InboxDocuments<Tx>,
  clock: Clock,
  timeoutMs: number,
): InboxStore<Tx> {
  const { transactionMs, maxMessageBytes, outbox } = documents;
  const within = (what: string) => claimBudget(clock, timeoutMs, what);
  return {
    ...documentClaims(documents, clock, timeoutMs),
    transactionMs,
    maxMessageBytes,
    outbox: {
      ...outbox,
      first: (prefix) => within(READING)(() => outbox.first(prefix)),
      look: (id) => within(READING)(() => outbox.look(id)),
      behind: (...asked) => within(READING)(() => outbox.behind(...asked)),
      claim: (...asked) => within('the lease of outgoing messages')(() => outbox.claim(...asked)),
      remove: (ids) => within('the removal of outgoing messages')(() => outbox.remove(ids)),
      reschedule: (...asked) =>
        within('the rescheduling of outgoing messages')(() => outbox.reschedule(...asked)),
    },
    transact: (attempt) => documents.transact(attempt),
    look: async (held) =>
      statusOf(await within('the reading of a claim')(() => documents.read(held.request.key)), held),
    async withdraw(held) {
      const call = within('the withdrawal of a claim');
      const { key } = held.request;
      let { revision } = held;
      for (let round = 1; round <= ROUNDS; round += 1) {
        const at = revision;
        if ((await call(() => documents.remove(key, at))) === 'removed') return 'withdrawn';
        const found = statusOf(await call(() => documents.read(key)), held);
        if (found.kind !== 'held') return found.kind;
        ({ revision } = found.held);
      }
      throw storeUnavailable(`the withdrawal of a claim was refused ${ROUNDS} times in a row`);
    },
  };
}

function statusOf(found: FoundClaim, { request }: HeldClaim): ClaimStatus {
  if (found.kind !== 'found' || found.record.owner !== request.owner) return { kind: 'lost' };
  if (found.record.state === 'done') return { kind: 'completed' };
  return { kind: 'held', held: { request, revision: found.revision } };
}
