/**
 * Resource names of Cloud Tasks: what is legal. The rest is refused in the service's words (words.ts).
 */
import { badName, badParent, badTaskId } from './words.ts';

/** Letters, digits and lengths as the API reference of Queue.name and Task.name gives them. */
const LOCATION = String.raw`projects/[A-Za-z0-9:.-]+/locations/[A-Za-z0-9-]+`;
const LOCATION_NAME = new RegExp(`^${LOCATION}$`);
const QUEUE_NAME = new RegExp(`^${LOCATION}/queues/[A-Za-z0-9-]{1,100}$`);
const TASK_ID = /^[A-Za-z0-9_-]{1,500}$/;

export function checkLocationName(parent: string): void {
  if (LOCATION_NAME.test(parent)) return;
  throw badParent();
}

export function checkQueueName(name: string): void {
  if (QUEUE_NAME.test(name)) return;
  throw badName('queue');
}

/** Splits a task's name. Throws INVALID_ARGUMENT when it is not one. */
export function parseTaskName(name: string): { queue: string; id: string } {
  // By its place, not by its text: a queue may be called "tasks".
  const [, queue = '', id = ''] = /^((?:[^/]+\/){5}[^/]+)\/tasks\/(.*)$/s.exec(name) ?? [];
  if (!QUEUE_NAME.test(queue)) {
    throw badName('task');
  }
  if (TASK_ID.test(id)) return { queue, id };
  throw badTaskId(id);
}

export const lastSegment = (name: string): string => name.slice(name.lastIndexOf('/') + 1);

/** The project of any legal name. */
export const projectOf = (name: string): string => name.split('/')[1] ?? '';
