/**
 * The queue methods of google.cloud.tasks.v2.CloudTasks over the queues of one server. Each takes a request and returns
 * a response or throws a StatusError, with the codes and texts recorded from the service.
 */
import { status } from '@grpc/grpc-js';
import type { Clock } from '../clock.ts';
import { invalidArgument, notFound, StatusError } from '../grpc-server.ts';
import type { ByName, CreateQueueRequest, ListQueuesRequest, UpdateQueueRequest } from './messages.ts';
import { checkLocationName, checkQueueName } from './names.ts';
import { pageOf } from './paging.ts';
import { defaultQueueConfig, parseQueueConfig, type QueueConfig } from './queue-config.ts';
import { queueFilter } from './queue-filter.ts';
import { updatedConfig } from './queue-update.ts';
import type { Queue } from './queue.ts';
import type { RememberedNames } from './remembered-names.ts';
import { outsideParent } from './words.ts';

/** Maximum page size (API reference, ListQueuesRequest.page_size). */
const MAX_PAGE_SIZE = 9800;

export type QueueMethodPorts = Readonly<{
  clock: Clock;
  queues: Map<string, Queue>;
  /** Of queues that were deleted. */
  deletedNames: RememberedNames;
  open(config: QueueConfig): Queue;
}>;

export function queueMethods({ clock, queues, deletedNames, open }: QueueMethodPorts) {
  const find = (name: string): Queue => findQueue(queues, name);

  const add = (config: QueueConfig): object => {
    if (deletedNames.has(config.name)) {
      throw new StatusError(
        status.FAILED_PRECONDITION,
        'The queue cannot be created because a queue with this name existed too recently.',
      );
    }
    const created = open(config);
    queues.set(config.name, created);
    return created.toMessage();
  };

  return {
    createQueue({ parent, queue }: CreateQueueRequest): object {
      checkLocationName(parent);
      if (queue == null) throw invalidArgument('CreateQueueRequest.queue is required.');
      checkQueueName(queue.name);
      if (!queue.name.startsWith(`${parent}/queues/`)) {
        throw outsideParent(queue.name, parent);
      }
      const config = parseQueueConfig(queue);
      if (queues.has(queue.name)) throw new StatusError(status.ALREADY_EXISTS, 'Queue already exists');
      return add(config);
    },

    /** "Creates the queue if it does not exist and updates the queue if it does exist" (API reference). */
    updateQueue({ queue: message, updateMask }: UpdateQueueRequest): object {
      if (message == null) throw invalidArgument('UpdateQueueRequest.queue is required.');
      checkQueueName(message.name);
      const paths = updateMask?.paths ?? [];
      const queue = queues.get(message.name);
      if (queue !== undefined) {
        queue.reconfigure(updatedConfig(queue.config, message, paths));
        return queue.toMessage();
      }
      if (paths.length === 0) return add(parseQueueConfig(message));
      return add(updatedConfig(defaultQueueConfig(message.name), message, paths));
    },

    getQueue: ({ name }: ByName): object => find(name).toMessage(),

    /** In lexicographical order (API reference). */
    listQueues(request: ListQueuesRequest): object {
      checkLocationName(request.parent);
      const matches = queueFilter(request.filter);
      const names = [...queues.keys()].filter((name) => name.startsWith(`${request.parent}/queues/`)).sort();
      const shown = names.map((name) => ({ name, message: find(name).toMessage() }));
      const { items, nextPageToken } = pageOf(
        shown.filter(({ message }) => matches(message)),
        ({ name }) => name,
        request,
        { maxSize: MAX_PAGE_SIZE, maxBytes: Number.POSITIVE_INFINITY, bytesOf: () => 0 },
        clock.now(),
      );
      return { queues: items.map(({ message }) => message), nextPageToken };
    },

    deleteQueue({ name }: ByName): object {
      checkQueueName(name);
      const queue = queues.get(name);
      if (queue === undefined) throw notFound('Requested entity was not found.');
      queue.close();
      queues.delete(name);
      deletedNames.add(name);
      return {};
    },

    purgeQueue({ name }: ByName): object {
      const queue = find(name);
      queue.purge();
      return queue.toMessage();
    },

    pauseQueue({ name }: ByName): object {
      const queue = find(name);
      queue.setPaused(true);
      return queue.toMessage();
    },

    resumeQueue({ name }: ByName): object {
      const queue = find(name);
      queue.setPaused(false);
      return queue.toMessage();
    },
  };
}

/** Throws INVALID_ARGUMENT for an illegal name and NOT_FOUND for an unknown or deleted queue. */
export function findQueue(queues: ReadonlyMap<string, Queue>, name: string): Queue {
  checkQueueName(name);
  const queue = queues.get(name);
  if (queue !== undefined) return queue;
  throw notFound(
    'Queue does not exist. If you just created the queue, wait at least a minute for the queue to initialize.',
  );
}
