/**
 * What a process knows of the held messages of one stream, at one version of its document.
 *
 * The document counts what is held. So a process that knows as many messages as the document counts knows all of
 * them, and also which numbers are not held, without another read. The knowledge belongs to one version: a commit of
 * this process carries it to the next one, and a commit of another process ends it. A document that was restored from an
 * earlier time cannot be distinguished from one that another process has written, and may hold other messages.
 */
import { showsGap, type StreamState } from './stream-state.ts';
import type { HeldMessage } from './stream-store.ts';

export type HeldView = Readonly<{
  /** The held message of a number, `absent` where none is held, or `unknown`. */
  at(number: number): HeldMessage | 'absent' | 'unknown';
  /** The first held number from `from` on, `none`, or `unknown`. */
  first(from: number): number | 'none' | 'unknown';
  /** The next page to read so that `number` becomes known, at most `pageSize` messages. */
  pageAt(number: number, pageSize: number): Page;
  /** What the store answered to a page. */
  learned(page: Page, messages: readonly HeldMessage[]): void;
  /** What a commit of this process has changed. `last`: nothing up to it is held any more. */
  changed(create: readonly HeldMessage[], remove: readonly number[], last: number): void;
  /** The document counts another number of messages than were found: one of the two was read at another version. */
  disagrees(): boolean;
  /** Bytes of content that are kept in memory. */
  bytes(): number;
}>;

export type Page = Readonly<{ from: number; limit: number }>;

/** A page begins this small, and doubles: most streams that have something held have little of it in one run. */
const FIRST_PAGE = 2;

/** What a document says about what is held. */
export function heldView(state: StreamState): HeldView {
  const known = new Map<number, HeldMessage>();
  /** Ranges that were looked at, both ends included: of a number in one of them it is known whether it is held. */
  let looked: readonly (readonly [number, number])[] = [];
  /** The first number that may be held. */
  let start = state.last + (showsGap(state) ? 2 : 1);
  let counted = state.held;
  let bytes = 0;
  let [nextFrom, nextLimit] = [start, FIRST_PAGE];

  const add = (message: HeldMessage): void => {
    if (!known.has(message.number)) bytes += message.message.length;
    known.set(message.number, message);
  };
  /** The first number from `number` on of which it is not known whether it is held; Infinity where all is known. */
  const unknownFrom = (number: number): number => {
    for (let next = Math.max(number, start); ; ) {
      const range = looked.find(([first, last]) => first <= next && next <= last);
      if (range !== undefined) next = range[1] + 1;
      else if (known.has(next)) next += 1;
      else return next;
      if (next === Infinity) return next;
    }
  };
  const isWhole = (): boolean => unknownFrom(start) === Infinity;
  const isComplete = (): boolean => known.size >= counted || isWhole();

  return {
    at: (number) =>
      known.get(number) ?? (isComplete() || unknownFrom(number) > number ? 'absent' : 'unknown'),
    first(number) {
      const end = isComplete() ? Infinity : unknownFrom(number);
      let found = Infinity;
      for (const one of known.keys()) if (one >= number && one < end && one < found) found = one;
      if (found !== Infinity) return found;
      return end === Infinity ? 'none' : 'unknown';
    },
    pageAt(number, pageSize) {
      const page = { from: unknownFrom(number), limit: FIRST_PAGE };
      // It goes on where the page before it ended.
      if (page.from === nextFrom) page.limit = nextLimit;
      page.limit = Math.min(page.limit, pageSize);
      nextLimit = page.limit * 2;
      return page;
    },
    learned(page, messages) {
      for (const message of messages) add(message);
      const last = messages.length < page.limit ? Infinity : (messages.at(-1)?.number ?? Infinity);
      looked = [...looked, [page.from, last]];
      nextFrom = last + 1;
    },
    changed(create, remove, last) {
      const wasComplete = isComplete();
      for (const number of remove) {
        bytes -= known.get(number)?.message.length ?? 0;
        known.delete(number);
      }
      for (const message of create) add(message);
      counted += create.length - remove.length;
      start = Math.max(start, last + 1);
      looked = wasComplete ? [[start, Infinity]] : looked.filter(([, end]) => end >= start);
    },
    disagrees: () => known.size > counted || (isWhole() && known.size !== counted),
    bytes: () => bytes,
  };
}
