/**
 * How plain functions become gRPC methods: a returned value is the answer, a thrown StatusError the status.
 */
import { status, type sendUnaryData, type ServerUnaryCall, type UntypedHandleCall } from '@grpc/grpc-js';
import { StatusError } from '../grpc-server.ts';

export type Log = (line: string) => void;

export function unary<Request, Response>(
  log: Log,
  answer: (request: Request, call: ServerUnaryCall<Request, Response>) => Response | Promise<Response>,
): UntypedHandleCall {
  const handle = async (
    call: ServerUnaryCall<Request, Response>,
    callback: sendUnaryData<Response>,
  ): Promise<void> => {
    try {
      callback(null, await answer(call.request, call));
    } catch (error) {
      callback(asStatus(error, call.getPath(), log));
    }
  };
  return (call: ServerUnaryCall<Request, Response>, callback: sendUnaryData<Response>) => {
    void handle(call, callback);
  };
}

function asStatus(error: unknown, path: string, log: Log): StatusError {
  if (error instanceof StatusError) return error;
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  log(`${path} failed: ${text}`);
  return new StatusError(status.INTERNAL, error instanceof Error ? error.message : text);
}
