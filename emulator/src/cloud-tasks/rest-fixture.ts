/** For tests: the REST form of a Cloud Tasks server on an HTTP port, and Google's own client for it. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CloudTasksClient } from '@google-cloud/tasks';
import { googleAuthLibrary } from 'google-gax';
import type { RestHandler } from './rest.ts';

export type RestFixture = Readonly<{
  url: string;
  client: CloudTasksClient;
  /** Method, path and query of every request. */
  requests: readonly string[];
  close(): Promise<void>;
}>;

export async function startRest(rest: RestHandler): Promise<RestFixture> {
  const requests: string[] = [];
  const answer = async (request: IncomingMessage) => {
    requests.push(`${request.method} ${request.url}`);
    const [path = '', query = ''] = (request.url ?? '').split('?');
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    return await rest(request.method ?? '', path, query, Buffer.concat(chunks));
  };
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    answer(request).then(
      (answered) => {
        response.writeHead(answered?.status ?? 404, { 'content-type': 'application/json' });
        response.end(JSON.stringify(answered?.body ?? 'none of ours'));
      },
      () => response.destroy(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = new CloudTasksClient({
    projectId: 'demo-project',
    apiEndpoint: '127.0.0.1',
    port,
    protocol: 'http',
    fallback: true,
    authClient: new googleAuthLibrary.PassThroughClient(),
  });
  return {
    url: `http://127.0.0.1:${port}`,
    client,
    requests,
    async close() {
      await client.close();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
