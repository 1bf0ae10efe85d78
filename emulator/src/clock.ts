/**
 * The one clock under all three servers. Nothing else in this package reads the time or sets a timer,
 * so that a clock that can be moved may take its place.
 *
 * A timer of any length is exact: Node's own timers overflow after 2^31 - 1 ms (24.8 days) and fire at once,
 * so longer ones are made of several.
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

export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    after(milliseconds, callback) {
      let timer: NodeJS.Timeout;
      const arm = (left: number): void => {
        const step = Math.min(Math.max(left, 0), LONGEST_TIMER_MS);
        timer = setTimeout(() => (left > step ? arm(left - step) : callback()), step);
      };
      arm(milliseconds);
      return () => clearTimeout(timer);
    },
  };
}
