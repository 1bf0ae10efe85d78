/**
 * The task of an entry. Its name is made of the generation and the attempt in the entry, so that every
 * repeat meets the same task, and a new schedule or a lost task never meets an old name.
 */
import type { Clock } from '../clock.ts';
import { TransientError } from '../errors.ts';
import { taskFor } from '../tasks/task-body.ts';
import type { CreateLimits, Task, TaskQueue } from '../tasks/task-queue.ts';
import { scheduleTimeFor } from '../tasks/timing.ts';
import type { Entry } from './entry.ts';

function taskOf({ delayed, generation, attempt, atMs }: Entry, nowMs: number): Task {
  if (delayed?.entry?.generation !== generation) {
    throw new TransientError(
      'UNREADABLE_ENTRY',
      'a pending entry of the ledger holds no delivery of its own',
    );
  }
  // The store's clock has come to the time of the entry. One of this process that is far ahead would ask for more than the
  // queue takes, which is refused for good.
  const scheduleTimeMs = scheduleTimeFor(delayed.dueTimeMs, Math.min(nowMs, atMs));
  return taskFor({ ...delayed, attempt, hop: 0, scheduleTimeMs });
}

/** Resolves once the task is stored, now or before. Rejects as `TaskQueue.create` does. */
export async function enqueue(
  queue: TaskQueue,
  clock: Clock,
  entry: Entry,
  limits: CreateLimits = {},
): Promise<Readonly<{ task: string; answer: 'created' | 'exists' }>> {
  const task = taskOf(entry, clock.now());
  return { task: task.name, answer: await queue.create(task, limits) };
}
