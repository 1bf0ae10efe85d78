import assert from 'node:assert/strict';
import { Agent, request as send } from 'node:http';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import { turnsDuring } from 'pubsub-guarantees-emulator';
import { silent } from 'pubsub-guarantees';
import { authentication } from './auth.ts';
import { type Republish, type Running, startServer } from './server.ts';

type TaskRequest = Parameters<Republish>[0];
type TaskAnswer = Awaited<ReturnType<Republish>>;

const QUEUE = { 'X-AppEngine-QueueName': 'delay-queue' };
const closing: (() => Promise<void>)[] = [];
after(() => Promise.all(closing.map((close) => close())));

type Answer = Readonly<{ status: number; text: string; headers: Record<string, unknown> }>;

async function server(answer: (request: TaskRequest) => Promise<TaskAnswer> = async () => ({ status: 204 })) {
  const received: TaskRequest[] = [];
  const lines: string[] = [];
  const write = (text: string, fields?: object): void => void lines.push(text + JSON.stringify(fields));
  const running = await startServer(
    {
      authenticate: authentication({ appEngine: { queues: ['delay-queue'] } }, async () => ({
        certificates: {},
        maxAgeMs: 0,
      })),
      republish: (request) => {
        received.push(request);
        return answer(request);
      },
      log: { ...silent, warn: write, error: write },
    },
    { port: 0, host: '127.0.0.1' },
  );
  closing.push(running.close);
  return { running, received, lines };
}

function call(
  { port }: Running,
  options: {
    method?: string;
    path?: string;
    headers?: Record<string, string>;
    body?: Buffer;
    agent?: Agent;
  } = {},
): Promise<Answer> {
  const { method = 'POST', path = '/republish', headers = QUEUE, body = Buffer.from('x'), agent } = options;
  return new Promise((resolve, reject) => {
    const request = send(
      { host: '127.0.0.1', port, method, path, headers, ...(agent && { agent }) },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.once('end', () =>
          resolve({ status: response.statusCode ?? 0, text, headers: response.headers }),
        );
      },
    );
    request.once('error', reject);
    request.end(method === 'GET' ? undefined : body);
  });
}

test('a task is handed on with its bytes and what its headers say, and answered without a body', async () => {
  const { running, received } = await server();
  const body = Buffer.from([0x00, 0xff, 0xfe, 0x80, 0xc3, 0x28]);
  const headers = { ...QUEUE, 'X-AppEngine-TaskETA': '1900000000.123456', 'X-AppEngine-TaskRetryCount': '3' };
  const answer = await call(running, { body, headers });
  assert.deepEqual({ status: answer.status, text: answer.text }, { status: 204, text: '' });
  assert.deepEqual(received, [{ body, etaMs: 1_900_000_000_123, retryCount: 3 }]);
});

test('B24: a body of a full task arrives whole', async () => {
  const { running, received } = await server();
  const body = Buffer.alloc(1_048_576, 0xfe);
  assert.equal((await call(running, { body })).status, 204);
  assert.ok(Buffer.from(received[0]!.body).equals(body));
});

test('a body larger than any task is answered 413 and nothing is handed on', async () => {
  const { running, received } = await server();
  const answer = await call(running, { body: Buffer.alloc(8 * 1_048_576 + 1) }).catch(
    (error: unknown) => error,
  );
  // The server stops reading, so the caller may see the broken connection before the answer.
  if (!(answer instanceof Error)) assert.equal((answer as Answer).status, 413);
  assert.equal(received.length, 0);
});

test('a body of unknown length is bounded too', async () => {
  const { running, received } = await server();
  const socket = connect(running.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(
    'POST /republish HTTP/1.1\r\nHost: x\r\nX-AppEngine-QueueName: delay-queue\r\nTransfer-Encoding: chunked\r\n\r\n',
  );
  const chunk = Buffer.alloc(1_048_576);
  for (let n = 0; n < 9; n += 1) {
    socket.write(`${chunk.length.toString(16)}\r\n`);
    socket.write(chunk);
    socket.write('\r\n');
  }
  const text = await new Promise<string>((resolve) => {
    let all = '';
    socket.on('data', (data) => (all += data.toString()));
    socket.once('close', () => resolve(all));
  });
  if (text !== '') assert.match(text, /^HTTP\/1\.1 413 /);
  assert.equal(received.length, 0);
});

test('B40: a caller without proof is refused and nothing is handed on', async () => {
  const { running, received, lines } = await server();
  assert.equal((await call(running, { headers: {} })).status, 403);
  assert.equal((await call(running, { headers: { 'X-CloudTasks-QueueName': 'delay' } })).status, 403);
  assert.equal((await call(running, { headers: { Authorization: 'Bearer SECRET' } })).status, 403);
  assert.equal(received.length, 0);
  assert.equal(lines.length, 3);
  assert.doesNotMatch(lines.join('\n'), /SECRET/);
});

test('health and warm-up pages answer 200, other paths 404, other methods 405', async () => {
  const { running, received } = await server();
  for (const path of ['/health', '/healthz', '/_ah/warmup', '/_ah/start', '/healthz?probe=1']) {
    assert.equal((await call(running, { method: 'GET', path, headers: {} })).status, 200, path);
  }
  for (const path of ['/', '/republish/', '/republish/../x', '/task']) {
    assert.equal((await call(running, { path })).status, 404, path);
  }
  const answer = await call(running, { method: 'GET' });
  assert.deepEqual([answer.status, answer.headers['allow']], [405, 'POST']);
  assert.equal(received.length, 0);
});

test('each answer of the core is the status, and a failure of the core is 503', async () => {
  for (const status of [200, 204, 503] as const) {
    const { running } = await server(async () => ({ status }));
    assert.equal((await call(running)).status, status);
  }
  const { running } = await server(() => Promise.reject(new Error('a bug')));
  assert.equal((await call(running)).status, 503);
});

test('a port that is taken is an error that names it', async () => {
  const { running } = await server();
  const ports = {
    authenticate: authentication({ appEngine: { queues: ['delay-queue'] } }, async () => ({
      certificates: {},
      maxAgeMs: 0,
    })),
    republish: async () => ({ status: 204 as const }),
    log: silent,
  };
  await assert.rejects(startServer(ports, { port: running.port, host: '127.0.0.1' }), (error: Error) =>
    error.message.includes(String(running.port)),
  );
});

test('closing waits for what is in flight, and not for connections that are kept alive', async () => {
  const arrived = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<TaskAnswer>();
  const { running } = await server(() => {
    arrived.resolve();
    return finish.promise;
  });
  const agent = new Agent({ keepAlive: true });
  await call(running, { path: '/healthz', agent });
  const inFlight = call(running, { agent });
  await arrived.promise;
  const turns = await turnsDuring(async () => {
    const closed = running.close();
    finish.resolve({ status: 204 });
    assert.equal((await inFlight).status, 204);
    await closed;
  });
  assert.ok(turns < 2_000);
  agent.destroy();
});
