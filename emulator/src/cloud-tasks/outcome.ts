/**
 * What the outcome of an attempt means for the task: the counters and reasons as recorded from the service. Pure.
 */
import { status } from '@grpc/grpc-js';
import type { TargetKind } from './headers.ts';

export type Outcome =
  | Readonly<{
      kind: 'response';
      status: number;
      /** The header of this name. */
      retryAfter?: string | undefined;
    }>
  | Readonly<{ kind: 'timeout' }>
  | Readonly<{ kind: 'unreachable'; error: string }>;

/** Any 2xx is success; everything else is a failure, redirects included (they are not followed). */
export const isSuccess = (outcome: Outcome): boolean =>
  outcome.kind === 'response' && outcome.status >= 200 && outcome.status <= 299;

/** Whether the attempt counts in ExecutionCount. HTTP targets: a 5xx does not. App Engine: every answer does. */
export function countsAsExecution(kind: TargetKind, outcome: Outcome): boolean {
  return outcome.kind === 'response' && (kind === 'appEngine' || outcome.status < 500);
}

/**
 * The PreviousResponse and RetryReason of the next attempt. A timeout is recorded; for a target that cannot be reached
 * no recording is known: App Engine is taken like its timeout, HTTP as 503, the code of UNAVAILABLE.
 */
export function previousOf(kind: TargetKind, outcome: Outcome): { response: number; reason: string } {
  if (outcome.kind === 'response') {
    return { response: outcome.status, reason: kind === 'appEngine' ? 'App Error' : '' };
  }
  if (kind === 'appEngine') return { response: 0, reason: 'Instance Unavailable' };
  return { response: outcome.kind === 'timeout' ? 504 : 503, reason: '' };
}

/**
 * Until when the target wants to be left alone, in milliseconds since the epoch; undefined when it says nothing of it.
 * "If the worker returns 429 or 503 … the retry specified in the Retry-After HTTP response header is considered" (API
 * reference, HttpRequest). An App Engine target has no such say there. Seconds or an HTTP date (RFC 9110, 10.2.3).
 */
export function retryAfterMs(kind: TargetKind, outcome: Outcome, now: number): number | undefined {
  if (kind !== 'http' || outcome.kind !== 'response') return undefined;
  const { retryAfter } = outcome;
  if (retryAfter === undefined || (outcome.status !== 429 && outcome.status !== 503)) return undefined;
  const at = /^\d+$/.test(retryAfter) ? now + Number(retryAfter) * 1_000 : Date.parse(retryAfter);
  return Number.isNaN(at) ? undefined : at;
}

/** HTTP statuses that google.rpc.Code names; any other failure is UNKNOWN. */
const CODE_OF_STATUS: Readonly<Record<number, number>> = {
  400: status.INVALID_ARGUMENT,
  401: status.UNAUTHENTICATED,
  403: status.PERMISSION_DENIED,
  404: status.NOT_FOUND,
  409: status.ABORTED,
  429: status.RESOURCE_EXHAUSTED,
  499: status.CANCELLED,
  500: status.INTERNAL,
  501: status.UNIMPLEMENTED,
  503: status.UNAVAILABLE,
  504: status.DEADLINE_EXCEEDED,
};

/** The google.rpc.Status of Attempt.response_status. */
export function statusOf(outcome: Outcome): { code: number; message: string } {
  if (outcome.kind === 'timeout') {
    return { code: status.DEADLINE_EXCEEDED, message: 'no response before the dispatch deadline' };
  }
  if (outcome.kind === 'unreachable') return { code: status.UNAVAILABLE, message: outcome.error };
  const code = isSuccess(outcome) ? status.OK : (CODE_OF_STATUS[outcome.status] ?? status.UNKNOWN);
  return { code, message: `HTTP status code ${outcome.status}` };
}

export function describeOutcome(outcome: Outcome): string {
  return statusOf(outcome).message;
}
