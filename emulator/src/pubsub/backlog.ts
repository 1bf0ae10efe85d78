/**
 * The messages of one subscription that wait for delivery, and the rule of ordering keys:
 *
 * - Messages of one key form a line. A line is delivered in runs, each to one consumer, and the next run starts
 *   when nothing of the last one is outstanding. So nothing is delivered while an earlier message of its key is
 *   outstanding, except behind it in the same run.
 * - A message of a line that comes back takes all later outstanding ones of its run back with it, so that the
 *   line is whole and in order again. Their deliveries must be revoked by the caller.
 * - A line waits as long as its first message has to back off.
 *
 * A message without a key stands in the same queue on its own; one that comes back goes to the end.
 */
import { alarm, type Alarm, type Deadlines } from './deadlines.ts';
import { linkedQueue, type LinkedQueue } from './linked-queue.ts';
import type { Stored } from './stored.ts';
import type { PubsubMessage } from './wire.ts';

/** One message on its way through one subscription. */
export type Entry = {
  readonly message: PubsubMessage;
  readonly publishTimeMs: number;
  readonly bytes: number;
  /** Position in the order of publishing. */
  readonly serial: number;
  readonly line: Line | undefined;
  /** Nacks and expired deadlines so far, for the backoff. */
  failures: number;
  /** The same, counted only while there is a dead-letter policy. */
  countedFailures: number;
  readonly backoff: Backoff;
  /** A second copy of a message that was handed over: it is never put back. */
  readonly isCopy?: true;
};

/** What is known of the earlier deliveries of a message; undefined: it was never delivered. */
export type FailuresOf = (
  stored: Stored,
) => Readonly<Pick<Entry, 'failures' | 'countedFailures'>> | undefined;

/** An alarm, and among which it is set. */
type Backoff = { readonly alarm: Alarm; setIn: Deadlines | undefined };

type Line = {
  readonly key: string;
  readonly waiting: LinkedQueue<Entry>;
  readonly outstanding: Set<Entry>;
  queued: boolean;
  readonly backoff: Backoff;
};

/** What a consumer can take now. */
export type Room = Readonly<{
  messages: number;
  bytes: number;
  /** Whether a first message may be larger than `bytes`: a consumer that holds nothing must not wait for ever. */
  oversize: boolean;
  /** At most one message of a key at a time. */
  oneOfAKey: boolean;
  /** After this many it is the next consumer's turn; a run of one key is not cut by it. */
  turn: number;
}>;

/** When a message may be delivered again: a time, and the alarms of the clock that it is of. */
export type Until = Readonly<{ at: number; among: Deadlines }>;

export type Backlog = Readonly<{
  add(stored: Stored): Entry;
  hasReady(): boolean;
  /** Takes what fits, in order; `isStale` messages are dropped on the way. */
  take(room: Room, isStale: (entry: Entry) => boolean): Entry[];
  /** The message is acknowledged or has moved elsewhere. */
  done(entry: Entry): void;
  /**
   * The message waits again, until the alarm that is set `among` them is due, or not at all when there is none. Returns
   * the later ones of its key that came back with it.
   */
  putBack(entry: Entry, until?: Until): readonly Entry[];
  /** Everything that waits, whether ready, behind its key or backing off. */
  size(): number;
}>;

export function createBacklog(ordered: boolean): Backlog {
  const ready = linkedQueue<Entry | Line>();
  const lines = new Map<string, Line>();
  let serial = 0;
  let size = 0;

  const lineOf = (key: string): Line | undefined => {
    if (!ordered || key === '') return undefined;
    const known = lines.get(key);
    if (known !== undefined) return known;
    const line: Line = {
      key,
      waiting: linkedQueue(),
      outstanding: new Set(),
      queued: false,
      backoff: { alarm: alarm(() => settle(line)), setIn: undefined },
    };
    lines.set(key, line);
    return line;
  };
  /** Queues the line if it may be delivered, forgets it if nothing is left of it. */
  const settle = (line: Line): void => {
    if (line.outstanding.size > 0 || line.queued || line.backoff.alarm.index >= 0) return;
    if (line.waiting.size() === 0) {
      lines.delete(line.key);
    } else {
      line.queued = true;
      ready.push(line);
    }
  };
  const set = (backoff: Backoff, { at, among }: Until): void => {
    // A line may be put back again while it backs off, by another clock than before.
    backoff.setIn?.remove(backoff.alarm);
    backoff.setIn = among;
    among.set(backoff.alarm, at);
  };
  const fits = (entry: Entry, taken: readonly Entry[], bytes: number, room: Room): boolean =>
    taken.length < room.messages &&
    (bytes + entry.bytes <= room.bytes || (taken.length === 0 && room.oversize));

  return {
    add({ message, publishTimeMs, bytes }) {
      const line = lineOf(message.orderingKey);
      const entry: Entry = {
        message,
        publishTimeMs,
        bytes,
        serial: serial++,
        line,
        failures: 0,
        countedFailures: 0,
        backoff: { alarm: alarm(() => ready.push(entry)), setIn: undefined },
      };
      size += 1;
      if (line === undefined) {
        ready.push(entry);
      } else {
        line.waiting.push(entry);
        settle(line);
      }
      return entry;
    },
    hasReady: () => ready.size() > 0,
    take(room, isStale) {
      const taken: Entry[] = [];
      let bytes = 0;
      const takeOne = (entry: Entry): void => {
        size -= 1;
        if (isStale(entry)) return;
        entry.line?.outstanding.add(entry);
        taken.push(entry);
        bytes += entry.bytes;
      };
      for (let next = ready.peek(); next !== undefined && taken.length < room.turn; next = ready.peek()) {
        const first = 'waiting' in next ? next.waiting.peek() : next;
        if (first !== undefined && !fits(first, taken, bytes, room)) break;
        ready.shift();
        if (!('waiting' in next)) {
          takeOne(next);
          continue;
        }
        next.queued = false;
        for (let entry = first; entry !== undefined; entry = next.waiting.peek()) {
          if (!fits(entry, taken, bytes, room)) break;
          next.waiting.shift();
          takeOne(entry);
          if (room.oneOfAKey && next.outstanding.size > 0) break;
        }
        settle(next);
      }
      return taken;
    },
    done(entry) {
      entry.line?.outstanding.delete(entry);
      if (entry.line !== undefined) settle(entry.line);
    },
    putBack(entry, until) {
      const { line } = entry;
      if (line === undefined) {
        size += 1;
        if (until === undefined) ready.push(entry);
        else set(entry.backoff, until);
        return [];
      }
      const later = [...line.outstanding].filter((other) => other.serial > entry.serial);
      for (const other of [entry, ...later].toReversed()) {
        line.outstanding.delete(other);
        line.waiting.pushFront(other);
        size += 1;
      }
      if (until !== undefined) set(line.backoff, until);
      settle(line);
      return later;
    },
    size: () => size,
  };
}
