/**
 * One queue at work: holds tasks by schedule time, dispatches them within the rate limits, retries and forgets them.
 * A task is never dispatched before its time by the clock. It is gone only after a 2xx, after its last attempt, or when
 * it is deleted, purged or too old; a response that is lost means another attempt, so a target may see a task twice.
 * Everything is in memory: a crash of the process loses it.
 */
import type { Clock } from '../clock.ts';
import { createAlarm } from './alarm.ts';
import { recordOutcome, startAttempt, type AttemptPorts } from './attempt.ts';
import { createHeap } from '../heap.ts';
import { describeOutcome, isSuccess, retryAfterMs, type Outcome } from './outcome.ts';
import { queueToMessage, type QueueConfig } from './queue-config.ts';
import type { QueueStats } from './queue-stats.ts';
import type { RememberedNames } from './remembered-names.ts';
import { backoffMs, givesUp } from './retry.ts';
import { rerouted } from './target.ts';
import { endOf, expired, type AttemptRecord, type Task } from './task.ts';
import { createTokenBucket } from './token-bucket.ts';

export type QueuePorts = AttemptPorts & Readonly<{ clock: Clock; log: (line: string) => void }>;

export type Queue = Readonly<{
  /** As it is now. */
  readonly config: QueueConfig;
  /** Tasks by name, in the order of creation. */
  readonly tasks: ReadonlyMap<string, Task>;
  /** Of the tasks that were here recently. */
  readonly remembered: RememberedNames;
  /** Takes a task in. It is dispatched by the next `pump`, so that the caller can show it undispatched. */
  add(task: Task): void;
  remove(task: Task): void;
  purge(): void;
  setPaused(paused: boolean): void;
  /** Other limits and retries, for the tasks that wait here too. */
  reconfigure(config: QueueConfig): void;
  /** Dispatches at once, whatever the limits, the state and the schedule time say. */
  run(task: Task): void;
  /** Dispatches all that is due and allowed, and sets the timer for the next. */
  pump(): void;
  toMessage(): object;
  past(): QueuePast;
  stats(): QueueStats;
  close(): void;
}>;

/** What a queue may have been through before. */
export type QueuePast = Readonly<{ paused?: boolean; purgedMs?: number | undefined }>;

export function createQueue(
  ports: QueuePorts,
  initial: QueueConfig,
  remembered: RememberedNames,
  past: QueuePast = {},
): Queue {
  const { clock, log } = ports;
  const { maxDispatchesPerSecond, maxBurstSize } = initial.rateLimits;
  const tasks = new Map<string, Task>();
  const waiting = createHeap<Task>();
  const bucket = createTokenBucket(maxDispatchesPerSecond, maxBurstSize, clock.now());
  let config = initial;
  const counts = { dispatched: 0, succeeded: 0, givenUp: 0 };
  let inFlight = 0;
  let paused = past.paused ?? false;
  let closed = false;
  let { purgedMs } = past;

  const alarm = createAlarm(clock, () => pump());

  // No task is too old before: a map whose first entries were deleted is slow to find the one that is now first.
  let oldestEndsMs = Number.POSITIVE_INFINITY;

  // At every look at the queue, also where nothing is dispatched: a timer would make a paused queue look busy.
  const expire = (): void => {
    if (clock.now() < oldestEndsMs) return;
    for (const task of expired(tasks.values(), clock.now())) giveUp(task, 'is 31 days old');
    const [oldest] = tasks.values();
    oldestEndsMs = oldest === undefined ? Number.POSITIVE_INFINITY : endOf(oldest);
  };

  const pump = (): void => {
    expire();
    if (closed || paused) return alarm.set(undefined);
    for (;;) {
      const now = clock.now();
      const task = waiting.first();
      if (task === undefined) return alarm.set(undefined);
      if (task.dueMs > now) return alarm.set(task.dueMs);
      // The end of an attempt pumps again.
      if (inFlight >= config.rateLimits.maxConcurrentDispatches) return alarm.set(undefined);
      const waitMs = bucket.take(now);
      if (waitMs > 0) return alarm.set(now + waitMs);
      waiting.remove(task);
      dispatch(task, undefined);
    }
  };

  /** `forcedAtMs`: when RunTask was called, from which its retry counts. */
  const dispatch = (task: Task, forcedAtMs: number | undefined): void => {
    inFlight += 1;
    counts.dispatched += 1;
    startAttempt(ports, task, config.name, clock.now(), (outcome, record) => {
      if (closed) return;
      inFlight -= 1;
      recordOutcome(task, record, outcome, clock.now());
      settle(task, outcome, record, forcedAtMs);
      pump();
    });
  };

  const settle = (task: Task, outcome: Outcome, record: AttemptRecord, forcedAtMs?: number): void => {
    // Deleted, purged, or finished by another attempt (RunTask) in the meantime.
    if (tasks.get(task.name) !== task) return;
    if (isSuccess(outcome)) {
      counts.succeeded += 1;
      forget(task);
      return;
    }
    // Another attempt is still running or has already set the next try.
    if (task.inFlight > 0) return;
    const now = clock.now();
    const failure = `${describeOutcome(outcome)} at attempt ${task.dispatches}`;
    if (givesUp(config.retry, task.dispatches, now - (task.first?.dispatchMs ?? record.dispatchMs))) {
      giveUp(task, `failed for the last time: ${failure}`);
      return;
    }
    const backedOffMs = (forcedAtMs ?? now) + backoffMs(config.retry, task.dispatches);
    const retryMs = Math.max(backedOffMs, retryAfterMs(task.target.kind, outcome, now) ?? 0);
    log(`task ${task.name}: ${failure}, next in ${Math.max(retryMs - now, 0)} ms`);
    task.scheduleMicros = Math.floor(retryMs * 1000);
    task.dueMs = Math.min(Math.ceil(retryMs), endOf(task));
    waiting.add(task);
  };

  const giveUp = (task: Task, why: string): void => {
    counts.givenUp += 1;
    forget(task);
    log(`task ${task.name} ${why}; it is deleted`);
  };

  const forget = (task: Task): void => {
    waiting.remove(task);
    tasks.delete(task.name);
    remembered.add(task.name);
  };

  return {
    get config() {
      return config;
    },
    get tasks() {
      expire();
      return tasks;
    },
    remembered,
    add(task) {
      oldestEndsMs = Math.min(oldestEndsMs, endOf(task));
      tasks.set(task.name, task);
      waiting.add(task);
    },
    remove(task) {
      forget(task);
      pump();
    },
    purge() {
      purgedMs = clock.now();
      waiting.clear();
      for (const name of tasks.keys()) remembered.add(name);
      tasks.clear();
      pump();
    },
    setPaused(value) {
      paused = value;
      pump();
    },
    reconfigure(changed) {
      config = changed;
      const { maxDispatchesPerSecond: rate, maxBurstSize: burst } = config.rateLimits;
      bucket.resize(rate, burst, clock.now());
      for (const task of tasks.values()) task.target = rerouted(task.target, config.routingOverride);
      pump();
    },
    run(task) {
      waiting.remove(task);
      dispatch(task, clock.now());
    },
    pump,
    past: () => ({ paused, purgedMs }),
    toMessage: () => queueToMessage(config, paused, purgedMs),
    stats: () => ({
      pending: tasks.size,
      inFlight,
      ...counts,
      nextDueMs: alarm.atMs,
    }),
    close() {
      closed = true;
      alarm.set(undefined);
    },
  };
}
