/**
 * A task: made from a request with every default filled in, and shown to clients. Pure but for the id that it is given.
 */

import type { HeapItem } from '../heap.ts';
import {
  checkedDuration,
  checkedTimestamp,
  durationOfMs,
  timestampOfMicros,
  timestampOfMs,
  type TaskMessage,
} from './messages.ts';
import { lastSegment, projectOf } from './names.ts';
import { badDeadline, tooFarAhead } from './words.ts';
import { parseTarget, type AppEngineTarget, type Target, type TargetRules } from './target.ts';

export type AttemptRecord = {
  readonly scheduleMicros: number;
  readonly dispatchMs: number;
  responseMs?: number;
  status?: Readonly<{ code: number; message: string }>;
};

export type Task = HeapItem & {
  readonly name: string;
  readonly id: string;
  target: Target;
  readonly createdMs: number;
  readonly deadlineMs: number;
  /** Whether the deadline is the caller's own. */
  readonly deadlineGiven: boolean;
  /** As clients and targets see it: cut to microseconds. */
  scheduleMicros: number;
  /** Attempts dispatched, answered, and counted in the ExecutionCount header. */
  dispatches: number;
  responses: number;
  executions: number;
  inFlight: number;
  first?: AttemptRecord;
  last?: AttemptRecord;
  previous?: Readonly<{ response: number; reason: string }>;
};

const HOUR_MS = 3_600_000;
/** "After a task is 31 days old, the task will be deleted" (API reference, CreateQueue). */
export const TASK_LIFE_MS = 31 * 24 * HOUR_MS;
/** "Schedule time must be no more than 720h in the future" (the service's own message). */
const MAX_AHEAD_MS = 720 * HOUR_MS;
/** Default and accepted deadlines (API reference, Task.dispatch_deadline; App Engine: automatic scaling). */
const DEFAULT_DEADLINE_MS = 600_000;
const MIN_DEADLINE_MS = 15_000;
const MAX_DEADLINE_MS = { http: 1_800_000, appEngine: 24 * HOUR_MS + 15_000 } as const;

/** Throws INVALID_ARGUMENT or UNIMPLEMENTED, see target.ts. The name has been checked by the caller. */
export function createTask(
  message: TaskMessage,
  name: string,
  sequence: number,
  now: number,
  rules: TargetRules,
): Task {
  const target = parseTarget(message, rules);
  return {
    name,
    id: lastSegment(name),
    target,
    createdMs: now,
    ...parseDeadline(message, target.kind),
    ...parseSchedule(message, now),
    sequence,
    place: -1,
    dispatches: 0,
    responses: 0,
    executions: 0,
    inFlight: 0,
  };
}

/** The schedule time is rounded up to the clock's millisecond: a task is never early by a fraction either. */
function parseSchedule(message: TaskMessage, now: number): { scheduleMicros: number; dueMs: number } {
  const present = { scheduleMicros: Math.floor(now * 1000), dueMs: now };
  if (message.scheduleTime == null) return present;
  const { seconds, nanos } = checkedTimestamp(message.scheduleTime, 'Task.scheduleTime');
  const dueMs = seconds * 1000 + Math.ceil(nanos / 1e6);
  if (dueMs <= now) return present;
  if (dueMs > now + MAX_AHEAD_MS) throw tooFarAhead(dueMs);
  return { scheduleMicros: seconds * 1e6 + Math.floor(nanos / 1000), dueMs };
}

function parseDeadline(
  message: TaskMessage,
  kind: Target['kind'],
): { deadlineMs: number; deadlineGiven: boolean } {
  const absent = { deadlineMs: DEFAULT_DEADLINE_MS, deadlineGiven: false };
  if (message.dispatchDeadline == null) return absent;
  const deadlineMs = Math.floor(checkedDuration(message.dispatchDeadline, 'Task.dispatchDeadline'));
  if (deadlineMs === 0 && kind === 'appEngine') return absent;
  if (deadlineMs >= MIN_DEADLINE_MS && deadlineMs <= MAX_DEADLINE_MS[kind]) {
    return { deadlineMs, deadlineGiven: true };
  }
  throw badDeadline(kind);
}

/** When it is too old. */
export const endOf = ({ createdMs }: Task): number => createdMs + TASK_LIFE_MS;

/** The tasks that are too old, of all in the order of creation. */
export function* expired(tasks: Iterable<Task>, now: number): Generator<Task> {
  for (const task of tasks) {
    if (now < endOf(task)) return;
    yield task;
  }
}

/** The task as the service returns it. The basic view leaves out the body (API reference, Task.View). */
export function taskToMessage(task: Task, view: 'BASIC' | 'FULL'): object {
  const body = view === 'FULL' ? { body: task.target.body } : {};
  return {
    ...targetToMessage(task.target, body, { ...routingOf(task.target), host: hostOf(task) }),
    name: task.name,
    scheduleTime: timestampOfMicros(task.scheduleMicros),
    // "create_time will be truncated to the nearest second" (API reference).
    createTime: { seconds: String(Math.floor(task.createdMs / 1000)), nanos: 0 },
    dispatchDeadline: durationOfMs(task.deadlineMs),
    dispatchCount: task.dispatches,
    responseCount: task.responses,
    // "Only dispatch_time will be set" (API reference, Task.first_attempt).
    firstAttempt: task.first === undefined ? null : { dispatchTime: timestampOfMs(task.first.dispatchMs) },
    lastAttempt: task.last === undefined ? null : attemptToMessage(task.last),
    view,
  };
}

/**
 * What the service measures against its cap, by a published probe: the task as stored, without view and counters, an
 * App Engine deadline only where the caller gave one, and the routing as a host alone.
 */
export function taskAsStored(task: Task): object {
  const { target } = task;
  const counted = target.kind === 'http' || task.deadlineGiven;
  return {
    ...targetToMessage(target, target.body.length > 0 ? { body: target.body } : {}, { host: hostOf(task) }),
    name: task.name,
    scheduleTime: timestampOfMicros(task.scheduleMicros),
    createTime: timestampOfMs(task.createdMs),
    ...(counted ? { dispatchDeadline: { seconds: String(Math.floor(task.deadlineMs / 1000)) } } : {}),
  };
}

function targetToMessage(target: Target, body: { body?: Buffer }, appEngineRouting: object): object {
  const common = { httpMethod: target.method, headers: target.headers, ...body };
  const oidc = target.kind === 'http' && target.oidc !== undefined ? { oidcToken: target.oidc } : {};
  return target.kind === 'http'
    ? { httpRequest: { ...common, url: target.url, ...oidc } }
    : { appEngineHttpRequest: { ...common, relativeUri: target.relativeUri, appEngineRouting } };
}

const routingOf = (target: Target): Partial<AppEngineTarget['routing']> =>
  target.kind === 'appEngine' ? target.routing : {};

/** "Constructed from the domain name of the app …, service, version and instance" (AppEngineRouting.host). */
function hostOf(task: Task): string {
  const { service = '', version = '', instance = '' } = routingOf(task.target);
  const parts = [instance, version, service, `${projectOf(task.name)}.appspot.com`];
  return parts.filter((part) => part !== '').join('.');
}

function attemptToMessage(attempt: AttemptRecord): object {
  return {
    scheduleTime: timestampOfMicros(attempt.scheduleMicros),
    dispatchTime: timestampOfMs(attempt.dispatchMs),
    responseTime: attempt.responseMs === undefined ? null : timestampOfMs(attempt.responseMs),
    responseStatus: attempt.status ?? null,
  };
}
