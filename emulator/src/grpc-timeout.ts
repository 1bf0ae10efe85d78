/**
 * The deadlines that clients send with their calls, kept within what a timer of Node's can hold.
 *
 * @grpc/grpc-js 1.14 cuts the milliseconds of `grpc-timeout` to 32 bits, so that a deadline of years (Python's
 * client sends 27000 hours with an ordered publish) ends the call before its request has arrived.
 */
import type { Server } from '@grpc/grpc-js';

const MILLISECONDS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/** 24.8 days: the most whole seconds in 2^31 - 1 ms. A client whose deadline is longer ends its calls itself. */
const LONGEST_SECONDS = 2_147_483;

/** The value of a `grpc-timeout` header, or the longest that is safe. What is malformed stays so. */
export function boundedTimeout(value: string): string {
  const [, digits, unit = ''] = /^(\d{1,8})\s*([HMSmun])$/.exec(value) ?? [];
  const milliseconds = Number(digits) * (MILLISECONDS[unit] ?? 0);
  return milliseconds > LONGEST_SECONDS * 1_000 ? `${LONGEST_SECONDS}S` : value;
}

/** Bounds the deadline of every call that comes to the server from now on. Throws as `onCall` does. */
export function boundDeadlines(server: Server): void {
  onCall(server, (headers) => {
    const timeout = headers['grpc-timeout'];
    if (typeof timeout === 'string') headers['grpc-timeout'] = boundedTimeout(timeout);
  });
}

/**
 * Shows the headers of every call, and its HTTP/2 stream, that comes to the server from now on, before @grpc/grpc-js looks at them. Called when
 * its HTTP/2 server exists. Throws when @grpc/grpc-js no longer keeps its HTTP/2 servers where they are looked for.
 */
export function onCall(
  server: Server,
  look: (headers: Record<string, unknown>, stream: unknown) => void,
): void {
  const servers: unknown = Reflect.get(server, 'http2Servers');
  if (!(servers instanceof Map) || servers.size === 0) {
    throw new Error('this version of @grpc/grpc-js has no http2Servers: look again at how it takes calls');
  }
  for (const each of servers.keys() as Iterable<StreamSource>) {
    // Before the listener that @grpc/grpc-js has set, which reads the same object.
    each.prependListener('stream', (stream, headers) => look(headers, stream));
  }
}

type StreamSource = Readonly<{
  prependListener(
    event: 'stream',
    listener: (stream: unknown, headers: Record<string, unknown>) => void,
  ): void;
}>;
