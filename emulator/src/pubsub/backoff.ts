/** How long a message waits after a nack or an expired ack deadline. */
import { durationMs, type Subscription } from './wire.ts';

/** Backoff of a push subscription without a retry policy: https://cloud.google.com/pubsub/docs/push#push_backoff */
const PUSH_BACKOFF_MS = { min: 100, max: 60_000 };

/** Milliseconds, doubling from the minimum with each of the `failures` (1 and more) up to the maximum. */
export function backoffMs({ retryPolicy, pushConfig }: Subscription, failures: number): number {
  const { minimumBackoff, maximumBackoff } = retryPolicy ?? {};
  const min = minimumBackoff ? durationMs(minimumBackoff) : pushConfig === null ? 0 : PUSH_BACKOFF_MS.min;
  const max = maximumBackoff ? durationMs(maximumBackoff) : PUSH_BACKOFF_MS.max;
  return Math.min(min * 2 ** Math.min(failures - 1, 40), max);
}
