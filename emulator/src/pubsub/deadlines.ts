/**
 * Many times at which something is due, kept by one timer of the clock: ack deadlines and backoffs.
 *
 * Setting, moving and removing an alarm costs the logarithm of their number, and a removed alarm leaves
 * nothing behind, so that memory does not grow with every message that is acknowledged in time.
 */
import type { Cancel, Clock } from '../clock.ts';

export type Alarm = {
  /** Milliseconds since the epoch; meaningful while the alarm is set. */
  at: number;
  /** Place in the heap, -1 while it is not set, -2 while it is taken out to be called. */
  index: number;
  /** Of two alarms for one time the one that was set first goes first. */
  serial: number;
  readonly due: () => void;
};

const UNSET = -1;
const TAKEN = -2;

export const alarm = (due: () => void): Alarm => ({ at: 0, index: UNSET, serial: 0, due });

export type Deadlines = Readonly<{
  /** Sets the alarm, or moves it when it is set already. */
  set(item: Alarm, at: number): void;
  remove(item: Alarm): void;
  /** How many are set. */
  size(): number;
  /** Forgets all alarms and stops the timer. */
  close(): void;
}>;

/** `afterDue` is called once after each run of alarms that were due together. */
export function createDeadlines(clock: Clock, afterDue: () => void): Deadlines {
  const heap: Alarm[] = [];
  let armed: { at: number; cancel: Cancel } | undefined;
  let closed = false;
  let serial = 0;

  const before = (a: Alarm, b: Alarm): boolean => a.at < b.at || (a.at === b.at && a.serial < b.serial);

  const place = (item: Alarm, index: number): void => {
    heap[index] = item;
    item.index = index;
  };
  const up = (item: Alarm, from: number): void => {
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || before(above, item)) break;
      place(above, index);
      index = parent;
    }
    place(item, index);
  };
  const down = (item: Alarm, from: number): void => {
    let index = from;
    for (;;) {
      const left = 2 * index + 1;
      const a = heap[left];
      const b = heap[left + 1];
      const below = a !== undefined && b !== undefined && before(b, a) ? b : a;
      if (below === undefined || before(item, below)) break;
      const next = below.index;
      place(below, index);
      index = next;
    }
    place(item, index);
  };
  const remove = (item: Alarm): void => {
    const { index } = item;
    item.index = UNSET;
    if (index < 0) return;
    const last = heap.pop();
    if (last !== undefined && last !== item) {
      last.index = index;
      up(last, index);
      down(last, last.index);
    }
    // A timer that has become too early is left to find nothing due: moving it at every ack would cost more.
    if (heap.length === 0) disarm();
  };
  const disarm = (): void => {
    armed?.cancel();
    armed = undefined;
  };
  const arm = (): void => {
    const first = heap[0];
    if (first === undefined || closed) return;
    if (armed !== undefined && armed.at <= first.at) return;
    disarm();
    armed = { at: first.at, cancel: clock.after(Math.max(first.at - clock.now(), 0), fire) };
  };
  const fire = (): void => {
    armed = undefined;
    // One reading of the time, so that an alarm that sets itself again cannot keep the loop going.
    const now = clock.now();
    const due: Alarm[] = [];
    for (let first = heap[0]; first !== undefined && first.at <= now; first = heap[0]) {
      remove(first);
      first.index = TAKEN;
      due.push(first);
    }
    for (const item of due) {
      // An earlier alarm of the same run may have removed this one or set it anew: then it is no longer due.
      if (item.index !== TAKEN || closed) continue;
      item.index = UNSET;
      item.due();
    }
    arm();
    if (due.length > 0) afterDue();
  };

  return {
    set(item, at) {
      if (closed) return;
      remove(item);
      item.at = at;
      item.serial = serial++;
      heap.push(item);
      up(item, heap.length - 1);
      arm();
    },
    remove,
    size: () => heap.length,
    close() {
      closed = true;
      disarm();
      for (const item of heap) item.index = UNSET;
      heap.length = 0;
    },
  };
}
