/**
 * The stack's own small HTTP API: state (state-api.ts), clock (clock-api.ts), faults, and the REST form of Pub/Sub and
 * Cloud Tasks.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { RestAnswer } from '../rest-error.ts';
import { refusedForeign } from '../web-guard.ts';

export type Control = Readonly<{ url: string; close(): Promise<void> }>;

/** `query` without its question mark; undefined where the path is not theirs. */
export type Handle = (
  method: string,
  path: string,
  query: string,
  body: Buffer,
) => Promise<RestAnswer | undefined>;

/** Above a publish request of 10 MB in base64. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;
/** Below the longest string of V8 (512 MB), which the state is on its way in and out. */
const MAX_STATE_BYTES = 256 * 1024 * 1024;

const ACCEPTED =
  '/state, /reset, /save, /load, /clock, /faults, /log, /healthz, /oidc/jwks, /v1/projects/…, /v2/projects/…';

/**
 * `handles` are asked in turn; `read` answers a GET by its path. `GET /healthz` answers 200 once the server listens.
 * Throws an error that names the port when it is taken.
 */
export async function startControl(
  port: number,
  handles: readonly Handle[],
  read: Readonly<Record<string, () => unknown>>,
): Promise<Control> {
  const readable: Readonly<Record<string, () => unknown>> = { '/healthz': () => ({ status: 'ok' }), ...read };
  const answer = async (request: IncomingMessage): Promise<RestAnswer> => {
    const method = request.method ?? 'GET';
    const [path = '/', query = ''] = (request.url ?? '/').split('?', 2);
    const limit = path === '/load' ? MAX_STATE_BYTES : MAX_BODY_BYTES;
    const body = await readBody(request, limit);
    if (body === undefined) return refusal(413, `the body has more than ${limit} bytes`);
    for (const handle of handles) {
      const answered = await handle(method, path, query, body);
      if (answered !== undefined) return answered;
    }
    const readIt = Object.hasOwn(readable, path) ? readable[path] : undefined;
    if (readIt === undefined) return refusal(404, `no path ${path}; accepted: ${ACCEPTED}`);
    if (method !== 'GET') return refusal(405, `method ${method} on ${path}; accepted: GET`);
    return { status: 200, body: readIt() };
  };
  const server = createServer((request, response) => {
    if (refusedForeign(request, response)) return;
    answer(request)
      .catch((error: unknown) => refusal(500, error instanceof Error ? error.message : String(error)))
      .then(({ status, body }) => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
      })
      // The client has gone.
      .catch(() => response.destroy());
  });
  // Node would close an idle connection after 5 s, and on a busy machine a request that is just being sent with it.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? new Error(`port ${port} on 127.0.0.1 is taken by another process`)
          : error,
      ),
    );
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function readBody(request: IncomingMessage, limit: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    // The rest is read and thrown away, so that the answer can be sent.
    if (size <= limit) chunks.push(chunk as Buffer);
  }
  return size > limit ? undefined : Buffer.concat(chunks);
}

const refusal = (status: number, error: string): RestAnswer => ({ status, body: { error } });
