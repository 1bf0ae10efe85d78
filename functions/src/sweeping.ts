/**
 * A sweep as a request: bounded by the same limit as a delivery, and ended with it.
 */
import { type Clock, type Log, type SweepContext, type SweepResult, toMilliseconds } from 'pubsub-guarantees';
import type { Config } from './config.ts';

export async function runSweep(
  sweep: (context: SweepContext) => Promise<SweepResult>,
  config: Pick<Config, 'consumer' | 'timeout'>,
  clock: Clock,
  log: Log,
): Promise<SweepResult> {
  const limitMs = toMilliseconds(config.timeout);
  const over = new AbortController();
  const cancel = clock.after(limitMs, () => over.abort());
  try {
    return await sweep({
      consumer: config.consumer,
      now: () => clock.now(),
      deadline: clock.monotonic() + limitMs,
      signal: over.signal,
      log,
    });
  } finally {
    cancel();
  }
}
