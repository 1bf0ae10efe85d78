/**
 * Calls again what failed for the moment alone, with growing pauses, for as long as the caller has time: a queue that
 * is over its rate for a second must not cost a message one of its deliveries. What comes after the last try is the
 * last error, and the message is delivered again.
 */
import { type Clock, sleep } from '../clock.ts';

export type Trying = Readonly<{
  /** Monotonic instant after which no other try begins. */
  until: number;
  signal: AbortSignal | undefined;
  /** Whether another try can help. */
  isMomentary: (error: unknown) => boolean;
  /** 0 to 1, like Math.random. */
  random: () => number;
}>;

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;

/** Calls at least once. Rejects with the error of the last try. */
export async function backingOff<Value>(
  clock: Clock,
  { until, signal, isMomentary, random }: Trying,
  call: () => Promise<Value>,
): Promise<Value> {
  for (let longest = FIRST_PAUSE_MS; ; longest = Math.min(longest * 2, LONGEST_PAUSE_MS)) {
    try {
      return await call();
    } catch (error) {
      // Half of it by chance: callers that failed together do not come back together.
      const pauseMs = longest * (0.5 + random() / 2);
      if (!isMomentary(error) || clock.monotonic() + pauseMs > until) throw error;
      await sleep(clock, pauseMs, signal);
      if (signal?.aborted === true) throw error;
    }
  }
}
