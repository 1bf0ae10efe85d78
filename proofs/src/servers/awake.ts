/**
 * A clock for a local server whose leases must not end because the test's process got no processor: its time passes only
 * while this process works. Client and server are both in this process, so what one of them misses the other does too.
 */
import type { Clock } from 'pubsub-guarantees-emulator';

const TICK_MS = 10;
/** What passes at most from one tick to the next. */
const LONGEST_TICK_MS = 50;

/** `close` stops the ticks; the clock stands then. */
export function awake(clock: Clock): Clock & Readonly<{ close(): void }> {
  const start = clock.now();
  let [last, passed] = [start, 0];
  const tick = (): void => {
    const at = clock.now();
    passed += Math.min(Math.max(at - last, 0), LONGEST_TICK_MS);
    last = at;
  };
  const timer = setInterval(tick, TICK_MS);
  return {
    now() {
      tick();
      return start + passed;
    },
    after: (milliseconds, callback) => clock.after(milliseconds, callback),
    close: () => clearInterval(timer),
  };
}
