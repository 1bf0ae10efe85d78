/**
 * The port behind delayed delivery: a queue that keeps a few bytes until a due time and then calls the republisher
 * with them, again and again until it answers with success.
 *
 * A crash between a task's creation and the acknowledgement of its message leads to the same name again, and so to
 * `exists`: one task, not two.
 */

/** What a queue is asked to keep. */
export type Task = Readonly<{
  /** 1 to 500 characters of `A-Za-z0-9_-`, evenly spread (https://cloud.google.com/tasks/docs/reference/rest/v2/projects.locations.queues.tasks). */
  name: string;
  /** Milliseconds since the epoch; one in the past means at once. At most 30 days ahead. */
  scheduleTimeMs: number;
  /** What the republisher receives, byte for byte. */
  body: Uint8Array;
}>;

/** How long the caller can wait for an answer. */
export type CreateLimits = Readonly<{
  /** Time of the monotonic clock, as a delivery's `context.deadline`: the answer is there some time before it. */
  deadline?: number;
  /** Aborted when the answer is of no use any more. */
  signal?: AbortSignal;
}>;

export type TaskQueue = Readonly<{
  /** What the queue stores besides the body (name, target, headers): counts toward the size cap of a task. */
  overheadBytes: number;
  /**
   * Resolves only when the task is stored, and answers `exists` when its name is taken or was taken lately. A stored
   * task is never dispatched before its schedule time on the queue's own clock, and is dispatched until the
   * republisher answers with success.
   *
   * Settles within a bounded time, and before the deadline where one is given; until then it may try again what failed
   * for the moment. Rejects with PermanentError when this task can never be stored (its size, its
   * form), with TransientError otherwise; a transient rejection does not say that the task was not stored.
   */
  create(task: Task, limits?: CreateLimits): Promise<'created' | 'exists'>;
}>;
