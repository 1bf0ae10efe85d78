/** For tests: a clock that stands still until it is moved, and runs the timers that fall due on the way, in order. */
import type { Clock } from '../clock.ts';

export type ManualClock = Clock &
  Readonly<{
    advance(milliseconds: number): void;
    /** Timers that are set. */
    timers(): number;
  }>;

export function manualClock(startMs: number): ManualClock {
  let now = startMs;
  const timers = new Set<{ atMs: number; callback: () => void }>();
  const earliest = (untilMs: number): { atMs: number; callback: () => void } | undefined =>
    [...timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
  return {
    now: () => now,
    after(milliseconds, callback) {
      const timer = { atMs: now + Math.max(milliseconds, 0), callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance(milliseconds) {
      const end = now + milliseconds;
      for (let timer = earliest(end); timer !== undefined; timer = earliest(end)) {
        timers.delete(timer);
        now = Math.max(now, timer.atMs);
        timer.callback();
      }
      now = end;
    },
    timers: () => timers.size,
  };
}
