/**
 * The rate limit of a queue: a token bucket that starts full. Time comes from the caller, so that it can be moved.
 */

export type TokenBucket = Readonly<{
  /** Takes a token and returns 0, or takes none and returns the milliseconds until there is one. */
  take(now: number): number;
  /** From now on another rate and size: what was filled so far stays, up to the new size. */
  resize(perSecond: number, size: number, now: number): void;
}>;

/** Rounding of many small refills may leave this much below a whole token. */
const ROUNDING = 1e-9;

export function createTokenBucket(rate: number, burst: number, startMs: number): TokenBucket {
  let perSecond = rate;
  let size = burst;
  let tokens = size;
  let filledAt = startMs;
  const fill = (now: number): void => {
    // A clock that was set back must not empty the bucket.
    const passed = Math.max(now - filledAt, 0);
    tokens = Math.min(size, tokens + (passed * perSecond) / 1000);
    filledAt = now;
  };
  return {
    resize(newRate, newBurst, now) {
      fill(now);
      perSecond = newRate;
      size = newBurst;
      tokens = Math.min(tokens, size);
    },
    take(now) {
      fill(now);
      if (tokens >= 1 - ROUNDING) {
        tokens = Math.max(tokens - 1, 0);
        return 0;
      }
      return Math.max(Math.ceil(((1 - tokens) * 1000) / perSecond - ROUNDING), 1);
    },
  };
}
