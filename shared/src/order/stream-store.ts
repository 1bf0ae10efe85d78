/**
 * The ports under in-order delivery: one document per stream, and one document per message that is held for it.
 *
 * One rule carries the protocol: every change to what is held is also a write of the stream's document, which counts
 * what is held. So the document's version stands for the pointer, the lease and the set of held messages at once, and
 * a write that is conditional on the version needs nothing else. A store only reads, compares and writes; it decides
 * nothing. A method that rejects has an unknown outcome: its write may have been applied, or may be applied later.
 */
import type { PayloadRef } from '../payload/payload-store.ts';
import type { StreamPatch, StreamState } from './stream-state.ts';

/** `source` is empty where a stream spans all sources of its consumer (`streamScope: 'consumer'`). */
export type StreamRef = Readonly<{ consumer: string; source: string; key: string }>;

export type HeldMessage = Readonly<{
  number: number;
  /** Content hash: tells a duplicate from a second message under the same number. */
  hash: string;
  /** The source that the message was delivered through: its handler gets this one, whichever process runs it. */
  source: string;
  /** As `encodeMessage` gives it; empty where the content is in the payload store. */
  message: Uint8Array;
  payload?: PayloadRef;
}>;

/** A stream's document as it was read. */
export type StreamDocument = Readonly<{
  /** Undefined while the document is absent. */
  state: StreamState | undefined;
  /**
   * The document's update time in microseconds, in decimal digits; undefined while the document is absent. It grows
   * strictly with every write of the document, also one that leaves the held messages as many as before, and so
   * serves as a fencing token.
   */
  version: string | undefined;
  /** When this was read, on the store's clock, milliseconds since the epoch. */
  nowMs: number;
}>;

/** What a commit rests on: the version that was read, and the state. Of an absent document: what it starts from. */
type Seen = Readonly<{ version: string | undefined; state: StreamState }>;

/** One commit. `patch` is never empty: it names at least the commit's own ID. */
export type StreamChange = Readonly<{
  patch: StreamPatch;
  create?: readonly HeldMessage[];
  remove?: readonly number[];
}>;

/** What may be done inside `transact`. Reads come before the commit; there is at most one commit, and it comes last. */
export type StreamTransaction = Readonly<{
  read(): Promise<StreamDocument>;
  held(from: number, limit: number): Promise<readonly HeldMessage[]>;
  /** `state` is what an absent document starts from, otherwise what was read. Written when `work` has resolved. */
  commit(state: StreamState, change: StreamChange): void;
}>;

export type StreamStore = Readonly<{
  /** The largest `HeldMessage.message` that can be held, in bytes. */
  maxHeldBytes: number;

  /**
   * A strongly consistent read of the document. Rejects with TransientError `UNREADABLE_STATE` for a document of
   * another format, or one that lacks what a decision rests on.
   */
  read(ref: StreamRef): Promise<StreamDocument>;

  /**
   * Held messages with `number >= from`, ascending, at most `limit`. Strongly consistent, but not with `read`: the
   * caller relies on the answer only under a version that was read before and is unchanged at its commit.
   * Rejects as `read` does.
   */
  held(ref: StreamRef, from: number, limit: number): Promise<readonly HeldMessage[]>;

  /**
   * Writes the document, creates and removes held messages, all or nothing, and only if the document still has the
   * version of `seen` (undefined: is still absent) and none of the created messages exists. A removal of what does not
   * exist is nothing to do. A lease ends `lengthMs` after the commit's own time on the store's clock.
   *
   * Resolves with the new version, or with undefined when the commit was refused. The client may repeat the request by
   * itself, so undefined may also mean that this very commit was applied: the caller reads, and looks for its ID.
   */
  commit(ref: StreamRef, seen: Seen, change: StreamChange): Promise<string | undefined>;

  /**
   * One serialisable transaction, in which processes that contend for a document queue up instead of being refused.
   * What `work` has read cannot change before its commit, held messages included: none can appear in, or leave, what
   * was asked for. `work` may be called several times, also after a commit that was applied but whose reply was lost.
   *
   * Resolves once the commit is applied (or, where `work` made none, at once); `applied` is false where a created
   * message exists, and then nothing was written. Rejects with what `work` throws, and then nothing was written.
   */
  transact<Result>(
    ref: StreamRef,
    work: (transaction: StreamTransaction) => Promise<Result>,
  ): Promise<Readonly<{ applied: boolean; result: Result }>>;
}>;

/** For operators and for the sweep. No delivery needs it. */
export type StreamAdmin = Readonly<{
  /**
   * One page of the streams of a consumer, of all its sources; each once, as long as none changes meanwhile. A page may
   * be shorter than `limit`, or empty, and still have a `next`. A stream that cannot be read (another format) is answered
   * with its error, so that it does not hide the others.
   */
  list(consumer: string, query: StreamQuery): Promise<StreamPage>;

  /** How many streams of the consumer are in that state now. */
  count(consumer: string, state: ListedState): Promise<number>;

  /** How many messages are held for the stream, counted, not read from its document. */
  countHeld(ref: StreamRef): Promise<number>;
}>;

/**
 * `due`: a visit should come (a retry, work that was left, a lease whose end is the time to look again).
 * `waiting`: messages are held behind a number that has not come. `blocked`: the stream stopped at poison.
 */
export type ListedState = 'any' | 'due' | 'waiting' | 'blocked';

export type StreamQuery = Readonly<{
  /** `any` comes in no particular order; the others come with the oldest first. */
  state: ListedState;
  /** Only streams that have been in that state for so long, in milliseconds (not for `any`). */
  forMs?: number;
  limit: number;
  /** `next` of the page before. */
  after?: string;
}>;

export type StreamPage = Readonly<{
  streams: readonly ListedStream[];
  /** Absent on the last page. */
  next?: string;
}>;

export type ListedStream =
  | Readonly<{ ref: StreamRef; state: StreamState; version: string; nowMs: number; error?: never }>
  | Readonly<{ ref: StreamRef; error: unknown }>;
