/**
 * The one clock under all three servers. Nothing else in this package reads the time or sets a timer,
 * so that a clock that can be moved may take its place.
 *
 * A timer of any length is exact: Node's own timers overflow after 2^31 - 1 ms (24.8 days) and fire at once,
 * so longer ones are made of several.
 *
 * A process that was kept from work (a busy machine, a suspended laptop) finds its timers due before it reads what its
 * clients have sent in time: acknowledgements, extensions, answers. So a timer that fires late waits once more.
 */

export type Cancel = () => void;

export type Clock = Readonly<{
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `callback` once, `milliseconds` from now (at once when negative). The result cancels it. */
  after(milliseconds: number, callback: () => void): Cancel;
  /** Present on a clock that can be moved. */
  moves?: Moves;
}>;

export type Moves = Readonly<{
  /** Real time, which passes whatever becomes of the clock. */
  real: Clock;
  /** The move that is being made; undefined while the clock runs in real time or is frozen. */
  current(): Move | undefined;
}>;

/** One move of a clock, which differs from every other. */
export type Move = Readonly<{
  /** Calls `act` once when the move has ended, also where it ended with an error. */
  atEnd(act: () => void): void;
}>;

/** Node's largest timer delay: 2^31 - 1 ms (https://nodejs.org/api/timers.html#settimeoutcallback-delay-args). */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** So late a timer fires only where its process got no time to work. */
const LATE_MS = 200;
/** What it waits more at most, and how often: a process that goes on being late must come to an end all the same. */
const LONGEST_MORE_MS = 1_000;
const MOST_TIMES_MORE = 3;

/** Timers of Node, or of a test that plays a process that is kept from work. */
export type RealTimers = Readonly<{
  /** Milliseconds, monotonic. */
  monotonic(): number;
  /** Calls `callback` in so many milliseconds, at most `LONGEST_TIMER_MS`, or later. The result cancels it. */
  set(milliseconds: number, callback: () => void): Cancel;
}>;

const NODES: RealTimers = {
  monotonic: () => performance.now(),
  set(milliseconds, callback) {
    const timer = setTimeout(callback, milliseconds);
    return () => clearTimeout(timer);
  },
};

export function systemClock(timers: RealTimers = NODES): Clock {
  return {
    now: () => Date.now(),
    after(milliseconds, callback) {
      let cancel: Cancel;
      let timesMore = 0;
      const arm = (left: number): void => {
        const step = Math.min(Math.max(left, 0), LONGEST_TIMER_MS);
        const dueMs = timers.monotonic() + step;
        cancel = timers.set(step, () => {
          if (left > step) return arm(left - step);
          const lateMs = timers.monotonic() - dueMs;
          // What is to happen at once is no deadline.
          if (lateMs < LATE_MS || milliseconds <= 0 || timesMore === MOST_TIMES_MORE) return callback();
          timesMore += 1;
          arm(Math.min(lateMs, LONGEST_MORE_MS));
        });
      };
      arm(milliseconds);
      return () => cancel();
    },
  };
}
