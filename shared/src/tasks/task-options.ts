/**
 * What the stages that make tasks have in common in their options, checked when they are constructed.
 */
import { ConfigError } from '../errors.ts';
import { shownValue } from '../shown-value.ts';

/**
 * The published limits of a task disagree: 100 KB in the API reference, 1 MB on the quota page
 * (https://cloud.google.com/tasks/docs/quotas). This is the smaller one.
 */
export const MAX_TASK_BYTES = 102_400;
/** What Cloud Tasks was seen to refuse beyond: more than this is never accepted. */
const LARGEST_CAP = 1_048_576;

const TOPIC = /^projects\/[^/\s]+\/topics\/[^/\s]+$/;

/** Throws ConfigError for a topic that is not a full name. */
export function checkTopic(topic: string): void {
  if (typeof topic === 'string' && TOPIC.test(topic)) return;
  throw new ConfigError(
    'INVALID_TOPIC',
    `topic is ${shownValue(topic)}; accepted: projects/PROJECT/topics/TOPIC`,
  );
}

/** Throws ConfigError for a cap beyond what any queue takes. */
export function checkTaskBytes(maxTaskBytes: number): void {
  if (Number.isInteger(maxTaskBytes) && maxTaskBytes >= 1 && maxTaskBytes <= LARGEST_CAP) return;
  throw new ConfigError(
    'INVALID_MAX_TASK_BYTES',
    `maxTaskBytes is ${shownValue(maxTaskBytes)}; accepted: 1 to ${LARGEST_CAP}`,
  );
}
