/**
 * Puts plain methods behind gRPC, or behind a function for callers in this process: a thrown StatusError is the answer, anything else is INTERNAL and logged. A request
 * to create something that holds fields unknown to this server is refused before its method sees it.
 */
import {
  status,
  type handleUnaryCall,
  type Metadata,
  type MethodDefinition,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { StatusError, unimplemented } from '../grpc-server.ts';
import {
  CREATE_QUEUE_FIELDS,
  CREATE_TASK_FIELDS,
  unknownField,
  UPDATE_QUEUE_FIELDS,
} from './unknown-fields.ts';

type Method = (request: never) => object;

const CHECKED = {
  CreateQueue: CREATE_QUEUE_FIELDS,
  CreateTask: CREATE_TASK_FIELDS,
  UpdateQueue: UPDATE_QUEUE_FIELDS,
} as const;

/** `methods` by their names in camel case. Methods that are missing are answered UNIMPLEMENTED. */
export function grpcService(
  definition: ServiceDefinition,
  methods: Readonly<Record<string, Method>>,
  log: (line: string) => void,
): readonly [ServiceDefinition, UntypedServiceImplementation] {
  const checked: Record<string, MethodDefinition<unknown, unknown>> = { ...definition };
  for (const [name, known] of Object.entries(CHECKED)) {
    const original = definition[name];
    if (original === undefined) throw new Error(`the service definition has no method ${name}`);
    checked[name] = {
      ...original,
      requestDeserialize(bytes: Buffer): unknown {
        const field = unknownField(bytes, known);
        // Thrown here it would reach the client as INTERNAL.
        return field === undefined ? original.requestDeserialize(bytes) : new UnknownField(name, field);
      },
    };
  }
  const calls = Object.entries(methods).map(([name, method]) => [name, unary(name, method, log)] as const);
  return [checked, Object.fromEntries(calls)];
}

/** A call by its RPC's name, as in `CreateTask`. Rejects with an error that has a gRPC status as its `code`. */
export type RpcCall = (rpc: string, request: object) => Promise<object>;

/**
 * The same methods without a connection. Request and reply go through their wire form all the same, so that defaults,
 * enums and numbers look to the methods, and to the caller, as they do over gRPC.
 */
export function inProcess(
  definition: ServiceDefinition,
  methods: Readonly<Record<string, Method>>,
  log: (line: string) => void,
): RpcCall {
  return async (rpc, request) => {
    const codec = definition[rpc];
    const name = codec?.originalName ?? '';
    const method = methods[name];
    if (codec === undefined || method === undefined) {
      throw unimplemented(`The server does not implement the method ${rpc}.`);
    }
    const reply = answer(name, method, codec.requestDeserialize(codec.requestSerialize(request)), log);
    return codec.responseDeserialize(codec.responseSerialize(reply)) as object;
  };
}

class UnknownField {
  readonly refusal: StatusError;
  constructor(method: string, field: string) {
    this.refusal = unimplemented(
      `${method}: the request has field ${field} (by number), which google.cloud.tasks.v2 has not in this server.`,
    );
  }
}

function unary(name: string, method: Method, log: (line: string) => void): handleUnaryCall<unknown, unknown> {
  return (call, callback) => {
    let reply: object;
    try {
      if (call.request instanceof UnknownField) throw call.request.refusal;
      reply = answer(name, method, call.request, log);
    } catch (error) {
      const { code, details, metadata } = error as StatusError & { metadata?: Metadata };
      callback({ code, details, ...(metadata && { metadata }) });
      return;
    }
    callback(null, reply);
  };
}

/** Throws nothing but a StatusError. */
function answer(name: string, method: Method, request: unknown, log: (line: string) => void): object {
  try {
    return method(request as never);
  } catch (error) {
    if (error instanceof StatusError) throw error;
    log(`${name} failed: ${String(error)}`);
    throw new StatusError(status.INTERNAL, String(error));
  }
}
