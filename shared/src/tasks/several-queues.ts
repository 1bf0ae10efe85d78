/**
 * Several task queues as one: a queue dispatches 500 tasks a second at most
 * (https://cloud.google.com/tasks/docs/quotas), so more than that needs more queues.
 *
 * A task's name picks its queue, so that a redelivery, or a repeat after a lost reply, meets the task that is already
 * there. A queue that fails is not replaced by another: the task may be stored in it all the same. The choice is by
 * the highest weight (rendezvous hashing): a queue that is added or removed moves the tasks of that queue alone, one in
 * n, and a message whose redelivery falls into that change may be delivered twice, under one `dedupId`.
 */
import { refused, refusedAs } from '../errors.ts';
import { hashOf } from '../hash.ts';
import type { TaskQueue } from './task-queue.ts';
import { listOf, required, objectOf, taskQueue as aQueue, text } from '../options.ts';

export type NamedQueue = Readonly<{
  /** What the choice goes by: keep it for as long as the queue is the same one. Its full name is good. */
  name: string;
  queue: TaskQueue;
}>;

/**
 * Their order means nothing. Throws ConfigError for none, and for a name that comes twice.
 *
 * @example
 * const names = ['projects/p/locations/l/queues/a', 'projects/p/locations/l/queues/b'];
 * const target = { appEngine: {} };
 * const queue = severalQueues(
 *   names.map((name) => ({ name, queue: cloudTasksQueue(cloudTasksClient(), { queue: name, target }) })),
 * );
 */
export function severalQueues(queues: readonly NamedQueue[]): TaskQueue {
  listOf(
    objectOf<NamedQueue>({ name: required(text), queue: required(aQueue) }),
    'a list of queues with their names',
  )('queues', queues);
  const [first, ...others] = queues;
  if (first === undefined) {
    throw refused('queues', queues, 'at least one queue');
  }
  const names = queues.map(({ name }) => name);
  const again = names.findIndex((name, index) => names.indexOf(name) !== index);
  if (again >= 0) {
    throw refusedAs(`queues[${again}].name`, `${JSON.stringify(names[again])} again`, 'each name once');
  }
  if (others.length === 0) return first.queue;
  return {
    // A task must fit whichever of them it is for.
    overheadBytes: Math.max(...queues.map(({ queue }) => queue.overheadBytes)),
    create: (task, limits) => chosen(task.name, first, others).queue.create(task, limits),
  };
}

function chosen(taskName: string, first: NamedQueue, others: readonly NamedQueue[]): NamedQueue {
  let best = first;
  let weight = hashOf(first.name, taskName);
  for (const other of others) {
    const its = hashOf(other.name, taskName);
    if (its > weight) [best, weight] = [other, its];
  }
  return best;
}
