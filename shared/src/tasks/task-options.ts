/**
 * What the stages that make tasks have in common in their options.
 */
import { refused } from '../errors.ts';
import { whole } from '../options.ts';
import type { TaskQueue } from './task-queue.ts';

/**
 * The published limits of a task disagree: 100 KB in the API reference, 1 MB on the quota page
 * (https://cloud.google.com/tasks/docs/quotas). This is the smaller one.
 */
export const MAX_TASK_BYTES = 102_400;
/** What Cloud Tasks was seen to refuse beyond: more than this is never accepted. */
const LARGEST_CAP = 1_048_576;

export const taskBytes = whole(1, LARGEST_CAP);

/** Throws ConfigError where not even an empty task fits: no message could ever be delayed. */
export function checkRoom(maxTaskBytes: number, { overheadBytes }: Pick<TaskQueue, 'overheadBytes'>): void {
  if (maxTaskBytes > overheadBytes) return;
  throw refused(
    'maxTaskBytes',
    maxTaskBytes,
    `more than the queue adds to each task (${overheadBytes} bytes)`,
  );
}
