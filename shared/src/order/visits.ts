/**
 * A visit: work on a stream that no message of it asks for. The sweep and a wake-up make visits; so a visit has no
 * delivery attempts that could run out, and may take over from a process that died, and start a number that has failed.
 */
import type { Handler, SweepContext } from '../handler.ts';
import type { StreamRef } from './stream-store.ts';

/** A delivery's context without its source: what is held runs under the source that it came through. */
export type VisitContext = SweepContext;

export type Visited = Readonly<{
  /** Whether this visit worked on the stream. If not, nothing was due, or another process or visit has the stream. */
  taken: boolean;
  /** Numbers that ran in this visit and are counted as done. */
  drained: number;
}>;

/**
 * Ends by the context's deadline, with half of the time that is left when it is called for starting held messages.
 * Rejects with TransientError `STORE_UNAVAILABLE` or `UNREADABLE_STATE` when nothing is known. A stream that this
 * process works on, and one that waits for another visit, is answered `taken: false` at once.
 */
export type VisitStream = (ref: StreamRef, context: VisitContext, next: Handler) => Promise<Visited>;
