/**
 * The stack's one clock, for tests: in real time until it is frozen or moved.
 */
import type { MovableClock } from '../movable-clock.ts';

export type StackClock = Readonly<{
  /** Milliseconds since the epoch. */
  now(): number;
  isFrozen(): boolean;
  freeze(): void;
  resume(): void;
  /**
   * Moves forward by milliseconds, firing in order what falls due on the way (ack deadlines, backoffs, task
   * schedules) and awaiting what follows from each before the next. Answers how many timers fired. Rejects when a
   * request is still under way after a minute of real time.
   */
  advance(milliseconds: number): Promise<number>;
  /** Moves from timer to timer until none is left, by at most `limitMs`. Answers how many fired. */
  runUntilIdle(limitMs: number): Promise<number>;
}>;

/** A move ends with a sweep: heads that were to be tried again on the way are tried before anybody looks. */
export function stackClock(clock: MovableClock, sweep: () => Promise<void>): StackClock {
  const swept = async (move: Promise<number>): Promise<number> => {
    const fired = await move;
    await sweep();
    return fired;
  };
  return {
    now: clock.now,
    isFrozen: clock.isFrozen,
    freeze: clock.freeze,
    resume: clock.resume,
    advance: (milliseconds) => swept(clock.advance(milliseconds)),
    runUntilIdle: (limitMs) => swept(clock.runUntilIdle(limitMs)),
  };
}
