/**
 * A task in a saved state: Task in Google's JSON form with its body, and beside it
 *
 *     executionCount    as in the header of this name
 *     previousResponse  { response, reason } of the last attempt that was answered or broke
 *     inFlight          it was being dispatched: it is due at once
 *
 * Headers that the service adds by itself are left out; limits on sizes, which are those of a request, do not hold here.
 */
import {
  accepted,
  bool,
  bytes,
  duration,
  meaningful,
  optional,
  type Read,
  record,
  SavedError,
  strings,
  text,
  time,
  timeMs,
  whole,
  writeDuration,
  writeMicros,
  writeMs,
} from '../saved-json.ts';
import { APP_ENGINE_AGENT, type Headers } from './headers.ts';
import { durationOfMs, type Routing } from './messages.ts';
import type { Target, TargetRules } from './target.ts';
import { createTask, TASK_LIFE_MS, type AttemptRecord, type Task } from './task.ts';

const count = optional(whole(0, 2 ** 31 - 1), 0);
const some = optional(text, '');

export const ROUTING = record({ service: some, version: some, instance: some });

const micros: Read<number> = (value, place) => {
  const { seconds, nanos } = time(value, place);
  return Number(seconds) * 1_000_000 + Math.floor(nanos / 1000);
};

const REQUEST = {
  httpMethod: optional(text, 'HTTP_METHOD_UNSPECIFIED'),
  headers: optional(strings, {}),
  body: optional(bytes, Buffer.alloc(0)),
};

const ATTEMPT = record({
  scheduleTime: micros,
  dispatchTime: timeMs,
  responseTime: optional(timeMs, undefined),
  responseStatus: optional(record({ code: count, message: some }), undefined),
});

export const TASK = record({
  name: text,
  httpRequest: optional(
    record({
      ...REQUEST,
      url: text,
      oidcToken: optional(record({ serviceAccountEmail: text, audience: some }), null),
    }),
    null,
  ),
  appEngineHttpRequest: optional(
    record({ ...REQUEST, relativeUri: some, appEngineRouting: optional(ROUTING, null) }),
    null,
  ),
  scheduleTime: micros,
  createTime: timeMs,
  dispatchDeadline: optional(duration, null),
  dispatchCount: count,
  responseCount: count,
  firstAttempt: optional(ATTEMPT, undefined),
  lastAttempt: optional(ATTEMPT, undefined),
  executionCount: count,
  previousResponse: optional(record({ response: count, reason: some }), undefined),
  inFlight: optional(bool, false),
});

export function saveTask(task: Task): object {
  return meaningful({
    name: task.name,
    ...saveTarget(task.target),
    scheduleTime: writeMicros(task.scheduleMicros),
    createTime: writeMs(task.createdMs),
    dispatchDeadline: writeDuration(durationOfMs(task.deadlineMs)),
    dispatchCount: task.dispatches,
    responseCount: task.responses,
    firstAttempt: task.first && saveAttempt(task.first),
    lastAttempt: task.last && saveAttempt(task.last),
    executionCount: task.executions,
    previousResponse: task.previous && meaningful(task.previous),
    inFlight: task.inFlight > 0,
  });
}

function saveTarget(target: Target): object {
  const request = {
    httpMethod: target.method,
    headers: given(target),
    body: target.body.toString('base64'),
  };
  return target.kind === 'http'
    ? { httpRequest: meaningful({ url: target.url, ...request, oidcToken: target.oidc }) }
    : {
        appEngineHttpRequest: meaningful({
          relativeUri: target.relativeUri,
          ...request,
          appEngineRouting: saveRouting(target.ownRouting),
        }),
      };
}

export const saveRouting = ({ service, version, instance }: Routing): object =>
  meaningful({ service, version, instance });

/** The headers from which the stored ones come, see `storedHeaders`. */
function given({ kind, headers }: Target): Headers | undefined {
  const own = Object.entries(headers).flatMap(([name, value]) => {
    if (name === 'Content-Length') return [];
    if (name !== 'User-Agent') return [[name, value] as const];
    const agent = kind === 'http' ? '' : value.slice(0, -APP_ENGINE_AGENT.length).trimEnd();
    return agent === '' ? [] : [[name, agent] as const];
  });
  return own.length > 0 ? Object.fromEntries(own) : undefined;
}

const saveAttempt = ({ scheduleMicros, dispatchMs, responseMs, status }: AttemptRecord): object =>
  meaningful({
    scheduleTime: writeMicros(scheduleMicros),
    dispatchTime: writeMs(dispatchMs),
    responseTime: responseMs === undefined ? undefined : writeMs(responseMs),
    responseStatus: status && meaningful(status),
  });

/** Throws an error of one line for a task that this server could not take. */
export function taskOf(
  saved: ReturnType<typeof TASK>,
  place: string,
  sequence: number,
  now: number,
  rules: TargetRules,
): Task {
  const { name, httpRequest, appEngineHttpRequest, dispatchDeadline, scheduleTime, createTime } = saved;
  if (httpRequest !== null && appEngineHttpRequest !== null) {
    throw new SavedError(`${place} has httpRequest and appEngineHttpRequest; accepted: one of them`);
  }
  // The time of a retry may be later than a request can ask for, and is set below.
  const message = { name, httpRequest, appEngineHttpRequest, dispatchDeadline, scheduleTime: null };
  const task = accepted(place, () => createTask(message, name, sequence, createTime, rules));
  const dueMs = Math.min(Math.ceil(scheduleTime / 1000), createTime + TASK_LIFE_MS);
  return Object.assign(task, {
    scheduleMicros: scheduleTime,
    dueMs: saved.inFlight ? Math.min(dueMs, now) : dueMs,
    dispatches: saved.dispatchCount,
    responses: saved.responseCount,
    executions: saved.executionCount,
    ...(saved.firstAttempt && { first: attemptOf(saved.firstAttempt) }),
    ...(saved.lastAttempt && { last: attemptOf(saved.lastAttempt) }),
    ...(saved.previousResponse && { previous: saved.previousResponse }),
  });
}

const attemptOf = (saved: ReturnType<typeof ATTEMPT>): AttemptRecord => ({
  scheduleMicros: saved.scheduleTime,
  dispatchMs: saved.dispatchTime,
  ...(saved.responseTime !== undefined && { responseMs: saved.responseTime }),
  ...(saved.responseStatus && { status: saved.responseStatus }),
});
