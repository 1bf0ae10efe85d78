/**
 * Counts the calls that were answered UNIMPLEMENTED, by the full name of their method: methods and whole services that
 * a server does not have, and options that it refuses. So a user sees what was missed.
 */
import {
  type MethodDefinition,
  type sendUnaryData,
  type ServerErrorResponse,
  type ServerUnaryCall,
  type ServerWritableStream,
  status,
  type UntypedHandleCall,
} from '@grpc/grpc-js';

export type Unimplemented = Readonly<{
  /** `method` as in `google.pubsub.v1.Publisher/CreateTopic`. */
  count(method: string): void;
  /** The same, for a handler of the method at `path`. */
  watched(
    path: string,
    definition: MethodDefinition<unknown, unknown>,
    handler: UntypedHandleCall,
  ): UntypedHandleCall;
  counts(): Readonly<Record<string, number>>;
}>;

/** Names come from outside: what exceeds this many is counted together. */
const MAX_NAMES = 1_000;
const OTHERS = 'others';

export function countUnimplemented(): Unimplemented {
  const counts = new Map<string, number>();
  const count = (method: string): void => {
    const name = counts.size < MAX_NAMES || counts.has(method) ? method : OTHERS;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  };
  const look = (path: string, error: Partial<ServerErrorResponse> | null): void => {
    if (error?.code === status.UNIMPLEMENTED) count(methodOf(path));
  };
  return {
    count,
    watched(path, { requestStream, responseStream }, handler) {
      if (requestStream || responseStream) {
        const stream = handler as (call: ServerWritableStream<unknown, unknown>) => void;
        return (call: ServerWritableStream<unknown, unknown>) => {
          call.once('error', (error) => look(path, error));
          stream(call);
        };
      }
      const unary = handler as (
        call: ServerUnaryCall<unknown, unknown>,
        callback: sendUnaryData<unknown>,
      ) => void;
      return (call: ServerUnaryCall<unknown, unknown>, callback: sendUnaryData<unknown>) =>
        unary(call, (error, value, trailer, flags) => {
          look(path, error);
          callback(error, value, trailer, flags);
        });
    },
    counts: () => Object.fromEntries(counts),
  };
}

/** The name of a method without the slash that begins its path. */
export const methodOf = (path: string): string => path.replace(/^\//, '');
