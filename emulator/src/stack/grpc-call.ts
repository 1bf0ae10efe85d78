/**
 * Unary calls to the stack's own servers, without a vendor's client: a small client made from the service's own
 * definition.
 */
import {
  type Client,
  credentials,
  makeGenericClientConstructor,
  type ServiceDefinition,
  type ServiceError,
} from '@grpc/grpc-js';

export type Caller = Readonly<{
  /** Rejects with the server's own ServiceError. */
  call(method: string, request: object): Promise<unknown>;
  close(): void;
}>;

const LIMIT_MS = 10_000;

type Unary = (
  request: object,
  options: object,
  callback: (error: ServiceError | null, reply: unknown) => void,
) => void;

/** `target`: `host:port`, or a port on the loopback interface. */
export function caller(target: number | string, definition: ServiceDefinition): Caller {
  const Constructor = makeGenericClientConstructor(definition, '');
  const address = typeof target === 'number' ? `127.0.0.1:${target}` : target;
  const client: Client = new Constructor(address, credentials.createInsecure(), {
    // As large as the servers take (see grpc-server.ts).
    'grpc.max_receive_message_length': 32 * 1024 * 1024,
    // A new caller is a new connection.
    'grpc.use_local_subchannel_pool': 1,
  });
  return {
    call: (method, request) =>
      new Promise((resolve, reject) => {
        const unary = (client as unknown as Record<string, Unary>)[method];
        if (unary === undefined) throw new Error(`no method ${method}`);
        unary.call(client, request, { deadline: Date.now() + LIMIT_MS }, (error, reply) =>
          error === null ? resolve(reply) : reject(error),
        );
      }),
    close: () => client.close(),
  };
}
