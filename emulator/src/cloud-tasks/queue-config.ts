/**
 * A queue's settings: defaults and limits of the service applied once, when the queue is created or updated.
 * A setting that this server does not honour is refused, never stored and ignored.
 */
import { unimplemented } from '../grpc-server.ts';
import { checkedDuration, durationOfMs, timestampOfMs, type QueueMessage, type Routing } from './messages.ts';
import type { RetryConfig } from './retry.ts';
import { tooHigh, tooLow } from './words.ts';

type RateLimits = Readonly<{
  maxDispatchesPerSecond: number;
  maxBurstSize: number;
  maxConcurrentDispatches: number;
}>;

export type QueueConfig = Readonly<{
  name: string;
  /** Takes the place of every App Engine task's own routing. */
  routingOverride: Routing | undefined;
  rateLimits: RateLimits;
  retry: RetryConfig;
}>;

/** What `gcloud tasks queues describe` shows of a queue that was created without settings. */
const DEFAULT = {
  maxDispatchesPerSecond: 500,
  maxConcurrentDispatches: 1000,
  maxAttempts: 100,
  minBackoffMs: 100,
  maxBackoffMs: 3_600_000,
  maxDoublings: 16,
} as const;

/** Upper limits of the API reference (RateLimits). */
const MAX_DISPATCHES_PER_SECOND = 500;
const MAX_CONCURRENT_DISPATCHES = 5000;

/** In all numbers 0 is "unspecified" (proto3 cannot distinguish them), and so the default. Throws INVALID_ARGUMENT. */
export function parseQueueConfig(message: QueueMessage): QueueConfig {
  if ((message.stackdriverLoggingConfig?.samplingRatio ?? 0) !== 0) {
    throw unimplemented('stackdriver_logging_config: this server writes no logs to Cloud Logging.');
  }
  return {
    name: message.name,
    routingOverride: message.appEngineRoutingOverride ?? undefined,
    rateLimits: parseRateLimits(message.rateLimits),
    retry: parseRetry(message.retryConfig),
  };
}

export function defaultQueueConfig(name: string): QueueConfig {
  return {
    name,
    routingOverride: undefined,
    rateLimits: parseRateLimits(null),
    retry: parseRetry(null),
  };
}

function parseRateLimits(limits: QueueMessage['rateLimits']): RateLimits {
  const perSecond = limits?.maxDispatchesPerSecond || DEFAULT.maxDispatchesPerSecond;
  const concurrent = limits?.maxConcurrentDispatches || DEFAULT.maxConcurrentDispatches;
  if (perSecond < 0) throw tooLow('RateLimits.maxDispatchesPerSecond');
  if (perSecond > MAX_DISPATCHES_PER_SECOND) throw tooHigh('RateLimits.maxDispatchesPerSecond');
  if (concurrent < 0) throw tooLow('RateLimits.maxConcurrentDispatches');
  if (concurrent > MAX_CONCURRENT_DISPATCHES) throw tooHigh('RateLimits.maxConcurrentDispatches');
  return {
    maxDispatchesPerSecond: perSecond,
    // Picked by the service. Seen on real queues: 100 at 500 per second, 10 at 1 per second.
    maxBurstSize: Math.max(10, Math.ceil(perSecond / 5)),
    maxConcurrentDispatches: concurrent,
  };
}

function parseRetry(config: QueueMessage['retryConfig']): RetryConfig {
  const milliseconds = (
    field: 'minBackoff' | 'maxBackoff' | 'maxRetryDuration',
    unspecified: number,
  ): number => {
    const given = config?.[field];
    if (given == null) return unspecified;
    if (Number(given.seconds) < 0 || given.nanos < 0) throw tooLow(`RetryConfig.${field}`);
    return wholeSeconds(checkedDuration(given, `RetryConfig.${field}`)) || unspecified;
  };
  const retry: RetryConfig = {
    maxAttempts: config?.maxAttempts || DEFAULT.maxAttempts,
    maxRetryDurationMs: milliseconds('maxRetryDuration', 0),
    minBackoffMs: milliseconds('minBackoff', DEFAULT.minBackoffMs),
    maxBackoffMs: milliseconds('maxBackoff', DEFAULT.maxBackoffMs),
    maxDoublings: config?.maxDoublings || DEFAULT.maxDoublings,
  };
  if (retry.maxAttempts < -1) throw tooLow('RetryConfig.maxAttempts');
  if (retry.maxDoublings < 0) throw tooLow('RetryConfig.maxDoublings');
  if (retry.minBackoffMs > retry.maxBackoffMs) throw tooHigh('RetryConfig.minBackoff');
  return retry;
}

/**
 * "Will be truncated to the nearest second" (API reference, RetryConfig). Below a second nothing is cut: the service's own
 * default of the smallest backoff is 0.1 s.
 */
const wholeSeconds = (ms: number): number => (ms < 1000 ? ms : Math.floor(ms / 1000) * 1000);

/** The settings as a request would give them. */
export function configToMessage({ name, routingOverride, rateLimits, retry }: QueueConfig): QueueMessage {
  return {
    name,
    appEngineRoutingOverride: routingOverride ?? null,
    rateLimits,
    retryConfig: {
      maxAttempts: retry.maxAttempts,
      maxRetryDuration: retry.maxRetryDurationMs === 0 ? null : durationOfMs(retry.maxRetryDurationMs),
      minBackoff: durationOfMs(retry.minBackoffMs),
      maxBackoff: durationOfMs(retry.maxBackoffMs),
      maxDoublings: retry.maxDoublings,
    },
    stackdriverLoggingConfig: null,
  };
}

/** The queue as the service returns it. */
export function queueToMessage(config: QueueConfig, paused: boolean, purgedMs: number | undefined): object {
  return {
    ...configToMessage(config),
    state: paused ? 'PAUSED' : 'RUNNING',
    purgeTime: purgedMs === undefined ? null : timestampOfMs(purgedMs),
  };
}
