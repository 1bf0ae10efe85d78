/**
 * The republisher's HTTP surface: `POST /republish` for tasks, health and warm-up pages, nothing else. A request is
 * authenticated before a byte of its body is read.
 *
 * `close` takes no new request, lets those in flight be answered, and resolves when the port is free. A task whose
 * answer is cut off is sent again by its queue.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Log } from 'pubsub-guarantees';
import type { republish } from 'pubsub-guarantees/delay';
import type { BytesInFlight } from 'pubsub-guarantees/receive';
import { taskHeaders } from 'pubsub-guarantees/tasks';
import type { Verdict } from './auth.ts';

/** What runs one task. */
export type Republish = ReturnType<typeof republish>;

export type ServerPorts = Readonly<{
  authenticate: (headers: IncomingMessage['headers']) => Promise<Verdict>;
  republish: Republish;
  log: Log;
  /** Absent: without a limit on what is in flight. */
  room?: BytesInFlight;
}>;

export type ServerOptions = Readonly<{
  /** 0: any free port. */
  port: number;
  /** Default: all interfaces. */
  host?: string;
}>;

export type Running = Readonly<{ port: number; close(): Promise<void> }>;

/**
 * Eight times the largest task (1 MiB), and small enough to go into a dead letter whole. More cannot come from Cloud
 * Tasks, which refuses it at creation: a larger body is answered 413, and no task is lost by it.
 */
const MAX_BODY_BYTES = 8 * 1_048_576;

/** Cloud Run keeps paths that end in `z` to itself (https://cloud.google.com/run/docs/known-issues): `/health`. */
const PAGES: ReadonlySet<string> = new Set([
  '/health',
  '/healthz',
  '/_ah/warmup',
  '/_ah/start',
  '/_ah/stop',
  '/_ah/health',
]);

/** Rejects, naming the port, when it cannot listen. */
export async function startServer(ports: ServerPorts, { port, host }: ServerOptions): Promise<Running> {
  let closing = false;
  const server = createServer((request, response) => {
    // A connection that is kept alive would delay the end until it times out.
    response.once('close', () => {
      if (closing) setImmediate(() => server.closeIdleConnections());
    });
    answer(ports, request, response).catch((error: unknown) => {
      ports.log.error('a request failed', { error: error instanceof Error ? error.message : String(error) });
      send(response, 503, 'failed');
    });
  });
  await listen(server, port, host);
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close: () =>
      new Promise((resolve) => {
        closing = true;
        server.close(() => resolve());
        server.closeIdleConnections();
      }),
  };
}

function listen(server: Server, port: number, host: string | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(new Error(`cannot listen on port ${port}: ${error.message}`)));
    server.listen({ port, ...(host !== undefined && { host }) }, resolve);
  });
}

async function answer(ports: ServerPorts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { authenticate, log } = ports;
  const path = request.url?.split('?', 1)[0] ?? '';
  if (PAGES.has(path)) return send(response, 200, 'ok');
  if (path !== '/republish') return send(response, 404, 'not found');
  if (request.method !== 'POST') {
    response.setHeader('Allow', 'POST');
    return send(response, 405, 'only POST');
  }
  const verdict = await authenticate(request.headers);
  if (!verdict.allowed) {
    const { status, reason, proof } = verdict;
    // Only a refused proof is an event that alerts: a stranger's request without one makes no message late.
    log.warn('a caller was refused', {
      ...(proof === 'refused' && { event: 'caller_refused' }),
      status,
      reason,
    });
    return refuse(response, status, reason);
  }
  const run = (): Promise<void> => answerTask(ports, request, response);
  await (ports.room === undefined ? run() : ports.room.during(run));
}

async function answerTask(
  { republish, room, log }: ServerPorts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await read(request, (bytes) => room?.take(bytes) ?? true);
  // Cloud Tasks slows its queue down, and sends it again.
  if (body === 'no room') return refuse(response, 429, 'too many bytes are in flight');
  if (body === undefined) {
    log.error('a body is larger than any task', { acceptedBytes: MAX_BODY_BYTES });
    return refuse(response, 413, `accepted: at most ${MAX_BODY_BYTES} bytes`);
  }
  const { status } = await republish({ body, ...taskHeaders(request.headers) });
  send(response, status, status === 503 ? 'try again' : status === 403 ? 'not for this republisher' : '');
}

/** Undefined when there is more than any task has, `no room` when `take` refuses. */
async function read(
  request: IncomingMessage,
  take: (bytes: number) => boolean,
): Promise<Buffer | 'no room' | undefined> {
  const declared = Number(request.headers['content-length'] ?? Number.NaN);
  if (declared > MAX_BODY_BYTES) return undefined;
  const isKnown = declared >= 0;
  if (isKnown && !take(declared)) return 'no room';
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Left open at its early end, so that the answer can still be sent.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    if (!isKnown && !take(chunk.length)) return 'no room';
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes);
}

/** Without reading what else the caller sends. */
function refuse(response: ServerResponse, status: number, text: string): void {
  response.setHeader('Connection', 'close');
  send(response, status, text);
}

function send(response: ServerResponse, status: number, text: string): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, text === '' ? {} : { 'Content-Type': 'text/plain; charset=utf-8' });
  response.end(text);
}
