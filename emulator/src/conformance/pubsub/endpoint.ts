/** A push endpoint on the loopback interface that keeps what it gets. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Pushed = Readonly<{ headers: IncomingHttpHeaders; body: Buffer }>;

/** The wrapped form. */
export type Envelope = Readonly<{
  subscription: string;
  deliveryAttempt?: number;
  message: Readonly<Record<string, unknown>> & Readonly<{ data?: string }>;
}>;

/** A status, `undefined` for no answer at all, or what answers by itself; `index` counts requests from 0. */
export type Answering = (
  pushed: Pushed,
  index: number,
  response: ServerResponse,
) => number | undefined | Promise<number | undefined>;

export type Endpoint = Readonly<{
  url: string;
  got: Pushed[];
  /** Requests that are not answered yet. */
  open(): number;
  close(): Promise<void>;
}>;

export async function startEndpoint(answer: Answering = () => 204): Promise<Endpoint> {
  const got: Pushed[] = [];
  let open = 0;
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const parts: Buffer[] = [];
    open += 1;
    response.once('close', () => {
      open -= 1;
    });
    request.on('error', () => {});
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const pushed = { headers: request.headers, body: Buffer.concat(parts) };
      const index = got.push(pushed) - 1;
      void Promise.resolve(answer(pushed, index, response)).then((code) => {
        if (code !== undefined) response.writeHead(code).end();
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/push`,
    got,
    open: () => open,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export const envelope = ({ body }: Pushed): Envelope => JSON.parse(body.toString()) as Envelope;

/** The data of a wrapped push. */
export const pushedText = (pushed: Pushed): string =>
  Buffer.from(envelope(pushed).message.data ?? '', 'base64').toString();
