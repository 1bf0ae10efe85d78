/**
 * The port behind the inbox: a claim store that completes a claim in the same commit as the handler's own writes and
 * the messages that the handler wants published.
 *
 * The commit is refused unless the claim is still the very revision that its holder has seen. That alone is the fence:
 * whoever takes a claim over changes its revision, so of all deliveries and all attempts of a message at most one can
 * ever commit, whatever arrives late and however slow a process was.
 */
import type { ClaimStore, HeldClaim } from './claim-store.ts';

/** An outgoing message that is committed and not yet known to be published. It has no expiry: it is work. */
export type OutboxRow = Readonly<{
  /** Begins with the key, so that the rows of a key stand together; then its owner and position, so that none meets another. */
  id: string;
  key: string;
  topic: string;
  /** The message as `encodeMessage` writes it, with the row's ID as its ID. */
  message: Uint8Array;
}>;

export type PendingRow = Readonly<{
  id: string;
  /** On the store's clock. */
  ageMs: number;
  /** Absent when the row is not this library's, or of a version that it cannot read; `what` says why. */
  row?: OutboxRow;
  what?: string;
}>;

export type OutboxRows = Readonly<{
  /** The rows of one key in the order of their messages. */
  of(key: string): Promise<readonly PendingRow[]>;
  /** At most `limit` rows in the order of their IDs, from the one after `after`; fewer mean that the end is reached. */
  page(after: string | undefined, limit: number): Promise<readonly PendingRow[]>;
  /** Succeeds for rows that are gone already. */
  remove(ids: readonly string[]): Promise<void>;
}>;

/** What is committed beside the handler's own writes. */
export type Completion = Readonly<{ held: HeldClaim; rows: readonly OutboxRow[] }>;

export type ClaimStanding =
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
    rows: OutboxRows;
    /**
     * Calls `attempt` within a transaction and commits, all or nothing, what it wrote through `Tx`, the claim as done
     * and the rows. Calls it again, in a new transaction, when others were in the way or a reply was lost; never two
     * at once. Resolves only when a commit is confirmed.
     *
     * Rejects with what `attempt` threw, and nothing of that attempt is committed; with TRANSACTION_REFUSED when the
     * claim has another revision or a write of the handler's is not possible; with TRANSACTION_CONTENTION when others
     * were in the way each time; with STORE_UNAVAILABLE when nothing is known. Whatever it rejects with, an earlier
     * attempt may have been committed, or be yet: `withdraw` tells and ends that.
     */
    transact(attempt: (transaction: Tx) => Promise<Completion>): Promise<void>;
    /** Reads the claim, outside of any transaction. */
    look(held: HeldClaim): Promise<ClaimStanding>;
    /**
     * Gives the claim up unless it is completed. After `withdrawn` and `lost` no attempt that is still under way can
     * be committed.
     */
    withdraw(held: HeldClaim): Promise<'withdrawn' | 'completed' | 'lost'>;
  }>;
