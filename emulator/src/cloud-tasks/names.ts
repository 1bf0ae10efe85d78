/**
 * Resource names of Cloud Tasks: what is legal, and the texts with which the service refuses the rest.
 * The texts in quotes of the service are recordings; the others are this server's own.
 */
import { invalidArgument } from '../grpc-server.ts';

/** Letters, digits and lengths as the API reference of Queue.name and Task.name gives them. */
const LOCATION = String.raw`projects/[A-Za-z0-9:.-]+/locations/[A-Za-z0-9-]+`;
const LOCATION_NAME = new RegExp(`^${LOCATION}$`);
const QUEUE_NAME = new RegExp(`^${LOCATION}/queues/[A-Za-z0-9-]{1,100}$`);
const TASK_ID = /^[A-Za-z0-9_-]{1,500}$/;

export function checkLocationName(parent: string): void {
  if (LOCATION_NAME.test(parent)) return;
  throw invalidArgument(
    `The parent ${JSON.stringify(parent)} must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>".`,
  );
}

export function checkQueueName(name: string): void {
  if (QUEUE_NAME.test(name)) return;
  throw invalidArgument(
    'Queue name must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>".',
  );
}

/** Splits a task's name. Throws INVALID_ARGUMENT when it is not one. */
export function parseTaskName(name: string): { queue: string; id: string } {
  // By its place, not by its text: a queue may be called "tasks".
  const [, queue = '', id = ''] = /^((?:[^/]+\/){5}[^/]+)\/tasks\/(.*)$/s.exec(name) ?? [];
  if (!QUEUE_NAME.test(queue)) {
    throw invalidArgument(
      'Task name must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>/tasks/<TASK_ID>".',
    );
  }
  if (TASK_ID.test(id)) return { queue, id };
  throw invalidArgument(
    `Task ID "${id}" can contain only letters ([A-Za-z]), numbers ([0-9]), hyphens (-), or underscores (_). Task ID must between 1 and 500 characters.`,
  );
}

export const lastSegment = (name: string): string => name.slice(name.lastIndexOf('/') + 1);

/** The project of any legal name. */
export const projectOf = (name: string): string => name.split('/')[1] ?? '';
