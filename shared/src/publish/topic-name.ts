/**
 * Names that are stored are full: a short one would be resolved by the process that reads it, in that process's project.
 */
import { PermanentError } from '../errors.ts';

const FULL = /^projects\/[^/\s]+\/topics\/[^/\s]+$/;

export const isFullTopicName = (topic: string): boolean => FULL.test(topic);

/** A short name is one of `project`. Throws PermanentError `INVALID_MESSAGE` for what is neither. */
export function fullTopicName(topic: string, project: string): string {
  const full = topic.includes('/') ? topic : `projects/${project}/topics/${topic}`;
  if (isFullTopicName(full)) return full;
  throw new PermanentError(
    'INVALID_MESSAGE',
    `the topic is ${JSON.stringify(topic.slice(0, 300))}; accepted: an ID, or projects/PROJECT/topics/ID`,
  );
}
