/**
 * What UpdateQueue makes of a queue's settings: the fields that the mask names, taken from the request, over those that
 * the queue has. A field that cannot be updated here is refused, never passed over.
 */
import { invalidArgument, unimplemented } from '../grpc-server.ts';
import type { QueueMessage } from './messages.ts';
import { configToMessage, parseQueueConfig, type QueueConfig } from './queue-config.ts';

type Part = 'rateLimits' | 'retryConfig' | 'appEngineRoutingOverride';

/** The paths of a mask by the part that they change, and the one field of it (none: the whole part). */
const PATHS: Readonly<Record<string, readonly [part: Part, field?: string]>> = {
  rate_limits: ['rateLimits'],
  'rate_limits.max_dispatches_per_second': ['rateLimits', 'maxDispatchesPerSecond'],
  'rate_limits.max_concurrent_dispatches': ['rateLimits', 'maxConcurrentDispatches'],
  retry_config: ['retryConfig'],
  'retry_config.max_attempts': ['retryConfig', 'maxAttempts'],
  'retry_config.max_retry_duration': ['retryConfig', 'maxRetryDuration'],
  'retry_config.min_backoff': ['retryConfig', 'minBackoff'],
  'retry_config.max_backoff': ['retryConfig', 'maxBackoff'],
  'retry_config.max_doublings': ['retryConfig', 'maxDoublings'],
  app_engine_routing_override: ['appEngineRoutingOverride'],
  'app_engine_routing_override.service': ['appEngineRoutingOverride', 'service'],
  'app_engine_routing_override.version': ['appEngineRoutingOverride', 'version'],
  'app_engine_routing_override.instance': ['appEngineRoutingOverride', 'instance'],
};

/** "Any value specified for an output only field will be ignored" (API reference, UpdateQueueRequest.queue). */
const OUTPUT_ONLY = new Set([
  'name',
  'state',
  'purge_time',
  'rate_limits.max_burst_size',
  'app_engine_routing_override.host',
]);

/** Fields of a queue that the service updates and this server does not. */
const NOT_HERE = /^stackdriver_logging_config(?:\.|$)/;

/**
 * "If empty, then all fields will be updated" (API reference, UpdateQueueRequest.update_mask). As at creation, a field
 * that is named but unset gets its default. Throws INVALID_ARGUMENT and UNIMPLEMENTED.
 */
export function updatedConfig(
  current: QueueConfig,
  message: QueueMessage,
  paths: readonly string[],
): QueueConfig {
  if (paths.length === 0) return parseQueueConfig(message);
  let merged = configToMessage(current);
  for (const path of paths) merged = { ...merged, ...changed(merged, message, path) };
  return parseQueueConfig(merged);
}

function changed(merged: QueueMessage, message: QueueMessage, path: string): Partial<QueueMessage> {
  if (NOT_HERE.test(path)) throw refusal(path);
  if (OUTPUT_ONLY.has(path)) return {};
  const [part, field] = PATHS[path] ?? [];
  if (part === undefined) {
    throw invalidArgument(
      `UpdateQueueRequest.updateMask: the path ${JSON.stringify(path)} cannot be updated. Accepted are ${Object.keys(PATHS).join(', ')}.`,
    );
  }
  if (field === undefined) return { [part]: message[part] };
  const given: Readonly<Record<string, unknown>> = message[part] ?? {};
  return { [part]: { ...merged[part], [field]: given[field] } };
}

const refusal = (path: string): Error =>
  unimplemented(`UpdateQueueRequest.updateMask: this server does not update ${path} of a queue.`);
