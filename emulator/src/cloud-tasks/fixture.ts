/**
 * For tests: a Cloud Tasks server on a manual clock, Google's own client for it, and an HTTP server as the target of
 * tasks, which answers what the test says. `close` ends all three.
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { CloudTasksClient } from '@google-cloud/tasks';
import { credentials } from '@grpc/grpc-js';
import { startCloudTasks, type CloudTasksOptions, type RunningCloudTasks } from './index.ts';
import { manualClock, type ManualClock } from '../manual-clock.ts';

export { until } from '../until.ts';

export type Received = Readonly<{
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  response: ServerResponse;
}>;

type Target = Readonly<{
  url: string;
  received: readonly Received[];
  /** A status to answer with, or 'hang' to leave the request open; for the n-th request, counted from 0. */
  answer: { with: (n: number, request: Received) => number | 'hang' };
  close(): Promise<void>;
}>;

async function startTarget(): Promise<Target> {
  const received: Received[] = [];
  const answer: Target['answer'] = { with: () => 200 };
  // No idle connection is closed by this side: a request that meets its end would count as one more attempt.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
      const { method = '', url = '', headers } = request;
      const item = { method, url, headers, body: Buffer.concat(chunks), response };
      const status = answer.with(received.push(item) - 1, item);
      if (status !== 'hang') response.writeHead(status, { location: '/elsewhere' }).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    answer,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

export type Fixture = Readonly<{
  clock: ManualClock;
  tasks: RunningCloudTasks;
  client: CloudTasksClient;
  target: Target;
  lines: readonly string[];
  parent: string;
  queue: string;
  close(): Promise<void>;
}>;

export const START_MS = Date.parse('2027-01-01T00:00:00.000Z');
const LOCATION = 'projects/demo-project/locations/us-central1';

type FixtureOptions = Partial<Omit<CloudTasksOptions, 'clock' | 'deadlineClock'>> &
  Readonly<{
    clock?: ManualClock;
    /** Default: `clock`, so that a test need not wait for a deadline. Undefined: that of the server. */
    deadlineClock?: ManualClock | undefined;
  }>;

export async function startFixture(options: FixtureOptions = {}): Promise<Fixture> {
  // Otherwise the client looks for Google's metadata server first.
  process.env.METADATA_SERVER_DETECTION = 'none';
  const { clock = manualClock(START_MS), deadlineClock, ...others } = options;
  const measured = 'deadlineClock' in options ? deadlineClock : clock;
  const target = await startTarget();
  const lines: string[] = [];
  const tasks = await startCloudTasks({
    clock,
    ...(measured !== undefined && { deadlineClock: measured }),
    appEngine: () => target.url,
    log: (line) => lines.push(line),
    ...others,
  });
  const client = new CloudTasksClient({
    projectId: 'demo-project',
    apiEndpoint: '127.0.0.1',
    port: tasks.port,
    sslCreds: credentials.createInsecure(),
  });
  return {
    clock,
    tasks,
    client,
    target,
    lines,
    parent: LOCATION,
    queue: `${LOCATION}/queues/delay-queue`,
    async close() {
      await client.close();
      await tasks.close();
      await target.close();
    },
  };
}
