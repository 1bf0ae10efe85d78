/** Where the tasks of a case go: an HTTP server on the loopback interface that keeps what arrives and answers what the case says. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Received = Readonly<{
  method: string;
  /** Path and query. */
  url: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  /** By the clock of the world. */
  atMs: number;
}>;

/** A status, one with headers, or none at all: the request is left open until its sender ends it. */
type Answer = number | Readonly<{ status: number; headers: OutgoingHttpHeaders }> | 'hang';

export type Target = Readonly<{
  url: string;
  received: readonly Received[];
  /** For the n-th request, counted from 0. At first: 200. */
  answer: { with: (n: number, request: Received) => Answer };
  /** Requests that are left open. */
  hanging(): number;
  close(): Promise<void>;
}>;

export async function startTarget(now: () => number): Promise<Target> {
  const received: Received[] = [];
  const answer: Target['answer'] = { with: () => 200 };
  let hanging = 0;
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
      const { method = '', url = '', headers } = request;
      const item = { method, url, headers, body: Buffer.concat(chunks), atMs: now() };
      const chosen = answer.with(received.push(item) - 1, item);
      if (chosen === 'hang') {
        hanging += 1;
        response.once('close', () => {
          hanging -= 1;
        });
        return;
      }
      const { status, headers: own } = typeof chosen === 'number' ? { status: chosen, headers: {} } : chosen;
      response.writeHead(status, own).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    answer,
    hanging: () => hanging,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
