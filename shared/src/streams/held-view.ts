/**
 * What a process knows of the held messages of one stream, at one version of its document.
 *
 * The document counts what is held. So a process that knows as many messages as the document counts knows all of
 * them, and also which numbers are not held, without another read. The knowledge belongs to one version: a commit of
 * this process carries it to the next one, and a commit of another process ends it.
 */
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

/**
 * `count`: of the document, `from`: the first number that may be held. `isDoubted`: the count has
 * been found wrong, most likely, so that only what was looked at is known.
 */
export function heldView(count: number, from: number, isDoubted = false): HeldView {
  const known = new Map<number, HeldMessage>();
  const absent = new Set<number>();
  // Every held number from `from` up to `through` is known.
  let through = from - 1;
  let limit = FIRST_PAGE;
  let counted = count;
  let bytes = 0;

  const isComplete = (): boolean => through === Infinity || (!isDoubted && known.size >= counted);
  const add = (message: HeldMessage): void => {
    if (!known.has(message.number)) bytes += message.message.length;
    known.set(message.number, message);
    absent.delete(message.number);
  };

  return {
    at: (number) =>
      known.get(number) ?? (isComplete() || number <= through || absent.has(number) ? 'absent' : 'unknown'),
    first(start) {
      let found = Infinity;
      for (const number of known.keys()) if (number >= start && number < found) found = number;
      if (found <= through || isComplete()) return found === Infinity ? 'none' : found;
      return 'unknown';
    },
    pageAt(number, pageSize) {
      while (known.has(through + 1) || absent.has(through + 1)) through += 1;
      // Where everything before it is known, the pages go on from there; another number is asked for alone.
      if (number > through + 1) return { from: number, limit: 1 };
      const page = { from: through + 1, limit: Math.min(limit, pageSize) };
      limit *= 2;
      return page;
    },
    learned(page, messages) {
      for (const message of messages) add(message);
      if (page.from > through + 1) {
        if (messages[0]?.number !== page.from) absent.add(page.from);
      } else through = messages.length < page.limit ? Infinity : (messages.at(-1)?.number ?? Infinity);
    },
    changed(create, remove, last) {
      const isWhole = isComplete();
      for (const number of remove) {
        bytes -= known.get(number)?.message.length ?? 0;
        known.delete(number);
        absent.add(number);
      }
      for (const message of create) add(message);
      counted += create.length - remove.length;
      through = isWhole ? Infinity : Math.max(through, last);
      // Only what may be asked about again; numbers that are done never are.
      if (absent.size > MOST_ABSENT) absent.clear();
    },
    disagrees: () => known.size > counted || (through === Infinity && known.size !== counted),
    bytes: () => bytes,
  };
}

const MOST_ABSENT = 1_000;
