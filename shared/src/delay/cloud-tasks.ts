/**
 * The task queue port over Cloud Tasks: App Engine targets, or HTTP targets with an OIDC token. There is no target
 * without a proof of who calls.
 *
 * A call is made once and bounded in time; repeating it is left to whoever delivers the message again, because a
 * task's name makes the repeat harmless.
 */
import { CloudTasksClient } from '@google-cloud/tasks';
import { credentials } from '@grpc/grpc-js';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { ConfigError, PermanentError, textOf, TransientError } from '../errors.ts';
import type { Task, TaskQueue } from './task-queue.ts';
import { within } from './within.ts';

export type TaskTarget =
  /** The republisher as a service of the queue's own App Engine application. Default: the default service. */
  | Readonly<{ appEngine: Readonly<{ service?: string }> }>
  /**
   * The republisher anywhere else. A URL without a path gets `/republish`. The token is made for `serviceAccount`
   * (an e-mail address) and `audience` (default: `url` as it stands here, letter for letter).
   */
  | Readonly<{ url: string; serviceAccount: string; audience?: string }>;

export type CloudTasksOptions = Readonly<{
  /** `projects/…/locations/…/queues/…` */
  queue: string;
  target: TaskTarget;
  /** For one call. Default 10 s, well under the ack deadline of a push subscription. */
  timeout?: Duration;
  clock?: Clock;
}>;

const PATH = '/republish';
const HEADERS = { 'Content-Type': 'application/octet-stream' };
/** Tags, lengths and times of the stored form: a generous guess. */
const FRAME_BYTES = 256;
const NAME_BYTES = 43;

/** Throws ConfigError for a queue that is not a full name or a target that nothing could be sent to. */
export function cloudTasksQueue(client: CloudTasksClient, options: CloudTasksOptions): TaskQueue {
  const { queue, target, timeout = '10s', clock = systemClock() } = options;
  const timeoutMs = toMilliseconds(timeout, 'timeout');
  if (!/^projects\/[^/\s]+\/locations\/[^/\s]+\/queues\/[^/\s]+$/.test(queue)) {
    throw new ConfigError(
      'INVALID_QUEUE',
      `queue is ${JSON.stringify(queue)}; accepted: projects/PROJECT/locations/LOCATION/queues/QUEUE`,
    );
  }
  const requestWith = requestFor(target);
  return {
    overheadBytes:
      `${queue}/tasks/`.length +
      NAME_BYTES +
      FRAME_BYTES +
      Buffer.byteLength(JSON.stringify(requestWith(''))),
    async create({ name, scheduleTimeMs, body }: Task) {
      const task = {
        name: `${queue}/tasks/${name}`,
        scheduleTime: timestampOf(scheduleTimeMs),
        ...requestWith(body),
      };
      try {
        // The client's own time limit does not cover its search for credentials, so the call has one of ours as well.
        const call = client.createTask({ parent: queue, task }, { timeout: timeoutMs });
        await within(clock, timeoutMs, `createTask in ${queue}`, call);
        return 'created';
      } catch (error) {
        if (codeIn(error) === ALREADY_EXISTS) return 'exists';
        throw translate(error, queue);
      }
    },
  };
}

/**
 * A client for production, or for a local server of Cloud Tasks at `emulatorHost` (`127.0.0.1:8123`), for which no
 * credentials are looked up. Google's client knows no emulator variable. Whoever makes it closes it.
 */
export function cloudTasksClient(
  options: Readonly<{ projectId?: string; emulatorHost?: string }> = {},
): CloudTasksClient {
  const { emulatorHost, ...project } = options;
  if (emulatorHost === undefined) return new CloudTasksClient(project);
  const match = /^(\[[0-9a-fA-F:]+\]|[^:/\s]+):([0-9]{1,5})$/.exec(emulatorHost);
  const [apiEndpoint, port] = [match?.[1], Number(match?.[2])];
  if (apiEndpoint === undefined || port < 1 || port > 65_535) {
    throw new ConfigError(
      'INVALID_EMULATOR_HOST',
      `the host of the Cloud Tasks emulator is ${JSON.stringify(emulatorHost)}; accepted: HOST:PORT, for example 127.0.0.1:8123`,
    );
  }
  return new CloudTasksClient({ ...project, apiEndpoint, port, sslCreds: credentials.createInsecure() });
}

/** Whole seconds and nanoseconds, rounded up to the millisecond: never earlier than what was asked. */
export function timestampOf(milliseconds: number): { seconds: number; nanos: number } {
  const whole = Math.ceil(milliseconds);
  const seconds = Math.floor(whole / 1_000);
  return { seconds, nanos: (whole - seconds * 1_000) * 1_000_000 };
}

function requestFor(target: TaskTarget): (body: Uint8Array | string) => object {
  const common = { httpMethod: 'POST', headers: HEADERS } as const;
  if ('appEngine' in target) {
    const { service } = target.appEngine;
    const appEngineRouting = service === undefined ? {} : { service };
    return (body) => ({
      appEngineHttpRequest: { ...common, relativeUri: PATH, appEngineRouting, body },
    });
  }
  const url = urlOf(target.url);
  if (!/^[^@\s]+@[^@\s]+$/.test(target.serviceAccount)) {
    throw new ConfigError(
      'INVALID_SERVICE_ACCOUNT',
      `serviceAccount is ${JSON.stringify(target.serviceAccount)}; accepted: the e-mail address of a service account`,
    );
  }
  const oidcToken = { serviceAccountEmail: target.serviceAccount, audience: target.audience ?? target.url };
  return (body) => ({ httpRequest: { ...common, url, oidcToken, body } });
}

function urlOf(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new ConfigError(
      'INVALID_URL',
      `the republisher's URL is ${JSON.stringify(text)}; accepted: an http or https URL`,
    );
  }
  if (url.pathname === '/') url.pathname = PATH;
  return url.href;
}

/** https://grpc.io/docs/guides/status-codes/ */
const ALREADY_EXISTS = 6;

/** What a refusal means for the message. A code that is not here is transient: nothing is given up by mistake. */
const REFUSALS: ReadonlyMap<number, readonly ['permanent' | 'transient', code: string, text: string]> =
  new Map([
    // The task itself: too large, or a form that the service never takes.
    [3, ['permanent', 'TASK_REFUSED', 'does not take this task']],
    [11, ['permanent', 'TASK_REFUSED', 'does not take this task']],
    // The deployment: somebody mends it, and the messages must still be there then.
    [5, ['transient', 'TASK_QUEUE_MISSING', 'does not exist, or was created a moment ago']],
    [
      7,
      [
        'transient',
        'TASK_QUEUE_FORBIDDEN',
        'may not be used by this service account (cloudtasks.enqueuer, and actAs for a token)',
      ],
    ],
    [
      9,
      [
        'transient',
        'TASK_QUEUE_NOT_READY',
        'cannot take tasks: disabled, or without an App Engine application',
      ],
    ],
    [12, ['transient', 'TASK_QUEUE_NOT_READY', 'is not served at this address']],
    [16, ['transient', 'TASK_QUEUE_FORBIDDEN', 'was called without valid credentials']],
    // The moment: load, a restart, a reply that was lost (the task may be stored).
    [4, ['transient', 'TASK_QUEUE_UNAVAILABLE', 'did not answer in time']],
    [8, ['transient', 'TASK_QUEUE_UNAVAILABLE', 'is over its rate or quota']],
    [14, ['transient', 'TASK_QUEUE_UNAVAILABLE', 'is not reachable']],
  ]);

function translate(error: unknown, queue: string): PermanentError | TransientError {
  if (error instanceof TransientError) return error;
  const known = REFUSALS.get(codeIn(error) ?? -1);
  const [kind, code, what] = known ?? ['transient', 'TASK_QUEUE_UNAVAILABLE', 'failed'];
  const text = `${queue} ${what}: ${textOf(error)}`;
  return kind === 'permanent'
    ? new PermanentError(code, text, { cause: error })
    : new TransientError(code, text, { cause: error });
}

function codeIn(error: unknown): number | undefined {
  const code = (error as Readonly<{ code?: unknown }> | null)?.code;
  return typeof code === 'number' ? code : undefined;
}
