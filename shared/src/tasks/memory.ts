/**
 * The task queue port in memory, for tests of handlers and stages: it keeps to what the port promises, remembers
 * names, and dispatches on the clock that it is given. Everything is gone with the process.
 */
import { type Clock, systemClock } from '../clock.ts';
import { PermanentError, TransientError } from '../errors.ts';
import type { Task, TaskQueue } from './task-queue.ts';
import { checkOptions, clock as aClock } from '../options.ts';

type Dispatch = (task: Task, retryCount: number) => Promise<Readonly<{ status: number }>>;

export type MemoryTasks = TaskQueue &
  Readonly<{
    /** Every task that was stored, in order. */
    created: readonly Task[];
    /** Stored and not yet answered with success. */
    pending(): number;
    /** Calls of `create`, those that failed included. */
    calls(): number;
    /** What the n-th call of `create` (from 1) does instead of answering. */
    failOn(call: number, how: 'refused' | 'reply lost'): void;
    /** Starts dispatching: what is due, and what falls due. Any status but 2xx is tried again after `backoffMs`. */
    dispatchTo(dispatch: Dispatch, backoffMs?: number): void;
  }>;

/** 30 days (https://cloud.google.com/tasks/docs/quotas). */
const LONGEST_MS = 720 * 3_600_000;

/**
 * Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * const queue = memoryTasks({ clock: virtualClock() });
 */
export function memoryTasks(options: Readonly<{ clock?: Clock }> = {}): MemoryTasks {
  checkOptions<{ clock: Clock }>(options, { clock: aClock });
  const { clock = systemClock() } = options;
  const created: Task[] = [];
  const names = new Set<string>();
  const pending = new Set<Task>();
  const failures = new Map<number, 'refused' | 'reply lost'>();
  let calls = 0;
  let target: Readonly<{ dispatch: Dispatch; backoffMs: number }> | undefined;

  const arm = (task: Task, milliseconds: number, retryCount: number): void => {
    clock.after(milliseconds, () => {
      // A dispatch that fails in any way is tried again, as a connection that breaks would be.
      void run(task, retryCount).catch(() => arm(task, target?.backoffMs ?? 0, retryCount + 1));
    });
  };
  const run = async (task: Task, retryCount: number): Promise<void> => {
    if (target === undefined) return;
    const { status } = await target.dispatch(task, retryCount);
    if (status >= 200 && status <= 299) pending.delete(task);
    else arm(task, target.backoffMs, retryCount + 1);
  };
  const store = (task: Task): 'created' | 'exists' => {
    if (names.has(task.name)) return 'exists';
    if (task.scheduleTimeMs > clock.now() + LONGEST_MS) {
      throw new PermanentError('TASK_REFUSED', 'the schedule time is more than 720 h ahead');
    }
    names.add(task.name);
    created.push(task);
    pending.add(task);
    if (target !== undefined) arm(task, task.scheduleTimeMs - clock.now(), 0);
    return 'created';
  };

  return {
    overheadBytes: 0,
    created,
    pending: () => pending.size,
    calls: () => calls,
    failOn: (call, how) => void failures.set(call, how),
    dispatchTo(dispatch, backoffMs = 1_000) {
      target = { dispatch, backoffMs };
      for (const task of pending) arm(task, task.scheduleTimeMs - clock.now(), 0);
    },
    async create(task) {
      calls += 1;
      const failure = failures.get(calls);
      const answer = failure === 'refused' ? undefined : store(task);
      if (answer === undefined || failure !== undefined) {
        throw new TransientError('TASK_QUEUE_UNAVAILABLE', `createTask ${calls}: ${failure}`);
      }
      return answer;
    },
  };
}
