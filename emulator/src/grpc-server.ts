/**
 * A gRPC server on the loopback interface: loads a vendor's own protos, binds, and reports a taken port
 * as an error that names it. A method that a service does not implement is answered UNIMPLEMENTED by
 * @grpc/grpc-js itself, and counted.
 */
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from 'node:net';
import {
  Server,
  ServerCredentials,
  status,
  type MethodDefinition,
  type ServiceDefinition,
  type UntypedHandleCall,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { loadSync, type Options } from '@grpc/proto-loader';
import { type AfterReply, afterReplies } from './after-reply.ts';
import { boundDeadlines, onCall } from './grpc-timeout.ts';
import { countUnimplemented, methodOf, type Unimplemented } from './unimplemented.ts';

/** Larger than any answer of the services (a Pub/Sub message: 10 MB). */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
/** Requests are measured by the services, which say INVALID_ARGUMENT: RESOURCE_EXHAUSTED would be tried for ever. */
const ANY_SIZE = -1;

export type RunningServer = Readonly<{
  /** `host:port`, as the emulator variables want it. */
  address: string;
  port: number;
  /** How many calls were answered UNIMPLEMENTED, by method, as in `google.pubsub.v1.Publisher/CreateTopic`. */
  unimplemented(): Readonly<Record<string, number>>;
  /** Stops accepting, ends open streams, resolves when the port is free. May be called twice. */
  close(): Promise<void>;
}>;

/** What happens to the connections of a server while it runs, as if its process or the network had failed. */
export type GrpcServer = RunningServer &
  Readonly<{
    afterReply: AfterReply;
    /** Destroys all connections and listens no more. Resolves when the port is free. */
    down(): Promise<void>;
    /** Listens again on the same port. Rejects when another process has taken it. */
    up(): Promise<void>;
    isDown(): boolean;
  }>;

/** An error that a method answers: `code` is a gRPC status, as in `status.NOT_FOUND`. */
export class StatusError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = 'StatusError';
    this.code = code;
  }
  /** What @grpc/grpc-js sends. */
  get details(): string {
    return this.message;
  }
}

export const notFound = (message: string): StatusError => new StatusError(status.NOT_FOUND, message);
export const invalidArgument = (message: string): StatusError =>
  new StatusError(status.INVALID_ARGUMENT, message);
export const unimplemented = (message: string): StatusError => new StatusError(status.UNIMPLEMENTED, message);

/** How every service's messages look to its methods: camel case, 64-bit numbers as strings, enums as names. */
const LOAD: Options = {
  keepCase: false,
  longs: String,
  enums: String,
  defaults: true,
  oneofs: true,
  bytes: Buffer,
};

/** Reads service definitions by their full names, for example `google.pubsub.v1.Publisher`. */
export function loadServices<Name extends string>(
  file: string,
  includeDirs: readonly string[],
  names: readonly Name[],
): Record<Name, ServiceDefinition> {
  const definitions = loadSync(file, { ...LOAD, includeDirs: [...includeDirs] });
  const found = {} as Record<Name, ServiceDefinition>;
  for (const name of names) {
    const definition = definitions[name];
    if (definition === undefined) throw new Error(`the service ${name} is not defined in ${file}`);
    found[name] = definition as ServiceDefinition;
  }
  return found;
}

export type ServeOptions = Readonly<{
  /** Called when a client's connection has ended, with the peer's name as `call.getPeer()` gives it. */
  onDisconnect?: (peer: string) => void;
  /** Puts itself around the handler of each method. */
  intercept?: Intercept;
  /** Counts what is answered UNIMPLEMENTED. Default: a count of its own. */
  missing?: Unimplemented;
}>;

/** `name` as in `CreateTopic`; `cut` destroys the connection of a peer. */
export type Intercept = (
  name: string,
  definition: MethodDefinition<unknown, unknown>,
  handler: UntypedHandleCall,
  cut: (peer: string) => void,
) => UntypedHandleCall;

/**
 * Serves on 127.0.0.1. Port 0 takes any free port.
 * Throws an error that names the port when another process listens on it.
 *
 * The listening socket is this server's own, and hands its connections to @grpc/grpc-js: that is how the end of a
 * connection can be seen when no call is in flight on it.
 */
export async function serve(
  port: number,
  services: readonly (readonly [ServiceDefinition, UntypedServiceImplementation])[],
  { onDisconnect = () => {}, intercept, missing = countUnimplemented() }: ServeOptions = {},
): Promise<GrpcServer> {
  const server = new Server({
    'grpc.max_receive_message_length': ANY_SIZE,
    'grpc.max_send_message_length': MAX_ANSWER_BYTES,
  });
  const sockets = new Map<string, Socket>();
  const cut = (peer: string): void => void sockets.get(peer)?.destroy();
  const implemented = new Set<string>();
  for (const [definition, implementation] of services) {
    const handlers: UntypedServiceImplementation = {};
    for (const [name, method] of Object.entries(definition)) {
      const handler = implementation[name] ?? implementation[method.originalName ?? name];
      if (handler === undefined) continue;
      implemented.add(method.path);
      const watched = missing.watched(method.path, method, handler);
      handlers[name] = intercept === undefined ? watched : intercept(name, method, watched, cut);
    }
    server.addService(definition, handlers);
  }
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  boundDeadlines(server);
  const afterReply = afterReplies(server);
  onCall(server, ({ ':path': path }) => {
    if (typeof path === 'string' && !implemented.has(path)) missing.count(methodOf(path));
  });
  const listener = createServer((socket) => {
    const peer = `${socket.remoteAddress}:${socket.remotePort}`;
    sockets.set(peer, socket);
    socket.once('close', () => {
      sockets.delete(peer);
      onDisconnect(peer);
    });
    injector.injectConnection(socket);
  });
  const bound = await listen(listener, port);
  let closing: Promise<void> | undefined;
  return {
    address: `127.0.0.1:${bound}`,
    port: bound,
    unimplemented: missing.counts,
    afterReply,
    down() {
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      for (const socket of sockets.values()) socket.destroy();
      return closed;
    },
    async up() {
      if (closing === undefined && !listener.listening) await listen(listener, bound);
    },
    isDown: () => closing === undefined && !listener.listening,
    close() {
      closing ??= new Promise<void>((resolve) => {
        listener.close(() => resolve());
        server.forceShutdown();
      });
      return closing;
    },
  };
}

/** Throws an error that names the port when another process listens on it. */
export async function assertFree(port: number): Promise<void> {
  const probe = createServer();
  await listen(probe, port);
  await new Promise((resolve) => probe.close(resolve));
}

function listen(server: NetServer, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void =>
      reject(
        new Error(
          error.code === 'EADDRINUSE'
            ? `port ${port} on 127.0.0.1 is taken by another process`
            : `port ${port} on 127.0.0.1 cannot be used: ${error.message}`,
        ),
      );
    server.once('error', fail);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', fail);
      resolve((server.address() as AddressInfo).port);
    });
  });
}
