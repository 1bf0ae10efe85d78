/**
 * Errors in the REST form of Google's APIs: https://cloud.google.com/apis/design/errors#http_mapping
 */
import { status } from '@grpc/grpc-js';

export type RestAnswer = Readonly<{ status: number; body: unknown }>;

/** The HTTP statuses of https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto */
const HTTP_STATUS: Readonly<Record<number, number>> = {
  [status.CANCELLED]: 499,
  [status.INVALID_ARGUMENT]: 400,
  [status.FAILED_PRECONDITION]: 400,
  [status.OUT_OF_RANGE]: 400,
  [status.UNAUTHENTICATED]: 401,
  [status.PERMISSION_DENIED]: 403,
  [status.NOT_FOUND]: 404,
  [status.ALREADY_EXISTS]: 409,
  [status.ABORTED]: 409,
  [status.RESOURCE_EXHAUSTED]: 429,
  [status.UNIMPLEMENTED]: 501,
  [status.UNAVAILABLE]: 503,
  [status.DEADLINE_EXCEEDED]: 504,
};

/** What was thrown, as an answer: a status error by its code, anything else as INTERNAL. */
export function restError(error: unknown): RestAnswer {
  const {
    code = status.INTERNAL,
    details = String(error),
    restDetails,
  } = error as { code?: number; details?: string; restDetails?: readonly object[] };
  const http = HTTP_STATUS[code] ?? 500;
  return {
    status: http,
    body: {
      error: {
        code: http,
        message: details,
        status: status[code] ?? 'UNKNOWN',
        ...(restDetails && { details: restDetails }),
      },
    },
  };
}
