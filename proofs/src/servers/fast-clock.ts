/**
 * A clock for a local server whose deadlines a test waits for in real time: its time passes so much faster.
 */
import type { Clock } from 'pubsub-guarantees-emulator';

/** Its wall clock runs ahead of the machine's: for servers whose times no test compares with others. */
export function fastClock(clock: Clock, times: number): Clock {
  const start = clock.now();
  return {
    now: () => start + (clock.now() - start) * times,
    after: (milliseconds, callback) => clock.after(milliseconds / times, callback),
  };
}
