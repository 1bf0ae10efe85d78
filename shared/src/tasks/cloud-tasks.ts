/**
 * The task queue port over Cloud Tasks: App Engine targets, or HTTP targets with an OIDC token. No target
 * is called without a proof of the caller.
 *
 * A call is bounded in time. One that the service refuses for the moment (unavailable, over a rate) is made again with
 * growing pauses while the delivery has time; a task's name makes the repeat harmless.
 */
import { CloudTasksClient } from '@google-cloud/tasks';
import { credentials } from '@grpc/grpc-js';
import { type Clock, systemClock } from '../clock.ts';
import { type Duration, toMilliseconds } from '../duration.ts';
import { refused } from '../errors.ts';
import { guardedStart } from '../google-client.ts';
import { retryMomentary } from '../async/backoff.ts';
import { isAlreadyThere, isMomentary, translate } from './cloud-tasks-errors.ts';
import type { TaskQueue } from './task-queue.ts';
import { withTimeLimit, noAnswer } from '../async/time-limit.ts';
import {
  address,
  callable,
  type Check,
  checkOptions,
  clock as aClock,
  duration,
  durationFrom,
  hostAndPort,
  number,
  port,
  required,
  objectOf,
  text,
} from '../options.ts';

export type TaskTarget =
  /** The republisher as a service of the queue's own App Engine application. Default: the default service. */
  | Readonly<{ appEngine: Readonly<{ service?: string }> }>
  /**
   * The republisher anywhere else. A URL without a path gets `/republish`. The token is made for `serviceAccount`
   * (an e-mail address) and `audience` (default: `url` exactly as given here).
   */
  | Readonly<{ url: string; serviceAccount: string; audience?: string }>;

export type CloudTasksOptions = Readonly<{
  /** `projects/…/locations/…/queues/…` */
  queue: string;
  /** What the queue calls for a task. */
  target: TaskTarget;
  /**
   * Bound on one call (default `10s`, at least `1ms`): well under the ack deadline of a push subscription. Never
   * beyond the delivery.
   */
  callTimeout?: Duration;
  /**
   * How long a call that is refused for the moment is repeated (default `20s`). Never beyond the delivery; from `0s`:
   * not at all.
   */
  retryTimeout?: Duration;
  /** Default: the machine's. */
  clock?: Clock;
  /** Spreads the pauses; default Math.random. */
  random?: () => number;
}>;

const PATH = '/republish';
const HEADERS = { 'Content-Type': 'application/octet-stream' };
/** Tags, lengths and times of the stored form: a generous guess. */
const FRAME_BYTES = 256;
const NAME_BYTES = 43;
/** What is left of a delivery for its answer when a call has used up its time. */
const RESERVE_MS = 1_000;
/** A call that would be cut off sooner is hardly worth its beginning. */
const LEAST_CALL_MS = 500;

/** Clients of a local server, which calls `http` too. */
const localClients = new WeakSet<CloudTasksClient>();

/**
 * Throws ConfigError for a queue that is not a full name or a target that nothing could be sent to.
 *
 * @example
 * const queue = cloudTasksQueue(cloudTasksClient(), {
 *   queue: 'projects/shop/locations/europe-west1/queues/later',
 *   target: { url: 'https://republisher-x.a.run.app', serviceAccount: 'tasks@shop.iam.gserviceaccount.com' },
 * });
 */
export function cloudTasksQueue(client: CloudTasksClient, options: CloudTasksOptions): TaskQueue {
  port(['createTask'], 'a client of Cloud Tasks, for example cloudTasksClient()')('client', client);
  checkOptions<CloudTasksOptions>(options, {
    queue: required(queueName),
    target: required(taskTarget),
    callTimeout: durationFrom('1ms'),
    retryTimeout: duration,
    clock: aClock,
    random: callable,
  });
  const { queue, target, callTimeout = '10s', retryTimeout = '20s' } = options;
  const { clock = systemClock(), random = Math.random } = options;
  const callMs = toMilliseconds(callTimeout, 'callTimeout');
  const retryMs = toMilliseconds(retryTimeout, 'retryTimeout');
  const requestWith = requestFor(target, localClients.has(client));
  guardedStart(client);
  return {
    overheadBytes:
      `${queue}/tasks/`.length +
      NAME_BYTES +
      FRAME_BYTES +
      Buffer.byteLength(JSON.stringify(requestWith(''))),
    async create({ name, scheduleTimeMs, body }, { deadline = Infinity, signal } = {}) {
      const task = {
        name: `${queue}/tasks/${name}`,
        scheduleTime: timestampOf(scheduleTimeMs),
        ...requestWith(body),
      };
      const end = deadline - RESERVE_MS;
      const until = Math.min(clock.monotonic() + retryMs, end - LEAST_CALL_MS);
      try {
        await retryMomentary(clock, { until, signal, isMomentary, random }, () => {
          const limitMs = Math.min(callMs, Math.max(end - clock.monotonic(), LEAST_CALL_MS));
          // The client's own time limit does not cover its search for credentials, so the call has one of ours as well.
          const call = client.createTask({ parent: queue, task }, { timeout: limitMs });
          return withTimeLimit(
            clock,
            limitMs,
            () => call,
            () => noAnswer(`createTask in ${queue}`, limitMs),
          );
        });
        return 'created';
      } catch (error) {
        if (isAlreadyThere(error)) return 'exists';
        throw translate(error, queue);
      }
    },
  };
}

/**
 * A client for production, or for a local server of Cloud Tasks at `emulatorHost` (`127.0.0.1:8123`), for which no
 * credentials are looked up. Google's client knows no emulator variable. The caller that makes it closes it.
 *
 * @example
 * const client = cloudTasksClient({ emulatorHost: process.env['CLOUD_TASKS_EMULATOR_HOST'] });
 */
export function cloudTasksClient(
  options: Readonly<{ projectId?: string; emulatorHost?: string | undefined }> = {},
): CloudTasksClient {
  checkOptions<{ projectId: string; emulatorHost: string }>(options, {
    projectId: text,
    emulatorHost: address,
  });
  const { emulatorHost, ...project } = options;
  if (emulatorHost === undefined) return new CloudTasksClient(project);
  const { host, port } = hostAndPort('emulatorHost', emulatorHost);
  const client = new CloudTasksClient({
    ...project,
    apiEndpoint: host,
    port,
    sslCreds: credentials.createInsecure(),
  });
  localClients.add(client);
  return client;
}

/**
 * Whole seconds and nanoseconds, rounded up to the millisecond: never earlier than what was asked.
 *
 * @example
 * const { seconds, nanos } = timestampOf(1_500); // 1 and 500,000,000
 */
export function timestampOf(milliseconds: number): { seconds: number; nanos: number } {
  number('milliseconds', milliseconds);
  const whole = Math.ceil(milliseconds);
  const seconds = Math.floor(whole / 1_000);
  return { seconds, nanos: (whole - seconds * 1_000) * 1_000_000 };
}

const queueName: Check = (path, value) => {
  if (typeof value !== 'string' || !/^projects\/[^/\s]+\/locations\/[^/\s]+\/queues\/[^/\s]+$/.test(value))
    throw refused(path, value, 'projects/PROJECT/locations/LOCATION/queues/QUEUE');
};

const account: Check = (path, value) => {
  if (typeof value !== 'string' || !/^[^@\s]+@[^@\s]+$/.test(value))
    throw refused(path, value, 'the e-mail address of a service account');
};

const taskTarget: Check = (path, value) => {
  const isAppEngine = typeof value === 'object' && value !== null && 'appEngine' in value;
  if (!isAppEngine) {
    const own = { url: required(text), serviceAccount: required(account), audience: text };
    return checkOptions<{ url: string; serviceAccount: string; audience: string }>(value, own, path);
  }
  const service = objectOf<{ service: string }>({ service: text });
  checkOptions<{ appEngine: object }>(value, { appEngine: required(service) }, path);
};

function requestFor(target: TaskTarget, isLocal: boolean): (body: Uint8Array | string) => object {
  const common = { httpMethod: 'POST', headers: HEADERS } as const;
  if ('appEngine' in target) {
    const { service } = target.appEngine;
    const appEngineRouting = service === undefined ? {} : { service };
    return (body) => ({
      appEngineHttpRequest: { ...common, relativeUri: PATH, appEngineRouting, body },
    });
  }
  const url = urlOf(target.url, isLocal);
  const oidcToken = { serviceAccountEmail: target.serviceAccount, audience: target.audience ?? target.url };
  return (body) => ({ httpRequest: { ...common, url, oidcToken, body } });
}

/** The service sends a token, and so refuses each task for a URL without TLS: every delayed message would be a dead letter. */
function urlOf(text: string, isLocal: boolean): string {
  const url = URL.parse(text);
  const isCalled = url?.protocol === 'https:' || (isLocal && url?.protocol === 'http:');
  if (url === null || !isCalled) {
    throw refused(
      'target.url',
      text,
      'an https URL, or http with a client for a local server (emulatorHost)',
    );
  }
  if (url.pathname === '/') url.pathname = PATH;
  return url.href;
}
