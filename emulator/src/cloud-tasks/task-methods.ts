/**
 * The task methods of google.cloud.tasks.v2.CloudTasks over the queues of one server. Each takes a request and returns
 * a response or throws a StatusError, with the codes and texts recorded from the service.
 * A repeated CreateTask with the same name makes no second task: it is answered ALREADY_EXISTS, also for a while after
 * the first one is gone.
 */
import { randomBytes } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { Clock } from '../clock.ts';
import { invalidArgument, notFound, StatusError } from '../grpc-server.ts';
import type { ByName, CreateTaskRequest, ListTasksRequest, TaskMessage, ViewOfName } from './messages.ts';
import { parseTaskName } from './names.ts';
import { tooLarge } from './words.ts';
import { pageOf } from './paging.ts';
import { findQueue } from './queue-methods.ts';
import type { Queue } from './queue.ts';
import { createTask, taskAsStored, taskToMessage, type Task } from './task.ts';

/** Maximum page size (API reference, ListTasksRequest.page_size). */
const MAX_PAGE_SIZE = 1000;
/** Below the 4 MB that a gRPC client receives unless configured otherwise. */
const MAX_PAGE_BYTES = 3_000_000;

export type TaskMethodPorts = Readonly<{
  clock: Clock;
  queues: ReadonlyMap<string, Queue>;
  appEngine: boolean;
  oidcTokens: boolean;
  maxTaskBytes: number;
  /** Of the tasks in the order of creation, over all queues. */
  nextSequence(): number;
  /** The size of a Task message on the wire. */
  sizeOf(task: object): number;
}>;

export function taskMethods(ports: TaskMethodPorts) {
  const { clock, queues, maxTaskBytes } = ports;

  const make = (queue: Queue, name: string, message: TaskMessage): Task => {
    const { appEngine, oidcTokens } = ports;
    const rules = { appEngine, oidcTokens, routingOverride: queue.config.routingOverride };
    const task = createTask(message, name, ports.nextSequence(), clock.now(), rules);
    const bytes = ports.sizeOf(taskAsStored(task));
    if (bytes <= maxTaskBytes) return task;
    throw tooLarge(bytes, maxTaskBytes);
  };

  const find = (name: string): { queue: Queue; task: Task } => {
    const queue = queues.get(parseTaskName(name).queue);
    const task = queue?.tasks.get(name);
    if (queue !== undefined && task !== undefined) return { queue, task };
    throw notFound('Requested entity was not found.');
  };

  return {
    createTask({ parent, task: message, responseView }: CreateTaskRequest): object {
      const view = viewOf(responseView);
      if (message == null) throw invalidArgument('CreateTaskRequest.task is required.');
      checkNameInQueue(message.name, parent);
      const queue = findQueue(queues, parent);
      const task = make(queue, message.name || `${parent}/tasks/${randomId()}`, message);
      if (queue.tasks.has(task.name) || queue.remembered.has(task.name)) {
        throw new StatusError(status.ALREADY_EXISTS, 'Requested entity already exists');
      }
      queue.add(task);
      const reply = taskToMessage(task, view);
      queue.pump();
      return reply;
    },

    getTask({ name, responseView }: ViewOfName): object {
      const view = viewOf(responseView);
      if (queues.get(parseTaskName(name).queue)?.remembered.has(name) === true) {
        throw notFound(
          'The task no longer exists, though a task with this name existed recently. The task either successfully completed or was deleted.',
        );
      }
      return taskToMessage(find(name).task, view);
    },

    /** In the order of creation ("may be returned in any order", API reference). */
    listTasks(request: ListTasksRequest): object {
      const view = viewOf(request.responseView);
      const { tasks } = findQueue(queues, request.parent);
      const limits = {
        maxSize: MAX_PAGE_SIZE,
        maxBytes: MAX_PAGE_BYTES,
        bytesOf: (task: Task) => ports.sizeOf(taskToMessage(task, view)),
      };
      const { items, nextPageToken } = pageOf(
        tasks.values(),
        (task) => task.sequence,
        request,
        limits,
        clock.now(),
      );
      return { tasks: items.map((task) => taskToMessage(task, view)), nextPageToken };
    },

    deleteTask({ name }: ByName): object {
      const { queue, task } = find(name);
      queue.remove(task);
      return {};
    },

    runTask({ name, responseView }: ViewOfName): object {
      const view = viewOf(responseView);
      const { queue, task } = find(name);
      queue.run(task);
      return taskToMessage(task, view);
    },
  };
}

function checkNameInQueue(name: string, parent: string): void {
  if (name === '') return;
  const { queue } = parseTaskName(name);
  if (queue === parent) return;
  throw invalidArgument(
    `The queue name from request ('${parent}') must be the same as the queue name in the named task ('${queue}').`,
  );
}

function viewOf(view: string): 'BASIC' | 'FULL' {
  if (view === 'FULL') return 'FULL';
  if (view === 'BASIC' || view === 'VIEW_UNSPECIFIED') return 'BASIC';
  throw invalidArgument(`The response view ${JSON.stringify(view)} is not one of BASIC, FULL.`);
}

/** Digits, as the service makes them, and evenly spread. */
const randomId = (): string => randomBytes(8).readBigUInt64BE().toString().padStart(20, '0');
