/**
 * A clock that runs with real time, and can be frozen, resumed and moved forward.
 *
 * Moving fires every timer that falls due on the way, in order, each at its own time; what follows from one
 * (`settled`) is awaited before the next fires, so that a chain of consequences comes out as it would in real time.
 * While it is being moved, real time adds nothing. It never goes back. A state that is loaded starts at a time of its
 * own: the clock goes there without firing anything, and the move in progress ends.
 */
import { createHeap, type HeapItem } from './heap.ts';
import { type Cancel, type Clock, type Move, type Moves, systemClock } from './clock.ts';

export type MovableClock = Clock &
  Readonly<{
    moves: Moves;
    isFrozen(): boolean;
    freeze(): void;
    /** Goes on in real time from where it stands. */
    resume(): void;
    /** Moves `milliseconds` forward. Moves that overlap are made one after the other. Answers how many timers fired. */
    advance(milliseconds: number): Promise<number>;
    /**
     * Moves from timer to timer until none is left, or the next is more than `limitMs` from the start.
     * Answers how many fired.
     */
    runUntilIdle(limitMs: number): Promise<number>;
    /** When the earliest timer is due; undefined when there is none. */
    nextDueMs(): number | undefined;
    /**
     * Goes to `time` when that is later than now, firing nothing on the way, and runs `act` there, which replaces what
     * had set the timers. When `act` throws, the clock is where it was, and this rejects with its error. Moves in
     * progress or waiting reject; resolves when they have ended.
     */
    startAt(time: number, act: () => void): Promise<void>;
    /** Drops every timer: for the end of the stack. */
    close(): void;
  }>;

type Timer = HeapItem & { readonly callback: () => void };

/** `settled` resolves when nothing is in flight that a further step could overtake. */
export function movableClock(settled: () => Promise<void>, real: Clock = systemClock()): MovableClock {
  const timers = createHeap<Timer>();
  let sequence = 0;
  /** In real time: what is added to the real clock. Frozen: undefined, and `stands` is the time. */
  let offset: number | undefined = 0;
  let stands = 0;
  let disarm: Cancel = () => {};
  let moves: Promise<unknown> = Promise.resolve();
  let moving: Move | undefined;
  let wantsFrozen = false;
  /** How often the clock was started elsewhere: a move belongs to the time in which it was asked for. */
  let starts = 0;

  const now = (): number => (offset === undefined ? stands : real.now() + offset);

  function fire(timer: Timer): void {
    timers.remove(timer);
    timer.callback();
  }

  /** In real time one real timer stands for the earliest of ours. */
  function arm(): void {
    disarm();
    disarm = () => {};
    const first = timers.first();
    if (offset === undefined || first === undefined) return;
    disarm = real.after(Math.max(first.dueMs - now(), 0), () => {
      for (let due = timers.first(); due !== undefined && due.dueMs <= now(); due = timers.first()) fire(due);
      arm();
    });
  }

  function standAt(time: number): void {
    offset = undefined;
    stands = time;
  }

  function goOn(): void {
    if (offset === undefined) offset = stands - real.now();
    arm();
  }

  /** One move at a time, with real time stopped, and the mode as it was afterwards. */
  function move(
    end: (start: number) => number,
    isOver: (due: number, end: number) => boolean,
    toEnd: boolean,
  ) {
    const asked = starts;
    const assertSameStart = (): void => {
      if (asked !== starts) throw new Error('the clock was not moved to the end: another state was loaded');
    };
    const run = async (): Promise<number> => {
      assertSameStart();
      disarm();
      standAt(now());
      const ended: (() => void)[] = [];
      moving = { atEnd: (act) => void ended.push(act) };
      const target = end(stands);
      let fired = 0;
      try {
        await settled();
        assertSameStart();
        for (
          let due = timers.first();
          due !== undefined && !isOver(due.dueMs, target);
          due = timers.first()
        ) {
          stands = Math.max(stands, due.dueMs);
          fire(due);
          fired += 1;
          // Timers of one time fire together.
          if ((timers.first()?.dueMs ?? Number.POSITIVE_INFINITY) > stands) await settled();
          assertSameStart();
        }
        if (toEnd) stands = Math.max(stands, target);
      } finally {
        moving = undefined;
        // It may have been frozen or resumed while it was being moved.
        if (!wantsFrozen) goOn();
        for (const act of ended) act();
      }
      return fired;
    };
    const done = moves.then(run);
    moves = done.catch(() => undefined);
    return done;
  }

  return {
    now,
    after(milliseconds, callback) {
      const timer: Timer = {
        dueMs: now() + Math.max(milliseconds, 0),
        sequence: sequence++,
        place: -1,
        callback,
      };
      timers.add(timer);
      if (timers.first() === timer && moving === undefined) arm();
      return () => {
        const wasFirst = timers.first() === timer;
        timers.remove(timer);
        if (wasFirst && moving === undefined) arm();
      };
    },
    moves: { real, current: () => moving },
    isFrozen: () => wantsFrozen,
    freeze() {
      wantsFrozen = true;
      if (moving !== undefined) return;
      disarm();
      standAt(now());
    },
    resume() {
      wantsFrozen = false;
      if (moving === undefined) goOn();
    },
    advance: (milliseconds) =>
      move(
        (start) => start + milliseconds,
        (due, end) => due > end,
        true,
      ),
    runUntilIdle: (limitMs) =>
      move(
        (start) => start + limitMs,
        (due, end) => due > end,
        false,
      ),
    nextDueMs: () => timers.first()?.dueMs,
    async startAt(time, act) {
      const before = { offset, stands };
      const ahead = Math.max(time - now(), 0);
      if (offset === undefined) stands += ahead;
      else offset += ahead;
      try {
        act();
        starts += 1;
      } catch (error) {
        ({ offset, stands } = before);
        throw error;
      } finally {
        if (moving === undefined) arm();
      }
      await moves;
    },
    close() {
      disarm();
      timers.clear();
    },
  };
}
