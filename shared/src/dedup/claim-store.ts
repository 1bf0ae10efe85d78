/**
 * The port behind de-duplication: which delivery works on a key, until when, and what is already done.
 *
 * A key is absent, claimed by an owner until a time, or done until a time. "Seen" is never written before the work
 * is done, so a crash between claim and completion costs a retry and never a message. Everything that needs the
 * store's own clock or a look at the record lives behind this port; deadlines, heartbeat and waiting live in front.
 */

/**
 * What is claimed, and for which delivery. One `owner` per delivery, made before its first attempt and never used for
 * another delivery.
 */
export type ClaimRequest = Readonly<{
  /** A hash: 43 characters of `A-Za-z0-9_-`. */
  key: string;
  owner: string;
  /** A hash of the message's data, to tell a repeat from another message under the same `dedupId`. */
  fingerprint: string;
  /** Stored, so that a conflict can name both messages. */
  messageId: string;
  leaseMs: number;
  /** How long a completed record counts. */
  retentionMs: number;
  /**
   * Whether an expired claim may be taken over: only with a handler's time left. False answers `inProgress` with
   * nothing remaining. A store that no longer has the expired claim cannot tell, and answers `claimed`.
   */
  mayTakeOver: boolean;
}>;

/** A claim as its holder knows it. Pass the newest one to the next call. */
export type HeldClaim = Readonly<{
  request: ClaimRequest;
  /** The store's own: which version of the record this holder has seen. */
  revision: string;
}>;

export type ClaimAnswer =
  | Readonly<{
      kind: 'claimed';
      held: HeldClaim;
      /**
       * A decimal number that grows with every claim on the key: a guard for the handler's own writes. In Redis it may
       * fall after a record was lost on a server whose clock is behind (docs/guarantees.md, Fencing tokens).
       */
      fencingToken: string;
      /**
       * True when the record was this owner's already, because a reply was lost or a request was late: its lease then
       * counts from this owner's first attempt.
       */
      adopted: boolean;
      /**
       * True when an owner's claim had run out before it was settled: the work of a process that died, or was too slow.
       * Only for measuring. A store that no longer has the expired claim cannot tell, and leaves it out.
       */
      recovered?: true;
    }>
  /** Another delivery works on it, whatever the fingerprint: only a completed record can be a conflict. */
  | Readonly<{ kind: 'inProgress'; remainingMs: number }>
  /** Done, with the same fingerprint as far as the store keeps it: Redis has its first 72 bits. */
  | Readonly<{ kind: 'duplicate'; fingerprint: string; messageId: string }>
  /**
   * Done, with another fingerprint: `messageId` is the first message's, `fingerprint` as much of its own, from the
   * beginning, as the store keeps.
   */
  | Readonly<{ kind: 'conflict'; fingerprint: string; messageId: string }>
  /** The record is not this library's, or of a version that it cannot read. It was left untouched. */
  | Readonly<{ kind: 'unrecognised'; what: string }>;

export type RenewalAnswer =
  /** `nonce` is the one on the record: smaller than the one sent when an earlier renewal was found to have arrived. */
  Readonly<{ kind: 'renewed'; held: HeldClaim; nonce: number }> | Readonly<{ kind: 'lost' }>;

/**
 * What every implementer promises:
 * - Each method settles within a bounded time (ours: 5 s), whatever the state of the network. It rejects with
 *   TransientError `STORE_UNAVAILABLE` when the outcome is not known: the write may have happened, or happen later.
 * - Expiry is judged on the store's clock. A lease runs at least `leaseMs` from the moment the request was sent.
 * - Any method may be called again with the same arguments, and an earlier call may arrive late: no other delivery's record
 *   and no completed record is changed by that, and a completed record keeps its whole retention.
 * - A record that is kept longer than it counts is treated as absent; none is removed while it counts.
 */
export type ClaimStore = Readonly<{
  /** Takes an absent or expired key. Exactly one of any number of concurrent owners gets `claimed`. */
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /** Starts the lease anew. `nonce` counts this holder's renewals from 1; 0 stands for the claim itself. */
  renew(held: HeldClaim, nonce: number): Promise<RenewalAnswer>;
  /**
   * Records the work as done. Succeeds for a claim that expired but was not taken, and for a record that is gone;
   * `stolen` when another owner has the key, whose record stays as it is.
   */
  complete(held: HeldClaim): Promise<'completed' | 'stolen'>;
  /** Makes the key absent if it is still claimed by this owner. A completed record stays. */
  release(held: HeldClaim): Promise<void>;
}>;
