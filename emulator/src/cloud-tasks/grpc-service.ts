/**
 * Puts plain methods behind gRPC: a thrown StatusError is the answer, anything else is INTERNAL and logged. A request
 * to create something that holds fields unknown to this server is refused before its method sees it.
 */
import {
  status,
  type handleUnaryCall,
  type MethodDefinition,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { StatusError, unimplemented } from '../grpc-server.ts';
import { CREATE_QUEUE_FIELDS, CREATE_TASK_FIELDS, unknownField } from './unknown-fields.ts';

type Method = (request: never) => object;

const CHECKED = { CreateQueue: CREATE_QUEUE_FIELDS, CreateTask: CREATE_TASK_FIELDS } as const;

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
      reply = method(call.request as never);
    } catch (error) {
      if (!(error instanceof StatusError)) log(`${name} failed: ${String(error)}`);
      const refusal = error instanceof StatusError ? error : new StatusError(status.INTERNAL, String(error));
      callback({ code: refusal.code, details: refusal.details });
      return;
    }
    callback(null, reply);
  };
}
