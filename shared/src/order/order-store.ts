/**
 * The port under in-order delivery: one key document per (consumer, key) and one document per held message.
 *
 * The protocol's decisions are pure functions above this port; a store only reads, compares and writes. A method that
 * rejects has an unknown outcome: its write may have been applied, or may be applied later. Callers never take a
 * rejection for "did not happen".
 */
import type { PayloadRef } from '../payload/payload-room.ts';
import type { KeyPatch, KeyState } from './key-state.ts';

export type KeyRef = Readonly<{ consumer: string; key: string }>;

export type HeldMessage = Readonly<{
  number: number;
  /** Content hash: tells a duplicate from a second message under the same number. */
  hash: string;
  /** The source it was delivered through: it runs under that one, whoever drains it. */
  source: string;
  /** As `encodeMessage` gives it; empty where it waits in the payload room. */
  message: Uint8Array;
  payload?: PayloadRef;
}>;

type KeyView = Readonly<{
  /** Undefined while the document is absent. */
  state: KeyState | undefined;
  /**
   * The document's update time in microseconds, undefined while it is absent. Grows strictly with every write to the
   * document, and so serves as a fencing token.
   */
  version: string | undefined;
  /** When this was read, on the store's clock, milliseconds since the epoch. */
  nowMs: number;
}>;

/** What a transaction reads besides the key document: some held numbers, or the first ones from a number on. */
export type HeldQuery = Readonly<{ numbers: readonly number[] }> | Readonly<{ from: number; limit: number }>;

export type Decision<Result> = Readonly<{
  result: Result;
  /** Absent: the key document is not written. */
  patch?: KeyPatch;
  create?: readonly HeldMessage[];
  remove?: readonly number[];
}>;

export type OrderStore = Readonly<{
  /** The largest `HeldMessage.message` that can be held, in bytes. */
  maxHeldBytes: number;

  /** A strongly consistent read of the key document. */
  read(ref: KeyRef): Promise<KeyView>;

  /**
   * Changes the key document and removes held numbers, all or nothing, and only if the document still has `version`
   * (undefined: is still absent). `base` is what an absent document starts from.
   * Answers the new version, or undefined when the document has another version. The client may repeat the request by
   * itself, so undefined may also mean that this very write was applied: the caller reads and looks for its own mark.
   */
  write(
    ref: KeyRef,
    expected: Readonly<{ version: string | undefined; base: KeyState }>,
    patch: KeyPatch,
    remove?: readonly number[],
  ): Promise<string | undefined>;

  /**
   * One serialisable transaction: reads the key document and the held messages of `query`, calls `decide`, writes
   * what it answers, and resolves once that is committed. Reads AND the query are validated: no held message can
   * appear in, or leave, what the query covers between the read and the commit.
   * `decide` may be called several times, also after a commit that was applied but whose reply was lost: it is pure,
   * and must recognise its own work. `now` is the transaction's read time.
   */
  transact<Result>(
    ref: KeyRef,
    base: KeyState,
    query: HeldQuery,
    decide: (state: KeyState, held: readonly HeldMessage[], nowMs: number) => Decision<Result>,
  ): Promise<Result>;

  /** Held messages with `number >= from`, ascending, at most `limit`. Strongly consistent, outside any transaction. */
  held(ref: KeyRef, from: number, limit: number): Promise<readonly HeldMessage[]>;

  /**
   * Keys with `readyAt` not after the store's present time, oldest first, at most `limit`. One that cannot be read
   * (another format) is answered with its error, so that it does not hide the others.
   */
  ready(consumer: string, limit: number): Promise<readonly ReadyKey[]>;

  /** One page of the keys of a consumer; each key once, as long as none changes meanwhile. Unreadable ones as above. */
  list(consumer: string, query: KeyQuery): Promise<KeyPage>;

  /** How many keys are in that state now. */
  count(consumer: string, state: ListedState): Promise<number>;

  /** How many messages are held for the key. */
  countHeld(ref: KeyRef): Promise<number>;
}>;

/**
 * `waiting`: messages are held behind a number that has not come. `halted`: stands still at poison. `ready`: somebody
 * must look at it now (a retry, something let go of, a dead owner).
 */
export type ListedState = 'any' | 'ready' | 'waiting' | 'halted';

export type KeyQuery = Readonly<{
  /** `any` comes in no particular order; the others come with the oldest first. */
  state: ListedState;
  /** Only what has been in that state for so long (not for `any`). */
  forMs?: number;
  limit: number;
  /** `next` of the page before. */
  after?: string;
}>;

export type KeyPage = Readonly<{
  keys: readonly ReadyKey[];
  /** Absent on the last page. */
  next?: string;
}>;

export type ReadyKey =
  | Readonly<{ ref: KeyRef; state: KeyState; version: string; nowMs: number; error?: never }>
  | Readonly<{ ref: KeyRef; error: unknown }>;
