/**
 * A clock that advances only when a test moves it. Timers fire in order of their time, then of their making, and
 * everything that follows from one is done before the next fires.
 */
import type { Clock } from '../clock.ts';

export type VirtualClock = Clock &
  Readonly<{
    /** Moves time forward, firing what falls due on the way. */
    advance(milliseconds: number): Promise<void>;
    /** Moves from timer to timer until none is left, or `limitMs` of virtual time have passed. */
    runToIdle(limitMs?: number): Promise<void>;
    /** Moves until `done` settles, and answers with it. Throws if it needs more than `limitMs` of virtual time. */
    until<Value>(done: Promise<Value>, limitMs?: number): Promise<Value>;
    /** The machine sleeps: wall time goes on, while the monotonic clock and its timers stop. */
    suspend(milliseconds: number): void;
    /** Timers that have not fired. */
    pending(): number;
  }>;

type Timer = { at: number; order: number; callback: () => void };

/** An hour: more than any test waits for by accident. */
const LIMIT_MS = 3_600_000;

/**
 * `startMs` is its wall time at the beginning, in milliseconds since the epoch (default: the beginning of 2030).
 *
 * @example
 * const clock = virtualClock();
 * await clock.advance(60_000);
 */
export function virtualClock(startMs: number = Date.UTC(2030, 0, 1)): VirtualClock {
  let time = 0;
  let suspended = 0;
  let order = 0;
  const timers = new Set<Timer>();

  const next = (): Timer | undefined => {
    let first: Timer | undefined;
    for (const timer of timers) {
      if (first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order))
        first = timer;
    }
    return first;
  };
  const fire = async (timer: Timer): Promise<void> => {
    timers.delete(timer);
    time = Math.max(time, timer.at);
    timer.callback();
    await settled();
  };
  const advance = async (milliseconds: number): Promise<void> => {
    const end = time + milliseconds;
    await settled();
    for (let timer = next(); timer !== undefined && timer.at <= end; timer = next()) await fire(timer);
    time = Math.max(time, end);
  };

  return {
    now: () => startMs + time + suspended,
    monotonic: () => time,
    after(milliseconds, callback) {
      const timer = { at: time + Math.max(milliseconds, 0), order: order++, callback };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    advance,
    async runToIdle(limitMs = LIMIT_MS) {
      const end = time + limitMs;
      await settled();
      for (let timer = next(); timer !== undefined && timer.at <= end; timer = next()) await fire(timer);
    },
    async until(done, limitMs = LIMIT_MS) {
      const end = time + limitMs;
      let finished = false;
      const finish = (): void => {
        finished = true;
      };
      done.then(finish, finish);
      await settled();
      while (!finished) {
        const timer = next();
        if (timer === undefined || timer.at > end)
          throw new Error('not done, and no timer is left that could change it');
        await fire(timer);
      }
      return done;
    },
    suspend: (milliseconds) => void (suspended += milliseconds),
    pending: () => timers.size,
  };
}

/** Lets every promise callback that can run, run: a turn of the event loop comes after all of them. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
