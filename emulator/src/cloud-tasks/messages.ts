/**
 * The messages of google.cloud.tasks.v2 as @grpc/proto-loader hands them over, as far as they are read here,
 * and the conversions of their times. Absent messages are null or undefined; 64-bit numbers are strings.
 */
import { invalidArgument } from '../grpc-server.ts';
import type { Duration, Timestamp } from '../json-times.ts';

type Maybe<T> = T | null | undefined;

export type Routing = Readonly<{ service: string; version: string; instance: string }>;

export type HttpRequestMessage = Readonly<{
  url: string;
  httpMethod: string;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  authorizationHeader?: string;
  oidcToken?: Maybe<Readonly<{ serviceAccountEmail: string; audience: string }>>;
}>;

export type AppEngineRequestMessage = Readonly<{
  httpMethod: string;
  appEngineRouting: Maybe<Routing>;
  relativeUri: string;
  headers: Readonly<Record<string, string>>;
  body: Buffer;
}>;

export type TaskMessage = Readonly<{
  name: string;
  httpRequest?: Maybe<HttpRequestMessage>;
  appEngineHttpRequest?: Maybe<AppEngineRequestMessage>;
  scheduleTime: Maybe<Timestamp>;
  dispatchDeadline: Maybe<Duration>;
}>;

export type QueueMessage = Readonly<{
  name: string;
  appEngineRoutingOverride: Maybe<Routing>;
  rateLimits: Maybe<Readonly<{ maxDispatchesPerSecond: number; maxConcurrentDispatches: number }>>;
  retryConfig: Maybe<
    Readonly<{
      maxAttempts: number;
      maxRetryDuration: Maybe<Duration>;
      minBackoff: Maybe<Duration>;
      maxBackoff: Maybe<Duration>;
      maxDoublings: number;
    }>
  >;
  stackdriverLoggingConfig: Maybe<Readonly<{ samplingRatio: number }>>;
}>;

export type ByName = Readonly<{ name: string }>;
export type ViewOfName = Readonly<{ name: string; responseView: string }>;
export type CreateQueueRequest = Readonly<{ parent: string; queue: Maybe<QueueMessage> }>;
/** Paths are in snake case, as in `rate_limits.max_dispatches_per_second`. */
export type UpdateQueueRequest = Readonly<{
  queue: Maybe<QueueMessage>;
  updateMask: Maybe<Readonly<{ paths: readonly string[] }>>;
}>;
export type CreateTaskRequest = Readonly<{ parent: string; task: Maybe<TaskMessage>; responseView: string }>;
export type ListQueuesRequest = Readonly<{
  parent: string;
  filter: string;
  pageSize: number;
  pageToken: string;
}>;
export type ListTasksRequest = Readonly<{
  parent: string;
  responseView: string;
  pageSize: number;
  pageToken: string;
}>;

/** The range of google.protobuf.Timestamp: years 1 to 9999. */
const MIN_SECONDS = -62_135_596_800;
const MAX_SECONDS = 253_402_300_799;

/** Whole seconds and nanoseconds since the epoch. Throws INVALID_ARGUMENT outside the range of the type. */
export function checkedTimestamp(time: Timestamp, field: string): { seconds: number; nanos: number } {
  const seconds = Number(time.seconds);
  const inRange = seconds >= MIN_SECONDS && seconds <= MAX_SECONDS && time.nanos >= 0 && time.nanos < 1e9;
  if (inRange) return { seconds, nanos: time.nanos };
  throw invalidArgument(
    `${field} (seconds ${time.seconds}, nanos ${time.nanos}) is not a valid Timestamp: accepted are the years 1 to 9999 and 0 to 999999999 nanos.`,
  );
}

/** Milliseconds, with a fraction below one. Throws INVALID_ARGUMENT when negative or malformed. */
export function checkedDuration(duration: Duration, field: string): number {
  const seconds = Number(duration.seconds);
  const valid = seconds >= 0 && seconds <= 315_576_000_000 && duration.nanos >= 0 && duration.nanos < 1e9;
  if (valid) return seconds * 1000 + duration.nanos / 1e6;
  throw invalidArgument(
    `${field} (seconds ${duration.seconds}, nanos ${duration.nanos}) is not a valid Duration of zero or more.`,
  );
}

export const timestampOfMicros = (micros: number): Timestamp => ({
  seconds: String(Math.floor(micros / 1e6)),
  nanos: (micros % 1e6) * 1000,
});

export const timestampOfMs = (ms: number): Timestamp => timestampOfMicros(Math.floor(ms * 1000));

export const durationOfMs = (ms: number): Duration => ({
  seconds: String(Math.floor(ms / 1000)),
  nanos: Math.round((ms % 1000) * 1e6),
});
