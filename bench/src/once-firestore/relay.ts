/**
 * A relay in front of a gRPC server that counts what passes, by method and status, and can hold each call back as a
 * network does. It understands HTTP/2 and nothing of what is in it, and lets its caller watch that.
 */
import {
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { status as statuses } from '@grpc/grpc-js';

export type Relay = Readonly<{
  port: number;
  /** Calls since the last time, by method and status, as in `Commit OK`. */
  take(): Readonly<Record<string, number>>;
  close(): Promise<void>;
}>;

/** The bytes of one call as they pass. */
export type Watch = Readonly<{
  sent(bytes: Buffer): void;
  answered(bytes: Buffer): void;
  /** Once, also where the client or the server broke off. */
  ended(): void;
}>;

/** On the loopback interface. `delayMs`: from the arrival of a call until it goes on. `watch`: for each call, by its path. */
export async function relayTo(
  port: number,
  delayMs = 0,
  watch?: (path: string | undefined) => Watch,
): Promise<Relay> {
  const target = connect(`http://127.0.0.1:${port}`);
  const server = createServer();
  const sessions = new Set<ServerHttp2Session>();
  let counts: Record<string, number> = {};
  const count = (path: string | undefined, status: Status): void => {
    const name = `${path?.split('/').at(-1)} ${statuses[Number(status)] ?? 'without a status'}`;
    counts[name] = (counts[name] ?? 0) + 1;
  };
  server.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
  });
  server.on('stream', (stream, headers) => {
    const watching = watch?.(headers[':path']);
    const ended = (status: Status): void => count(headers[':path'], status);
    const go = (): void => pass(stream, target.request(headers), ended, watching);
    if (delayMs === 0) go();
    else setTimeout(go, delayMs);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  return {
    port: (server.address() as AddressInfo).port,
    take() {
      const taken = counts;
      counts = {};
      return taken;
    },
    async close() {
      for (const session of sessions) session.destroy();
      target.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type Status = string | string[] | undefined;

function pass(
  inner: ServerHttp2Stream,
  outer: ClientHttp2Stream,
  ended: (status: Status) => void,
  watching: Watch | undefined,
): void {
  let trailers: IncomingHttpHeaders = {};
  if (watching !== undefined) {
    inner.on('data', (bytes: Buffer) => watching.sent(bytes));
    outer.on('data', (bytes: Buffer) => watching.answered(bytes));
    outer.once('close', () => watching.ended());
  }
  outer.once('response', (headers, flags) => {
    // An answer of headers alone: its status is among them.
    const isAll = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    if (isAll) ended(headers['grpc-status']);
    if (inner.destroyed) return;
    inner.respond(headers, isAll ? { endStream: true } : { waitForTrailers: true });
    if (!isAll) outer.pipe(inner);
  });
  outer.once('trailers', (headers) => {
    trailers = headers;
    ended(headers['grpc-status']);
  });
  inner.once('wantTrailers', () => inner.sendTrailers(trailers));
  inner.on('error', () => outer.destroy());
  outer.on('error', () => inner.destroy());
  inner.pipe(outer);
}
