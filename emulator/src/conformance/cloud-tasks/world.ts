/**
 * What a case about Cloud Tasks has at hand: a server of its own on a clock that is frozen until the case moves it, a
 * target for its tasks, and ways to call: Google's client over gRPC and over REST, plain calls, plain HTTP.
 * Dispatch deadlines go by the same clock, so that they pass without waiting.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CloudTasksClient } from '@google-cloud/tasks';
import { Client, credentials, type ServiceError } from '@grpc/grpc-js';
import { googleAuthLibrary } from 'google-gax';
import { startCloudTasks, type CloudTasksOptions } from '../../cloud-tasks/index.ts';
import { cloudTasksDefinition } from '../../cloud-tasks/protos.ts';
import { identity, type Identity } from '../../identity.ts';
import { movableClock } from '../../movable-clock.ts';
import { quiet } from '../../quiet.ts';
import type { World } from '../case.ts';
import { startTarget, type Target } from './target.ts';

type Json = Readonly<Record<string, unknown>>;

export type TasksWorld = World &
  Readonly<{
    /** `projects/P/locations/L`. */
    parent: string;
    /** The name of a queue that no case has created yet. */
    queue: string;
    target: Target;
    identity: Identity;
    client(): CloudTasksClient;
    /** Google's client with `fallback: true`. */
    restClient(): Promise<CloudTasksClient>;
    /** One RPC by its name, as in `CreateTask`, with nothing of a client library between. */
    call(rpc: string, request: object): Promise<Json>;
    /** One HTTP request: path and query, as in `/v2/projects/…`. */
    http(method: string, path: string, body?: unknown): Promise<Readonly<{ status: number; body: Json }>>;
    now(): number;
    /** Moves time on, and waits for what follows from each step of it. With 0: for what is in flight. */
    pass(milliseconds: number): Promise<void>;
    /** The base URL that App Engine requests went to, by the routing that was asked for. */
    routings: readonly object[];
    /** A server with other settings; it is closed with this world. */
    other(settings: Pick<CloudTasksOptions, 'maxTaskBytes'>): Promise<TasksWorld>;
  }>;

const PARENT = 'projects/demo-project/locations/us-central1';
const START_MS = Date.parse('2027-01-01T00:00:00.000Z');

/** Read once: every case has a server of its own. */
let definition: ReturnType<typeof cloudTasksDefinition> | undefined;

export async function tasksWorld(settings: Partial<CloudTasksOptions> = {}): Promise<TasksWorld> {
  // Otherwise the client looks for Google's metadata server first.
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const clock = movableClock(() => quiet(busy), { now: () => START_MS, after: () => () => {} });
  clock.freeze();
  const target = await startTarget(clock.now);
  const signer = identity(clock);
  const routings: object[] = [];
  const tasks = await startCloudTasks({
    clock,
    deadlineClock: clock,
    identity: signer,
    appEngine(routing) {
      routings.push(routing);
      return target.url;
    },
    ...settings,
  });
  const closers: (() => Promise<unknown>)[] = [];
  /** A request that the target leaves open is over when its deadline passes, and not before. */
  function busy(): number {
    return Math.max(tasks.inFlight() - target.hanging(), 0);
  }

  let plain: Client | undefined;
  let client: CloudTasksClient | undefined;
  let http: Promise<string> | undefined;
  const address = (): Promise<string> =>
    (http ??= startHttp(tasks.rest).then((started) => {
      closers.push(() => started.close());
      return started.url;
    }));

  return {
    parent: PARENT,
    queue: `${PARENT}/queues/conformance`,
    target,
    identity: signer,
    routings,
    now: clock.now,
    client() {
      client ??= new CloudTasksClient({
        projectId: 'demo-project',
        apiEndpoint: '127.0.0.1',
        port: tasks.port,
        sslCreds: credentials.createInsecure(),
      });
      return client;
    },
    async restClient() {
      const made = new CloudTasksClient({
        projectId: 'demo-project',
        apiEndpoint: '127.0.0.1',
        port: Number(new URL(await address()).port),
        protocol: 'http',
        fallback: true,
        authClient: new googleAuthLibrary.PassThroughClient(),
      });
      closers.push(() => made.close());
      return made;
    },
    call(rpc, request) {
      plain ??= new Client(tasks.address, credentials.createInsecure());
      return unary(plain, rpc, request);
    },
    async http(method, path, body) {
      const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
      const answered = await fetch(`${await address()}${path}`, { method, ...sent });
      return { status: answered.status, body: (await answered.json()) as Json };
    },
    async pass(milliseconds) {
      await clock.advance(milliseconds);
    },
    async other(changed) {
      const made = await tasksWorld({ ...settings, ...changed });
      closers.push(() => made.close());
      return made;
    },
    async close() {
      plain?.close();
      await client?.close();
      for (const close of closers) await close();
      await tasks.close();
      await target.close();
      clock.close();
    },
  };
}

function unary(client: Client, rpc: string, request: object): Promise<Json> {
  definition ??= cloudTasksDefinition();
  const method = definition[rpc];
  if (method === undefined) throw new Error(`the protos have no method ${rpc}`);
  return new Promise((resolve, reject) => {
    const done = (error: ServiceError | null, reply?: object): void =>
      error === null ? resolve((reply ?? {}) as Json) : reject(error);
    client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize as (bytes: Buffer) => object,
      request,
      done,
    );
  });
}

type Rest = Awaited<ReturnType<typeof startCloudTasks>>['rest'];

async function startHttp(rest: Rest): Promise<{ url: string; close(): Promise<void> }> {
  const answer = async (request: IncomingMessage): ReturnType<Rest> => {
    const [path = '', query = ''] = (request.url ?? '').split('?');
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    return await rest(request.method ?? '', path, query, Buffer.concat(chunks));
  };
  const server: Server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    answer(request).then(
      (answered) => {
        response.writeHead(answered?.status ?? 404, { 'content-type': 'application/json' });
        response.end(JSON.stringify(answered?.body ?? {}));
      },
      () => response.destroy(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
