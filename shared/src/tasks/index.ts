/** `pubsub-guarantees/tasks`: the port of task queues. Cloud Tasks has an entry point of its own: `/tasks/cloud-tasks`. */
export { type NamedQueue, severalQueues } from './several-queues.ts';
export { taskHeaders } from './task-headers.ts';
export type { CreateLimits, Task, TaskQueue } from './task-queue.ts';
