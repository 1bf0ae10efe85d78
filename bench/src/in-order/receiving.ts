/** The two ways in which what waits in a subscription reaches a handler, each through the library's own receiver. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Subscription } from '@google-cloud/pubsub';
import { type Handler, silent, systemClock } from 'pubsub-guarantees';
import { httpEndpoint } from 'pubsub-guarantees/receive';
import { receive } from 'pubsub-guarantees/receive/pubsub';

export type Receiving = Readonly<{
  name: 'pull' | 'push';
  start(subscription: Subscription, handler: Handler): Promise<Readonly<{ close(): Promise<void> }>>;
}>;

export const CONSUMER = 'bench';

/** Messages outstanding, and handlers at once, of a streaming pull. */
const OUTSTANDING = 50;

export const pulled: Receiving = {
  name: 'pull',
  start: async (subscription, handler) =>
    receive(subscription, handler, {
      consumer: CONSUMER,
      concurrency: OUTSTANDING,
      log: silent,
      drainOnSigterm: false,
    }),
};

/** As functions get theirs: how many are outstanding is Pub/Sub's to say, and of an ordering key it is one. */
export const pushed: Receiving = {
  name: 'push',
  async start(subscription, handler) {
    const endpoint = httpEndpoint(handler, {
      consumer: CONSUMER,
      clock: systemClock(),
      log: silent,
      handlerTimeout: '50s',
    });
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { method = '', headers } = request;
      const { status, body } = await endpoint({ method, headers, rawBody: Buffer.concat(chunks) });
      response.writeHead(status).end(body);
    };
    const server = createServer((request, response) => {
      answer(request, response).catch(() => response.destroy());
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    await subscription.modifyPushConfig({ pushEndpoint: `http://127.0.0.1:${port}/` });
    return {
      async close() {
        await subscription.modifyPushConfig({});
        server.close();
        server.closeAllConnections();
        await once(server, 'close');
      },
    };
  },
};
