/**
 * The stack's one clock, for tests: in real time until it is frozen or moved.
 */
import type { MovableClock } from '../movable-clock.ts';
import { LATEST_MS } from './saved-stack.ts';
import { UnsupportedError } from './services.ts';

export type StackClock = Readonly<{
  /** Milliseconds since the epoch. */
  now(): number;
  isFrozen(): boolean;
  freeze(): void;
  resume(): void;
  /**
   * Moves forward by milliseconds, firing in order what falls due on the way (ack deadlines, backoffs, task
   * schedules) and awaiting what follows from each before the next. Answers how many timers fired. Rejects when requests
   * are in flight and none is answered for a minute of real time, and when another state is loaded meanwhile.
   */
  advance(milliseconds: number): Promise<number>;
  /** Moves from timer to timer until none is left, by at most `limitMs`. Answers how many fired. */
  runUntilIdle(limitMs: number): Promise<number>;
}>;

/** `afterMove` is awaited at the end of each move. */
export function stackClock(clock: MovableClock, afterMove: () => Promise<void>): StackClock {
  const moved = async (move: Promise<number>): Promise<number> => {
    const fired = await move;
    await afterMove();
    return fired;
  };
  return {
    now: clock.now,
    isFrozen: clock.isFrozen,
    freeze: clock.freeze,
    resume: clock.resume,
    advance: async (milliseconds) => moved(clock.advance(withinYears(clock, milliseconds))),
    runUntilIdle: async (limitMs) => moved(clock.runUntilIdle(withinYears(clock, limitMs))),
  };
}

function withinYears(clock: MovableClock, milliseconds: number): number {
  if (clock.now() + milliseconds <= LATEST_MS) return milliseconds;
  throw new RangeError('the clock would pass the beginning of the year 9999, and it never goes back');
}

/** The clock of a stack one of whose servers has a clock of its own: real time, and nothing else. */
export function realTimeOnly(clock: MovableClock, reason: string): StackClock {
  const refuse = (): never => {
    throw new UnsupportedError(`the clock can neither be frozen nor moved: ${reason}`);
  };
  return {
    now: clock.now,
    isFrozen: () => false,
    freeze: refuse,
    resume: () => undefined,
    advance: async () => refuse(),
    runUntilIdle: async () => refuse(),
  };
}
