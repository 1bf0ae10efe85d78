/**
 * A backlog whose messages are handed over late, twice or out of order, where a rule about `deliver` says so. Each handing
 * over counts, redeliveries among them.
 *
 * - A delayed message waits on the clock. With an ordering key its line waits with it, so that the order is kept.
 * - A message that is out of order is overtaken by so many later ones, or waits for them no longer than its rule allows.
 *   One with an ordering key on an ordered subscription keeps its place: that order is promised.
 * - A second copy has an ack ID of its own and is handed over once, right after the first: whatever becomes of it, it does
 *   not come again. Acknowledging one says nothing of the other. An exactly-once subscription hands out no second copy.
 *
 * What is held back counts as waiting. A subscription that begins anew forgets what was decided.
 */
import type { Faults } from '../faults/faults.ts';
import { type Action, REORDER_AT_MOST_MS } from '../faults/plan.ts';
import { type Backlog, createBacklog, type Entry, type Room } from './backlog.ts';
import { alarm, type Alarm, type Deadlines } from './deadlines.ts';
import type { Subscription } from './wire.ts';

/** Held back until `left` later messages were handed over, or its alarm is due. */
type Held = { readonly entry: Entry; left: number; readonly alarm: Alarm };

const KEEPS_ORDER = 'the message has an ordering key on an ordered subscription';
const EXACTLY_ONCE = 'exactly-once delivery hands out no second copy';

/** Makes the backlog of a subscription, which sets its alarms among those deadlines. */
export type NewBacklog = (deadlines: Deadlines) => Backlog;

export function newBacklogs(
  faults: Faults | undefined,
  now: () => number,
  config: () => Subscription,
): NewBacklog {
  return (deadlines) => {
    const backlog = createBacklog(config().enableMessageOrdering);
    return faults === undefined ? backlog : disturbed(backlog, deadlines, faults, now, config);
  };
}

function disturbed(
  backlog: Backlog,
  deadlines: Deadlines,
  faults: Faults,
  now: () => number,
  config: () => Subscription,
): Backlog {
  const held = new Set<Held>();
  /** Decided already, and handed over before anything else. */
  const due: Entry[] = [];
  /** Decided already, and back in its line. */
  const decided = new WeakSet<Entry>();

  function hold(entry: Entry, left: number, ms: number): void {
    const one: Held = { entry, left, alarm: alarm(() => release(one)) };
    held.add(one);
    deadlines.set(one.alarm, now() + ms);
  }
  function release(one: Held): void {
    held.delete(one);
    deadlines.remove(one.alarm);
    due.push(one.entry);
  }
  function handedOver(): void {
    for (const one of held) {
      one.left -= 1;
      if (one.left <= 0) release(one);
    }
  }
  function decide(entry: Entry): Action | undefined {
    if (decided.delete(entry)) return undefined;
    const { name, enableExactlyOnceDelivery } = config();
    const skip = ({ type }: Action): string | undefined => {
      if (type === 'reorder' && entry.line !== undefined) return KEEPS_ORDER;
      return type === 'duplicate' && enableExactlyOnceDelivery ? EXACTLY_ONCE : undefined;
    };
    return faults.decide('pubsub', 'deliver', name, { skip })?.action;
  }
  function delay(entry: Entry, ms: number): void {
    if (entry.line === undefined) return hold(entry, Number.POSITIVE_INFINITY, ms);
    decided.add(entry);
    backlog.putBack(entry, { at: now() + ms, among: deadlines });
  }

  /** One message after the other, because what happens to one changes which is the next. */
  function take(room: Room, isStale: (entry: Entry) => boolean): Entry[] {
    const taken: Entry[] = [];
    let bytes = 0;
    const left = (): Room => ({
      ...room,
      messages: Math.min(room.messages - taken.length, 1),
      bytes: room.bytes - bytes,
      oversize: room.oversize && taken.length === 0,
      turn: 1,
    });
    const hand = (entry: Entry): void => {
      taken.push(entry);
      bytes += entry.bytes;
    };
    /** False when the next does not fit. */
    const takeDue = (): boolean => {
      for (let first = due[0]; first !== undefined; first = due[0]) {
        const rest = left();
        if (rest.messages < 1 || (first.bytes > rest.bytes && !rest.oversize)) return false;
        due.shift();
        if (!isStale(first)) hand(first);
      }
      return true;
    };
    while (takeDue() && taken.length < Math.min(room.messages, room.turn)) {
      const [entry] = backlog.take(left(), isStale);
      if (entry === undefined) break;
      const action = decide(entry);
      if (action?.type === 'delay') delay(entry, action.ms);
      else if (action?.type === 'reorder') {
        hold(entry, action.window, action.atMostMs ?? REORDER_AT_MOST_MS);
      } else {
        hand(entry);
        handedOver();
        // Ahead of all that follows: the rest of its line waits for the first.
        if (action?.type === 'duplicate') due.unshift(copyOf(entry));
      }
    }
    return taken;
  }

  return {
    add: backlog.add,
    hasReady: () => due.length > 0 || backlog.hasReady(),
    take(room, isStale) {
      const idle = due.length === 0 && held.size === 0;
      return idle && !faults.concern('pubsub', 'deliver', config().name)
        ? backlog.take(room, isStale)
        : take(room, isStale);
    },
    // A copy has no line, so nothing is done for it.
    done: backlog.done,
    putBack: (entry, until) => (entry.isCopy ? [] : backlog.putBack(entry, until)),
    size: () => backlog.size() + held.size + due.length,
  };
}

const copyOf = (entry: Entry): Entry => ({
  ...entry,
  line: undefined,
  backoff: { alarm: alarm(() => {}), setIn: undefined },
  isCopy: true,
});
