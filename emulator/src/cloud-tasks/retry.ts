/**
 * When a failed task is tried again, and when its attempts end. Pure.
 * Not modelled: the higher backoff that the service picks by itself under 429 and 503.
 */

export type RetryConfig = Readonly<{
  /** -1: without limit. */
  maxAttempts: number;
  /** Milliseconds since the first attempt; 0: no limit. */
  maxRetryDurationMs: number;
  minBackoffMs: number;
  maxBackoffMs: number;
  maxDoublings: number;
}>;

/**
 * Milliseconds to wait after `failures` failed attempts (1 or more): starts at the minimum, doubles `maxDoublings`
 * times, then grows linearly by the last doubled interval, up to the maximum. With 10 s, 300 s and 3 doublings:
 * 10, 20, 40, 80, 160, 240, 300, 300 s … (the example of the API reference, RetryConfig.max_doublings).
 */
export function backoffMs(retry: RetryConfig, failures: number): number {
  const doublings = Math.min(failures - 1, retry.maxDoublings);
  const steps = Math.max(failures - retry.maxDoublings, 1);
  return Math.min(retry.minBackoffMs * 2 ** doublings * steps, retry.maxBackoffMs);
}

/**
 * Whether no further attempt is made. With both limits set, both must be reached (API reference,
 * RetryConfig.max_retry_duration). With unlimited attempts a duration decides alone, as the reference of queue.yaml,
 * to which it refers, says of an age limit without a retry limit.
 */
export function givesUp(retry: RetryConfig, attempts: number, sinceFirstAttemptMs: number): boolean {
  const unlimited = retry.maxAttempts === -1;
  const timed = retry.maxRetryDurationMs > 0;
  if (unlimited && !timed) return false;
  const attemptsUsed = unlimited || attempts >= retry.maxAttempts;
  const timeUsed = !timed || sinceFirstAttemptMs >= retry.maxRetryDurationMs;
  return attemptsUsed && timeUsed;
}
