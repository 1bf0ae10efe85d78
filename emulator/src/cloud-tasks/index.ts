/**
 * Cloud Tasks on the loopback interface, for Google's own clients: queues and tasks over gRPC, dispatched to HTTP and
 * App Engine targets with the service's headers, limits, retries and remembered names. Everything is in memory.
 *
 * Refused with UNIMPLEMENTED: locations, OAuth tokens, queue logging, alternatives in queue filters.
 * Not modelled: the throttling that the service adds by itself under load or errors (a target's Retry-After is heeded),
 * eventual consistency, and quotas that a project can have raised (queues per region, requests per minute).
 */
import { systemClock, type Clock } from '../clock.ts';
import type { Faults } from '../faults/faults.ts';
import { inProcessFaults } from '../faults/in-process.ts';
import { outgoing } from '../faults/outgoing.ts';
import { restartable } from '../faults/restart.ts';
import { rpcFaults } from '../faults/rpc.ts';
import { serve, type RunningServer } from '../grpc-server.ts';
import { type CallerNow, iamMethods, type IamPorts } from '../iam/methods.ts';
import { createPolicies } from '../iam/policies.ts';
import type { Identity } from '../identity.ts';
import { countUnimplemented } from '../unimplemented.ts';
import type { AppEngineLocator } from './attempt.ts';
import { grpcService, inProcess } from './grpc-service.ts';
import { createHttpSender } from './http-sender.ts';
import type { Outcome } from './outcome.ts';
import { cloudTasksDefinition } from './protos.ts';
import { checkedMethods } from './permissions.ts';
import { findQueue, queueMethods } from './queue-methods.ts';
import type { QueueConfig } from './queue-config.ts';
import { type CloudTasksStats, sumOf } from './queue-stats.ts';
import { createQueue, type Queue, type QueuePast } from './queue.ts';
import { createRememberedNames } from './remembered-names.ts';
import { cloudTasksRest, type RestHandler } from './rest.ts';
import { savedTasks } from './saved.ts';
import { taskMethods } from './task-methods.ts';
import type { AttemptRecord } from './task.ts';

const HOUR_MS = 3_600_000;

export type CloudTasksOptions = Readonly<{
  /** Default 0: any free port. */
  port?: number;
  /** Schedule times, backoffs, rate limits, remembered names. It may be moved. */
  clock: Clock;
  /**
   * What the dispatch deadlines of requests on the wire are measured by. Default: real time, and not `clock`. The
   * target is a process that works in real time: moving `clock` gives it no time to answer, so that a jump of an hour
   * would end every request that happens to be open, and tasks would run twice for no reason. While `clock` runs in
   * real time the two pass a deadline together. While it is frozen, or moved, a request to a target that hangs still
   * ends, so that a test that waits for `inFlight` to be 0 does not wait for ever. A test that wants deadlines to pass
   * without waiting gives a clock of its own here.
   */
  deadlineClock?: Clock;
  /** Signs the OIDC tokens that tasks ask for. Without it such tasks are refused with UNIMPLEMENTED. */
  identity?: Identity;
  /** The base URL of an App Engine service. Without it tasks with an App Engine target are refused. */
  appEngine?: AppEngineLocator;
  /** What goes wrong on request. */
  faults?: Faults;
  /** By whose rights all calls are judged: as for Pub/Sub. */
  caller?: CallerNow;
  /** Tasks also go to addresses that are not this machine's own. Default: false, and such an attempt fails. */
  remoteTargets?: boolean;
  /** Receives a line for each failed attempt and each task that is deleted without success. */
  log?: (line: string) => void;
  /**
   * Largest task in bytes of its stored protobuf. Default 1,048,569, measured on the service by a published probe of
   * August 2026 for both kinds of target; the API reference says 100 KB, other pages 1 MB, so it is a setting.
   */
  maxTaskBytes?: number;
  /**
   * How long the name of a task that is done or deleted cannot be used again: 0 to 4 hours, in milliseconds.
   * Default one hour (API reference, CreateTaskRequest.task: "~1hour"); other pages of Google's say up to four.
   */
  rememberTaskNamesForMs?: number;
  /** The same for a deleted queue. Default 7 days (API reference, DeleteQueue). */
  rememberQueueNamesForMs?: number;
}>;

export type RunningCloudTasks = RunningServer &
  Readonly<{
    /**
     * Over all queues that exist; `inFlight` counts the requests on the wire of deleted ones too. Nothing happens until
     * the clock reaches `nextDueMs` when `inFlight` is 0, and nothing at all any more when that is undefined as well.
     */
    stats(): CloudTasksStats;
    /** `stats().inFlight` alone, for callers that ask at every turn of the event loop. */
    inFlight(): number;
    /** The REST form of the same methods, to be mounted on an HTTP server. */
    rest: RestHandler;
    /** Everything that it holds as plain JSON data; the form is described in saved.ts. */
    save(): object;
    /**
     * Replaces everything that it holds, at once; `{}` is an empty server. Dispatches in flight are dropped. Throws an
     * error of one line that names the place, and then nothing has changed.
     */
    load(saved: unknown): void;
    /** `load` in two steps: reads it, or throws so; what it gives puts it in place, and does not fail. */
    prepare(saved: unknown): () => void;
  }>;

/**
 * Throws a RangeError for an option out of its range, and an error that names the port when it is taken.
 * `close` stops all timers, aborts dispatches in flight and resolves when the port is free.
 */
export async function startCloudTasks(options: CloudTasksOptions): Promise<RunningCloudTasks> {
  const { clock, port = 0, log = () => undefined } = options;
  const maxTaskBytes = inRange('maxTaskBytes', options.maxTaskBytes ?? 1_048_569, 1, 2 ** 25);
  const taskNamesMs = inRange(
    'rememberTaskNamesForMs',
    options.rememberTaskNamesForMs ?? HOUR_MS,
    0,
    4 * HOUR_MS,
  );
  const queueNamesMs = inRange(
    'rememberQueueNamesForMs',
    options.rememberQueueNamesForMs ?? 168 * HOUR_MS,
    0,
    168 * HOUR_MS,
  );

  const definition = cloudTasksDefinition();
  const sender = createHttpSender(options.deadlineClock ?? systemClock(), options.remoteTargets);
  const queues = new Map<string, Queue>();
  const onWire = new Set<AttemptRecord>();
  const { appEngine, identity, faults } = options;
  const missing = countUnimplemented();
  const requests = outgoing<Outcome>({
    faults,
    clock,
    service: 'tasks',
    method: 'dispatch',
    answered: (status) => ({ kind: 'response', status }),
    broken: (error) => ({ kind: 'unreachable', error }),
  });
  const ports = { clock, log, sender, requests, appEngine, identity, onWire };
  const deletedNames = createRememberedNames(clock, queueNamesMs);
  const open = (config: QueueConfig, past?: QueuePast): Queue =>
    createQueue(ports, config, createRememberedNames(clock, taskNamesMs), past);
  let sequence = 0;
  const nextSequence = (): number => ++sequence;
  const rules = { appEngine: appEngine !== undefined, oidcTokens: identity !== undefined };
  const dropRequests = (): void => {
    requests.close();
    sender.close();
    onWire.clear();
  };
  const policies = createPolicies(clock.now);
  const state = savedTasks({
    clock,
    queues,
    deletedNames,
    policies,
    open,
    nextSequence,
    rules,
    dropRequests,
  });
  const iam: IamPorts = {
    policies,
    resource: (name) => ({ collection: 'queues', holder: findQueue(queues, name) }),
    caller: options.caller ?? (() => undefined),
  };
  const methods = checkedMethods(iam, {
    ...queueMethods({ clock, queues, deletedNames, open }),
    ...taskMethods({
      clock,
      queues,
      ...rules,
      maxTaskBytes,
      nextSequence,
      sizeOf: (task) => definition.CreateTask?.responseSerialize(task).length ?? 0,
    }),
    ...iamMethods(iam),
  });
  const server = await serve(port, [grpcService(definition, methods, log)], {
    missing,
    ...(faults && { intercept: rpcFaults(faults, 'tasks') }),
  });
  const call = inProcessFaults(faults, 'tasks', server.isDown, inProcess(definition, methods, log));

  const inFlight = (): number => onWire.size + requests.beyond();
  const restarts = restartable(faults, 'tasks', clock, server, state, log);
  return {
    ...server,
    save: restarts.save,
    load: restarts.load,
    prepare: restarts.prepare,
    async close() {
      restarts.detach();
      for (const queue of queues.values()) queue.close();
      dropRequests();
      await server.close();
    },
    stats: () => ({ ...sumOf([...queues.values()]), inFlight: inFlight() }),
    inFlight,
    rest: cloudTasksRest(definition, call, missing),
  };
}

function inRange(name: string, value: number, min: number, max: number): number {
  if (value >= min && value <= max) return value;
  throw new RangeError(`${name} is ${value}: accepted are ${min} to ${max}`);
}
