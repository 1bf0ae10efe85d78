/**
 * One attempt of a task: the request that goes out, and what its outcome does to the task's counters. The order of
 * dispatches, retries and the end of the task are the queue's business.
 */
import type { Outgoing } from '../faults/outgoing.ts';
import type { Identity } from '../identity.ts';
import { attemptHeaders, type Headers } from './headers.ts';
import type { HttpSender } from './http-sender.ts';
import { lastSegment } from './names.ts';
import { withToken } from './oidc.ts';
import { countsAsExecution, previousOf, statusOf, type Outcome } from './outcome.ts';
import type { AppEngineTarget, Target } from './target.ts';
import type { AttemptRecord, Task } from './task.ts';

/** The base URL of the App Engine service that the routing names; undefined when there is none. */
export type AppEngineLocator = (
  routing: Readonly<{ service?: string; version?: string; instance?: string }>,
) => string | undefined;

export type AttemptPorts = Readonly<{
  sender: HttpSender;
  /** Sends them with the faults that are asked for. */
  requests?: Outgoing<Outcome>;
  appEngine: AppEngineLocator | undefined;
  /** Signs the tokens of tasks that ask for one. */
  identity: Identity | undefined;
  /** The attempts that have no outcome yet, those of deleted queues and tasks among them. */
  onWire: Set<AttemptRecord>;
}>;

/** Counts the dispatch and sends it. `done` is called later, or never when the sender is closed first. */
export function startAttempt(
  ports: AttemptPorts,
  task: Task,
  queueName: string,
  now: number,
  done: (outcome: Outcome, record: AttemptRecord) => void,
): void {
  const record: AttemptRecord = { scheduleMicros: task.scheduleMicros, dispatchMs: now };
  const headers = attemptHeaders({
    kind: task.target.kind,
    queueId: lastSegment(queueName),
    taskId: task.id,
    retryCount: task.dispatches,
    executionCount: task.executions,
    scheduleMicros: task.scheduleMicros,
    previous: task.previous,
  });
  task.dispatches += 1;
  task.inFlight += 1;
  task.first ??= record;
  task.last = record;
  ports.onWire.add(record);
  const settled = (outcome: Outcome): void => {
    ports.onWire.delete(record);
    done(outcome, record);
  };
  const url = locate(task.target, ports.appEngine);
  if (typeof url !== 'string') {
    queueMicrotask(() => settled({ kind: 'unreachable', error: url.error }));
    return;
  }
  const { method, body } = task.target;
  const all = { ...ownHeaders(task.target, ports.identity), ...headers };
  const request = { url, method, body, headers: all, deadlineMs: task.deadlineMs };
  const send = (answered: (outcome: Outcome) => void) => {
    ports.sender.send(request, answered);
    // What is on the wire ends with the sender alone.
    return () => {};
  };
  if (ports.requests === undefined) send(settled);
  else ports.requests.send(queueName, send, settled);
}

function ownHeaders(target: Target, identity: Identity | undefined): Headers {
  if (target.kind !== 'http' || target.oidc === undefined || identity === undefined) return target.headers;
  return withToken(target.headers, target.oidc, target.url, identity);
}

function locate(target: Target, appEngine: AppEngineLocator | undefined): string | { error: string } {
  if (target.kind === 'http') return target.url;
  const named = JSON.stringify(target.routing);
  try {
    const base = appEngine?.(givenRouting(target));
    // Joined as text: resolving a URI like //host/path against the base would leave the application.
    if (base !== undefined) return `${base.replace(/\/+$/, '')}${target.relativeUri}`;
    return { error: `no App Engine service runs for the routing ${named}` };
  } catch (error) {
    return { error: `the App Engine service for the routing ${named} was not found: ${String(error)}` };
  }
}

function givenRouting({ routing }: AppEngineTarget): {
  service?: string;
  version?: string;
  instance?: string;
} {
  return Object.fromEntries(Object.entries(routing).filter(([, value]) => value !== ''));
}

/** Writes the outcome into the task. */
export function recordOutcome(task: Task, record: AttemptRecord, outcome: Outcome, now: number): void {
  const { kind } = task.target;
  task.inFlight -= 1;
  if (outcome.kind === 'response') task.responses += 1;
  if (countsAsExecution(kind, outcome)) task.executions += 1;
  task.previous = previousOf(kind, outcome);
  record.responseMs = now;
  record.status = statusOf(outcome);
}
