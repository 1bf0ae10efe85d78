/**
 * The words with which the service refuses settings and names, by field. "Recorded" are public recordings of the
 * service; the others follow the pattern of those.
 */
import { status } from '@grpc/grpc-js';
import { HelpError } from '../error-details.ts';
import { invalidArgument, type StatusError } from '../grpc-server.ts';

type Bound = 'low' | 'high';

const SETTINGS = {
  // Recorded.
  'RateLimits.maxDispatchesPerSecond': {
    low: 'cannot be negative.',
    high: 'must be less than or equal to 500.',
  },
  'RateLimits.maxConcurrentDispatches': {
    low: 'cannot be negative.',
    high: 'must be less than or equal to 5000.',
  },
  'RetryConfig.maxAttempts': { low: 'must be greater or equal to -1.' },
  'RetryConfig.maxDoublings': { low: 'cannot be negative.' },
  'RetryConfig.minBackoff': {
    low: 'cannot be negative.',
    high: 'must be less than or equal to RetryConfig.maxBackoff.',
  },
  // By pattern.
  'RetryConfig.maxBackoff': { low: 'cannot be negative.' },
  'RetryConfig.maxRetryDuration': { low: 'cannot be negative.' },
} as const satisfies Readonly<Record<string, Readonly<Partial<Record<Bound, string>>>>>;

export type Setting = keyof typeof SETTINGS;

/** INVALID_ARGUMENT for a setting below its range. */
export const tooLow = (setting: Setting): StatusError =>
  invalidArgument(`${setting} ${SETTINGS[setting].low}`);

/** INVALID_ARGUMENT for a setting above its range. */
export const tooHigh = (
  setting: Extract<Setting, `RateLimits.${string}` | 'RetryConfig.minBackoff'>,
): StatusError => invalidArgument(`${setting} ${SETTINGS[setting].high}`);

const REFERENCE = 'https://cloud.google.com/tasks/docs/reference/rest/v2/projects.locations.queues';
const NAMES = {
  queue: {
    words: 'Queue name must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>".',
    description: 'Definition of queue name',
    url: `${REFERENCE}#Queue.FIELDS.name`,
  },
  // The link by pattern.
  task: {
    words:
      'Task name must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>/tasks/<TASK_ID>".',
    description: 'Definition of task name',
    url: `${REFERENCE}.tasks#Task.FIELDS.name`,
  },
} as const;

/** INVALID_ARGUMENT for a name that is none, with a link to what it should be. Recorded. */
export function badName(of: keyof typeof NAMES): StatusError {
  const { words, ...link } = NAMES[of];
  return new HelpError(status.INVALID_ARGUMENT, words, [link]);
}

/** The same for the last part of a task's name. Recorded. */
export function badTaskId(id: string): StatusError {
  const words = `Task ID "${id}" can contain only letters ([A-Za-z]), numbers ([0-9]), hyphens (-), or underscores (_). Task ID must between 1 and 500 characters.`;
  const { url } = NAMES.task;
  return new HelpError(status.INVALID_ARGUMENT, words, [{ description: 'Definition of task ID', url }]);
}

/** INVALID_ARGUMENT for a parent that is no location. Recorded. */
export const badParent = (): StatusError => invalidArgument('Invalid resource field value in the request.');

/** The same for a queue that is to be created elsewhere. Recorded. */
export const outsideParent = (name: string, parent: string): StatusError =>
  invalidArgument(`${name} must begin with ${parent}.`);

/** The same for a task that is too large. Recorded are the first four words; documents disagree about the number. */
export const tooLarge = (bytes: number, limit: number): StatusError =>
  invalidArgument(`Task size too large: ${bytes} bytes as stored, at most ${limit} are accepted.`);

/** The same for a deadline out of its range. Recorded. */
export const badDeadline = (kind: 'http' | 'appEngine'): StatusError =>
  invalidArgument(`Task.dispatchDeadline must be between [15s, ${kind === 'http' ? '30m' : '24h15s'}].`);

/** The same for a task too far ahead; the service writes the time as it is on the Pacific coast. Recorded. */
export const tooFarAhead = (dueMs: number): StatusError =>
  invalidArgument(
    `The Task.scheduleTime, ${pacificTime(dueMs)}, is too far in the future. Schedule time must be no more than 720h in the future.`,
  );

const PACIFIC = new Intl.DateTimeFormat('en-US', {
  timeZone: 'America/Los_Angeles',
  hourCycle: 'h23',
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'longOffset',
});

function pacificTime(timeMs: number): string {
  const parts = new Map(PACIFIC.formatToParts(timeMs).map(({ type, value }) => [type, value]));
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.get(type) ?? '';
  const date = `${part('year').padStart(4, '0')}-${part('month')}-${part('day')}`;
  const offset = part('timeZoneName').replace('GMT', '');
  return `${date}T${part('hour')}:${part('minute')}:${part('second')}${offset}`;
}
