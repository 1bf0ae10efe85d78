/**
 * The port behind the inbox: a claim store that completes a claim in the same commit as the handler's own writes and
 * the messages that the handler wants published.
 *
 * The commit is refused unless the claim is still the very revision that its holder has seen. That alone is the fence:
 * a delivery that takes a claim over changes its revision, so of all deliveries and all attempts of a message at most
 * one can ever commit, whatever arrives late and however slow a process was.
 */
import type { OutboxWriter, RelayStore } from '../outbox/outbox-store.ts';
import type { Row } from '../outbox/rows.ts';
import type { ClaimStore, HeldClaim } from './claim-store.ts';

/** What is committed beside the handler's own writes. */
export type Completion = Readonly<{ held: HeldClaim; rows: readonly Row[] }>;

type InboxOutbox = RelayStore & Pick<OutboxWriter<never>, 'project'>;

export type ClaimStatus =
  | Readonly<{ kind: 'held'; held: HeldClaim }>
  /** By its own owner. */
  | Readonly<{ kind: 'completed' }>
  /** Another's, gone, or not ours: nothing of this owner can be committed any more. */
  | Readonly<{ kind: 'lost' }>;

/** `Tx` is what the handler reads and writes with. */
export type InboxStore<Tx> = ClaimStore &
  Readonly<{
    /** How long a transaction may take: the handler is aborted then. */
    transactionMs: number;
    /** How large a stored message may be. */
    maxMessageBytes: number;
    /**
     * Where the rows of completions are, with those of the transactional outbox: a relay over it publishes what
     * deliveries leave behind.
     */
    outbox: InboxOutbox;
    /**
     * Calls `attempt` within a transaction and commits, all or nothing, what it wrote through `Tx`, the claim as done
     * and the rows, as one group, leased to the claim's owner for as long as the claim was. Calls it again, in a new transaction, when others were in the way or a reply was lost; never two
     * at once. Resolves only when a commit is confirmed.
     *
     * Rejects with what `attempt` threw, and nothing of that attempt is committed; with TRANSACTION_REFUSED when the
     * claim has another revision or a write of the handler's is not possible; with TRANSACTION_CONTENTION when others
     * were in the way each time; with STORE_UNAVAILABLE when nothing is known. Whatever it rejects with, an earlier
     * attempt may have been committed, or be yet: `withdraw` tells and ends that.
     */
    transact(attempt: (transaction: Tx) => Promise<Completion>): Promise<void>;
    /** Reads the claim, outside of any transaction. */
    look(held: HeldClaim): Promise<ClaimStatus>;
    /**
     * Gives the claim up unless it is completed. After `withdrawn` and `lost` no attempt that is still in flight can
     * be committed.
     */
    withdraw(held: HeldClaim): Promise<'withdrawn' | 'completed' | 'lost'>;
  }>;
