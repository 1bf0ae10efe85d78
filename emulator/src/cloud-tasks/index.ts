/**
 * Cloud Tasks on the loopback interface, for Google's own clients: queues and tasks over gRPC, dispatched to HTTP and
 * App Engine targets with the service's headers, limits, retries and remembered names. Everything is in memory.
 *
 * Refused with UNIMPLEMENTED: the IAM methods, OAuth tokens, queue filters, queue logging, updates of
 * a queue beyond its rate limits and retries.
 * Not modelled: the throttling that the service adds by itself under load or errors, and eventual consistency.
 */
import { systemClock, type Clock } from '../clock.ts';
import { serve, type RunningServer } from '../grpc-server.ts';
import type { Identity } from '../identity.ts';
import type { AppEngineLocator } from './attempt.ts';
import { grpcService, inProcess } from './grpc-service.ts';
import { createHttpSender } from './http-sender.ts';
import { cloudTasksDefinition } from './protos.ts';
import { queueMethods } from './queue-methods.ts';
import { createQueue, type Queue, type QueueStats } from './queue.ts';
import { createRememberedNames } from './remembered-names.ts';
import { cloudTasksRest, type RestHandler } from './rest.ts';
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
   * real time the two pass a deadline together. While it stands still, or is moved, a target that hangs still comes to
   * an end, so that whoever waits for `inFlight` to be 0 does not wait for ever. A test that wants deadlines to pass
   * without waiting gives a clock of its own here.
   */
  deadlineClock?: Clock;
  /** Signs the OIDC tokens that tasks ask for. Without it such tasks are refused with UNIMPLEMENTED. */
  identity?: Identity;
  /** The base URL of an App Engine service. Without it tasks with an App Engine target are refused. */
  appEngine?: AppEngineLocator;
  /** Receives a line for each failed attempt and each task that is given up. */
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

type CloudTasksStats = QueueStats & Readonly<{ queues: number }>;

export type RunningCloudTasks = RunningServer &
  Readonly<{
    /**
     * Over all queues that exist; `inFlight` counts the requests on the wire of deleted ones too. Nothing happens until
     * the clock reaches `nextDueMs` when `inFlight` is 0, and nothing at all any more when that is undefined as well.
     */
    stats(): CloudTasksStats;
    /** The REST form of the same methods, to be mounted on an HTTP server. */
    rest: RestHandler;
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
  const sender = createHttpSender(options.deadlineClock ?? systemClock());
  const queues = new Map<string, Queue>();
  const onWire = new Set<AttemptRecord>();
  const { appEngine, identity } = options;
  const ports = { clock, log, sender, appEngine, identity, onWire };
  const methods = {
    ...queueMethods({
      queues,
      deletedNames: createRememberedNames(clock, queueNamesMs),
      open: (config) => createQueue(ports, config, taskNamesMs),
    }),
    ...taskMethods({
      clock,
      queues,
      appEngine: appEngine !== undefined,
      oidcTokens: identity !== undefined,
      maxTaskBytes,
      sizeOf: (task) => definition.CreateTask?.responseSerialize(task).length ?? 0,
    }),
  };
  const server = await serve(port, [grpcService(definition, methods, log)]);

  return {
    ...server,
    async close() {
      for (const queue of queues.values()) queue.close();
      sender.close();
      onWire.clear();
      await server.close();
    },
    stats: () => ({ ...sumOf([...queues.values()]), inFlight: onWire.size }),
    rest: cloudTasksRest(definition, inProcess(definition, methods, log)),
  };
}

function inRange(name: string, value: number, min: number, max: number): number {
  if (value >= min && value <= max) return value;
  throw new RangeError(`${name} is ${value}: accepted are ${min} to ${max}`);
}

function sumOf(queues: readonly Queue[]): CloudTasksStats {
  const all = queues.map((queue) => queue.stats());
  const sum = (pick: (stats: QueueStats) => number): number =>
    all.reduce((total, stats) => total + pick(stats), 0);
  const due = all.flatMap(({ nextDueMs }) => nextDueMs ?? []);
  return {
    queues: queues.length,
    pending: sum((stats) => stats.pending),
    inFlight: sum((stats) => stats.inFlight),
    dispatched: sum((stats) => stats.dispatched),
    succeeded: sum((stats) => stats.succeeded),
    givenUp: sum((stats) => stats.givenUp),
    nextDueMs: due.length > 0 ? Math.min(...due) : undefined,
  };
}
