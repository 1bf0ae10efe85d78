import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, test } from 'node:test';
import { startFixture, START_MS, until, type Fixture } from './fixture.ts';

let fixture: Fixture;
beforeEach(async () => {
  fixture = await startFixture();
  await fixture.client.createQueue({ parent: fixture.parent, queue: { name: fixture.queue } });
});
afterEach(() => fixture.close());

const create = async (task: object): Promise<string> => {
  const [created] = await fixture.client.createTask({ parent: fixture.queue, task });
  return created.name ?? '';
};
const received = (count: number): Promise<unknown> =>
  until(() => fixture.target.received.length >= count, `${count} requests`);
const idle = (): Promise<unknown> => until(() => fixture.tasks.stats().inFlight === 0, 'nothing in flight');

test('B25: sends method, path, query and bytes untouched, for both kinds of target', async () => {
  const bodies = [
    Buffer.from([0x1f, 0x8b, 0x08, 0x00]),
    Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x0a, 0x0d]),
    Buffer.from('Łódź 日本 🚀'),
    Buffer.alloc(1_000_000, 7),
    Buffer.alloc(0),
  ];
  for (const body of bodies) {
    await create({ httpRequest: { url: `${fixture.target.url}/a/b?c=%20d&e`, httpMethod: 'PUT', body } });
    await create({ appEngineHttpRequest: { relativeUri: '//a/b?c=%20d&e', httpMethod: 'PUT', body } });
  }
  await received(2 * bodies.length);
  for (const path of ['/a/b?c=%20d&e', '//a/b?c=%20d&e']) {
    const requests = fixture.target.received.filter(({ url }) => url === path);
    assert.equal(requests.length, bodies.length);
    for (const body of bodies) {
      const request = requests.find((item) => item.body.equals(body));
      assert.equal(request?.method, 'PUT');
      assert.equal(request.headers['content-length'], String(body.length));
      assert.equal(request.headers['transfer-encoding'], undefined);
    }
  }
});

test('sends every method', async () => {
  const methods = ['POST', 'GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'];
  for (const httpMethod of methods) await create({ httpRequest: { url: fixture.target.url, httpMethod } });
  await received(methods.length);
  assert.deepEqual(fixture.target.received.map(({ method }) => method).sort(), [...methods].sort());
});

test('removes the headers that only the service may set and replaces those that it computes', async () => {
  const headers = {
    Authorization: 'Bearer mine',
    'X-Mine': 'kept',
    Host: 'elsewhere',
    'Content-Length': '1',
    'Transfer-Encoding': 'chunked',
    Connection: 'close',
    'User-Agent': 'mine/1',
    'X-Google-Anything': 'spoofed',
    'x-appengine-queuename': 'spoofed',
    'X-AppEngine-FailFast': 'spoofed',
    'X-CloudTasks-TaskRetryCount': '9',
    'x-cloudtasks-anything': 'spoofed',
  };
  await create({ httpRequest: { url: fixture.target.url, headers, body: Buffer.from('abc') } });
  await create({ appEngineHttpRequest: { headers, body: Buffer.from('abc') } });
  await received(2);
  for (const request of fixture.target.received) {
    assert.equal(request.body.toString(), 'abc');
    assert.equal(request.headers.authorization, 'Bearer mine');
    assert.equal(request.headers['x-mine'], 'kept');
    assert.equal(request.headers.host, new URL(fixture.target.url).host);
    assert.equal(request.headers['content-length'], '3');
    assert.equal(request.headers.connection, 'keep-alive');
    assert.doesNotMatch(JSON.stringify(request.headers), /spoofed/);
  }
  const [http, appEngine] = [...fixture.target.received].sort((a) => (isHttp(a.headers) ? -1 : 1));
  assert.equal(http?.headers['user-agent'], 'Google-Cloud-Tasks');
  assert.equal(http?.headers['x-cloudtasks-taskretrycount'], '0');
  assert.equal(http?.headers['x-appengine-queuename'], undefined);
  assert.equal(http?.headers['content-type'], undefined, 'never made up for an HTTP target');
  assert.match(appEngine?.headers['user-agent'] ?? '', /^mine\/1 AppEngine-Google/);
  assert.equal(appEngine?.headers['x-appengine-queuename'], 'delay-queue');
  assert.equal(appEngine?.headers['x-appengine-failfast'], undefined);
  assert.equal(appEngine?.headers['content-type'], 'application/octet-stream');
});

const isHttp = (headers: object): boolean => 'x-cloudtasks-queuename' in headers;

test('gives the schedule time in seconds with microseconds', async () => {
  const seconds = START_MS / 1000 + 1;
  await create({ appEngineHttpRequest: {}, scheduleTime: { seconds, nanos: 1_234_567 } });
  fixture.clock.advance(2000);
  await received(1);
  assert.equal(fixture.target.received[0]?.headers['x-appengine-tasketa'], `${seconds}.001234`);
});

test('retries a target that refuses the connection, and delivers when it is there', async () => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  const name = await create({ httpRequest: { url: `http://127.0.0.1:${port}/` } });
  await idle();
  const [task] = await fixture.client.getTask({ name });
  assert.equal(task.dispatchCount, 1);
  assert.equal(task.responseCount, 0);
  assert.equal(task.lastAttempt?.responseStatus?.code, 14);
  assert.match(fixture.lines[0] ?? '', /ECONNREFUSED.* at attempt 1, next in 100 ms/);

  const sockets = answering(server, (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  fixture.clock.advance(100);
  await until(() => fixture.tasks.stats().pending === 0, 'the task is done');
  assert.match(sockets.requests[0] ?? '', /X-CloudTasks-TaskPreviousResponse: 503/);
  server.close();
});

test('takes a reset of a reused connection, and a response cut short, as failed attempts', async () => {
  const server = createServer();
  const used = new Set<Socket>();
  let afterReset = 0;
  const sockets = answering(server, (socket) => {
    if (afterReset > 0) afterReset += 1;
    if (afterReset === 2) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc');
    else if (afterReset > 2) socket.end('HTTP/1.1 204 No Content\r\n\r\n');
    else if (used.has(socket)) {
      afterReset = 1;
      socket.resetAndDestroy();
    } else {
      used.add(socket);
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  // On a busy machine a connection may be idle too long to be used for the next task.
  for (let tasks = 1; afterReset === 0; tasks += 1) {
    await create({ httpRequest: { url } });
    await until(() => sockets.requests.length === tasks, 'the next task');
    await idle();
  }
  const count = sockets.requests.length;
  assert.equal(fixture.tasks.stats().pending, 1, 'the one whose connection was reset');
  fixture.clock.advance(100);
  await until(() => sockets.requests.length === count + 1, 'its second attempt');
  await idle();
  assert.equal(fixture.tasks.stats().pending, 1);
  fixture.clock.advance(200);
  await until(() => fixture.tasks.stats().pending === 0, 'its third attempt');
  assert.equal(sockets.requests.length, count + 2);
  server.close();
});

test('closes an idle connection by itself, so that no request meets a target that closes it', async () => {
  const server = createServer();
  const ends: string[] = [];
  answering(server, (socket) => {
    // This target never closes it.
    socket.once('end', () => ends.push('by the sender'));
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  await create({ httpRequest: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` } });
  await until(() => ends.length > 0, 'the connection is closed');
  assert.deepEqual([ends, fixture.tasks.stats().succeeded], [['by the sender'], 1]);
  server.close();
});

test('retries an App Engine task while its service is not there', async () => {
  const routings: object[] = [];
  let found: string | undefined;
  const other = await startFixture({
    appEngine(routing) {
      routings.push(routing);
      if (routings.length === 1) throw new Error('not started');
      return found;
    },
  });
  try {
    const { client, parent, queue, target, clock, tasks } = other;
    const appEngineRoutingOverride = { service: 'republisher', version: 'v1' };
    await client.createQueue({ parent, queue: { name: queue, appEngineRoutingOverride } });
    const appEngineRouting = { service: 'overridden' };
    await client.createTask({ parent: queue, task: { appEngineHttpRequest: { appEngineRouting } } });
    for (const attempt of [1, 2]) {
      await until(() => other.lines.length === attempt, `attempt ${attempt} failed`);
      found = `${target.url}/`;
      if (attempt === 1) found = undefined;
      clock.advance(60_000);
    }
    await until(() => tasks.stats().pending === 0, 'the task is done');
    assert.deepEqual(routings, Array(3).fill(appEngineRoutingOverride));
    assert.equal(target.received[0]?.url, '/');
    assert.equal(target.received[0]?.headers['x-appengine-taskretryreason'], 'Instance Unavailable');
  } finally {
    await other.close();
  }
});

test('close aborts dispatches in flight and leaves no timer', async () => {
  const other = await startFixture();
  await other.client.createQueue({ parent: other.parent, queue: { name: other.queue } });
  other.target.answer.with = () => 'hang';
  const create = (scheduleTime?: object) =>
    other.client.createTask({
      parent: other.queue,
      task: { httpRequest: { url: other.target.url }, ...(scheduleTime && { scheduleTime }) },
    });
  await create();
  await create({ seconds: START_MS / 1000 + 60 });
  await until(() => other.target.received.length === 1, 'a request in flight');
  const aborted = once(other.target.received[0]?.response as object as NodeJS.EventEmitter, 'close');
  await Promise.all([other.tasks.close(), other.tasks.close()]);
  await aborted;
  assert.equal(other.clock.timers(), 0);
  await other.close();
});

/** Answers each request that arrives on a plain socket, counted over all connections. */
function answering(server: ReturnType<typeof createServer>, answer: (socket: Socket, n: number) => void) {
  const seen = { connections: 0, requests: [] as string[] };
  server.on('connection', (socket) => {
    seen.connections += 1;
    socket.on('error', () => undefined);
    socket.on('data', (data) => answer(socket, seen.requests.push(data.toString()) - 1));
  });
  return seen;
}
