/**
 * Pauses that grow with each failure: one formula for everything that is tried again.
 */
import { type Clock, sleep } from '../clock.ts';

export type Growth = Readonly<{ minMs: number; maxMs: number }>;

/** Twice as often, and the pause of any length of time is past every maximum. */
const MOST_DOUBLINGS = 60;

/** The pause after the `failures`-th failure in a row, from 1: `minMs`, then twice the one before, up to `maxMs`. */
export const pauseAfter = (failures: number, { minMs, maxMs }: Growth): number =>
  Math.min(maxMs, minMs * 2 ** Math.min(Math.max(failures - 1, 0), MOST_DOUBLINGS));

export type Retrying = Readonly<{
  /** Time of the monotonic clock after which no other try begins. */
  until: number;
  signal: AbortSignal | undefined;
  /** Whether another try can help. */
  isMomentary: (error: unknown) => boolean;
  /** 0 to 1, like Math.random. */
  random: () => number;
}>;

const PAUSES: Growth = { minMs: 200, maxMs: 5_000 };

/**
 * Calls again what failed for the moment alone, with growing pauses, for as long as the caller has time: a queue that
 * is over its rate for a second must not cost a message one of its deliveries. Calls at least once, and rejects with
 * the error of the last try.
 */
export async function retryMomentary<Value>(
  clock: Clock,
  { until, signal, isMomentary, random }: Retrying,
  call: () => Promise<Value>,
): Promise<Value> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await call();
    } catch (error) {
      // Half of it by chance: callers that failed together do not come back together.
      const pauseMs = pauseAfter(failures, PAUSES) * (0.5 + random() / 2);
      if (!isMomentary(error) || clock.monotonic() + pauseMs > until) throw error;
      await sleep(clock, pauseMs, signal);
      if (signal?.aborted === true) throw error;
    }
  }
}
