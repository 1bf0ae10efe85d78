/**
 * The stack's own small HTTP API: where everything is, what the servers hold, what time it is, and Pub/Sub's REST form.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerClock } from './clock-api.ts';
import type { RestAnswer } from '../rest-error.ts';
import type { Rest } from './rest.ts';
import type { StackClock } from './stack-clock.ts';

export type Control = Readonly<{ url: string; close(): Promise<void> }>;

/** Above a publish request of 10 MB in base64. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** `query` without its question mark; undefined where the path is not theirs. */
type Handle = (method: string, path: string, query: string, body: Buffer) => Promise<RestAnswer | undefined>;

export type ControlPorts = Readonly<{
  state: () => unknown;
  clock: StackClock;
  pubsub: Rest;
  tasks: Handle;
  /** The public half of the key that signs the stack's OIDC tokens. */
  jwks: () => unknown;
}>;

/**
 * `GET /state` answers what `state` returns; `GET /healthz` answers 200 once the server listens;
 * `/v1/projects/…` is Pub/Sub's REST form and `/v2/projects/…` that of Cloud Tasks; `GET /oidc/jwks` answers the key
 * that its tokens are verified with; `/clock` is in clock-api.ts.
 */
export async function startControl(port: number, ports: ControlPorts): Promise<Control> {
  const { state, clock, pubsub, tasks, jwks } = ports;
  const answer = async (request: IncomingMessage): Promise<RestAnswer> => {
    const method = request.method ?? 'GET';
    const [path = '/', query = ''] = (request.url ?? '/').split('?', 2);
    const body = await read(request);
    if (body === undefined)
      return { status: 413, body: { error: `the body has more than ${MAX_BODY_BYTES} bytes` } };
    const passedOn =
      (await answerClock(clock, method, path, body)) ??
      (await pubsub.handle(method, path, body)) ??
      (await tasks(method, path, query, body));
    if (passedOn !== undefined) return passedOn;
    if (method !== 'GET')
      return { status: 405, body: { error: `method ${method} on ${path}; accepted: GET` } };
    if (path === '/state') return { status: 200, body: state() };
    if (path === '/oidc/jwks') return { status: 200, body: jwks() };
    if (path === '/healthz') return { status: 200, body: { status: 'ok' } };
    return {
      status: 404,
      body: {
        error: `no path ${path}; accepted: /state, /healthz, /clock, /oidc/jwks, /v1/projects/…, /v2/projects/…`,
      },
    };
  };
  const server = createServer((request, response) => {
    answer(request).then(
      ({ status, body }) => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
      },
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          pubsub.close();
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

async function read(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    // The rest is read and thrown away, so that the answer can be sent.
    if (size <= MAX_BODY_BYTES) chunks.push(chunk as Buffer);
  }
  return size > MAX_BODY_BYTES ? undefined : Buffer.concat(chunks);
}
