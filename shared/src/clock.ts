/**
 * The time port. Everything that reads a time or waits takes one of these, so that tests run on virtual time.
 *
 * Two readings, because they fail differently: the wall clock is comparable between machines and may jump;
 * the monotonic one never goes back and measures leases, deadlines and budgets inside this process.
 */
import { refusedAs } from './errors.ts';

/** Stops a timer that has not fired. Calling it again, or after it fired, does nothing. */
export type Cancel = () => void;

export type Clock = Readonly<{
  /** Wall clock, milliseconds since the epoch. May jump in either direction. */
  now(): number;
  /** Milliseconds from an arbitrary start. Never goes back. */
  monotonic(): number;
  /** Calls `callback` once after `milliseconds` (at once when zero or less, never inside this call). */
  after(milliseconds: number, callback: () => void): Cancel;
}>;

/** One moment, as both clocks of a process show it. */
export type Moment = Readonly<{ monotonicMs: number; wallMs: number }>;

export const momentOf = (clock: Clock): Moment => ({
  monotonicMs: clock.monotonic(),
  wallMs: clock.now(),
});

/**
 * Milliseconds since then by the clock that has gone further: what a lease is judged by. The monotonic clock stops
 * while the machine is suspended (https://man7.org/linux/man-pages/man2/clock_gettime.2.html), and the lease does not.
 * A wall clock that is set back shortens nothing; one that is set forward ends a lease too early, which costs a repeat.
 */
export const elapsedMs = (clock: Clock, since: Moment): number =>
  Math.max(clock.monotonic() - since.monotonicMs, clock.now() - since.wallMs);

/** Node's largest timer delay: 2^31 - 1 ms (https://nodejs.org/api/timers.html#settimeoutcallback-delay-args). */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** So late a timer fires only where its process got no time: the processor was busy, throttled, or the machine suspended. */
const LATE_MS = 100;

/**
 * The machine's clocks and timers: the default of every option `clock`. A timer that fires late does so after what has
 * arrived meanwhile is read: an answer that came in time is no time-out, although the process had no time to look at it.
 *
 * @example
 * const startedAt = systemClock().monotonic();
 */
export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    after(milliseconds, callback) {
      let timer: ReturnType<typeof setTimeout>;
      let immediate: ReturnType<typeof setImmediate> | undefined;
      const arm = (left: number): void => {
        const step = Math.min(Math.max(left, 0), LONGEST_TIMER_MS);
        const dueMs = performance.now() + step;
        timer = setTimeout(() => {
          if (left > step) arm(left - step);
          else if (performance.now() - dueMs < LATE_MS) callback();
          else immediate = setImmediate(callback);
        }, step);
      };
      arm(milliseconds);
      return () => {
        clearTimeout(timer);
        clearImmediate(immediate);
      };
    },
  };
}

/**
 * Resolves after `milliseconds`, or as soon as `signal` is aborted. Never rejects: the caller looks at the signal.
 *
 * @example
 * await sleep(systemClock(), 1_000, new AbortController().signal);
 */
export function sleep(clock: Clock, milliseconds: number, signal?: AbortSignal): Promise<void> {
  if (typeof clock?.after !== 'function') {
    const accepted = 'a clock, for example systemClock()';
    return Promise.reject(refusedAs('clock', 'without a method after', accepted));
  }
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const wake = (): void => {
      cancel();
      signal?.removeEventListener('abort', wake);
      resolve();
    };
    const cancel = clock.after(milliseconds, wake);
    signal?.addEventListener('abort', wake, { once: true });
  });
}
