/** A clock for tests that is frozen until it is moved, and then runs what became due in order. */
import type { Clock } from './clock.ts';

export type ManualClock = Clock & Readonly<{ advance(milliseconds: number): void; timers(): number }>;

export function manualClock(start = Date.UTC(2030, 0, 1)): ManualClock {
  let now = start;
  const timers = new Set<{ at: number; callback: () => void }>();
  return {
    now: () => now,
    after(milliseconds, callback) {
      const timer = { at: now + Math.max(milliseconds, 0), callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance(milliseconds) {
      const end = now + milliseconds;
      for (;;) {
        const [next] = [...timers].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at);
        if (next === undefined) break;
        timers.delete(next);
        now = Math.max(now, next.at);
        next.callback();
      }
      now = end;
    },
    timers: () => timers.size,
  };
}
