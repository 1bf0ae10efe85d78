import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import type { CloudTasksClient } from '@google-cloud/tasks';
import { startCloudTasks, turnsDuring } from 'pubsub-guarantees-emulator';
import { systemClock } from '../../../shared/src/clock.ts';
import { PermanentError, TransientError } from '../../../shared/src/errors.ts';
import { virtualClock } from '../../../shared/src/testing/virtual-clock.ts';
import { cloudTasksClient, cloudTasksQueue, timestampOf } from '../../../shared/src/tasks/cloud-tasks.ts';
import type { Task } from '../../../shared/src/tasks/task-queue.ts';
import { refusal } from '../../../shared/src/testing/refusal.ts';

const LOCATION = 'projects/demo-project/locations/us-central1';
const QUEUE = `${LOCATION}/queues/delay-queue`;
const HTTP = { url: 'https://r.example', serviceAccount: 'caller@p.iam.gserviceaccount.com' };
const task = (change: Partial<Task> = {}): Task => ({
  name: 'a-name',
  scheduleTimeMs: Date.UTC(2030, 0, 1),
  body: Buffer.from([0x00, 0xff, 0xfe, 0x80, 0xc3, 0x28]),
  ...change,
});

/** A client that records what it is asked, and answers or fails as the test says. */
function fakeClient(answer: () => Promise<unknown> = async () => [{}]) {
  const calls: { request: Record<string, unknown>; options: unknown }[] = [];
  const createTask = (request: Record<string, unknown>, options: unknown): Promise<unknown> => {
    calls.push({ request, options });
    return answer();
  };
  return { client: { createTask } as unknown as CloudTasksClient, calls };
}
const failing = (code: number): CloudTasksClient =>
  fakeClient(() => Promise.reject(Object.assign(new Error('said so'), { code }))).client;

test('asks for an App Engine target by its service, with the body as bytes', async () => {
  const { client, calls } = fakeClient();
  const queue = cloudTasksQueue(client, { queue: QUEUE, target: { appEngine: { service: 'later' } } });
  assert.equal(await queue.create(task({ scheduleTimeMs: 1_900_000_000_123 })), 'created');
  assert.deepEqual(calls[0], {
    request: {
      parent: QUEUE,
      task: {
        name: `${QUEUE}/tasks/a-name`,
        scheduleTime: { seconds: 1_900_000_000, nanos: 123_000_000 },
        appEngineHttpRequest: {
          httpMethod: 'POST',
          headers: { 'Content-Type': 'application/octet-stream' },
          relativeUri: '/republish',
          appEngineRouting: { service: 'later' },
          body: task().body,
        },
      },
    },
    options: { timeout: 10_000 },
  });
});

test('asks for an HTTP target with a token of the service account, for its audience', async () => {
  for (const [target, url, audience] of [
    [HTTP, 'https://r.example/republish', 'https://r.example'],
    [{ ...HTTP, audience: 'later' }, 'https://r.example/republish', 'later'],
    [
      { ...HTTP, url: 'https://r.example/base/republish?x=1' },
      'https://r.example/base/republish?x=1',
      undefined,
    ],
  ] as const) {
    const { client, calls } = fakeClient();
    await cloudTasksQueue(client, { queue: QUEUE, target }).create(task());
    const { httpRequest } = calls[0]!.request['task'] as { httpRequest: Record<string, unknown> };
    assert.equal(httpRequest['url'], url);
    const oidcToken = { serviceAccountEmail: HTTP.serviceAccount, audience: audience ?? url };
    assert.deepEqual(httpRequest['oidcToken'], oidcToken);
  }
});

test('B41: a schedule time is whole seconds and nanoseconds, and never rounded down', () => {
  assert.deepEqual(timestampOf(1_900_000_000_000), { seconds: 1_900_000_000, nanos: 0 });
  assert.deepEqual(timestampOf(1_900_000_000_999), { seconds: 1_900_000_000, nanos: 999_000_000 });
  assert.deepEqual(timestampOf(1_900_000_000_999.2), { seconds: 1_900_000_001, nanos: 0 });
  assert.deepEqual(timestampOf(0.5), { seconds: 0, nanos: 1_000_000 });
  assert.deepEqual(timestampOf(-1), { seconds: -1, nanos: 999_000_000 });
});

test('B20: ALREADY_EXISTS is success', async () => {
  const queue = cloudTasksQueue(failing(6), { queue: QUEUE, target: { appEngine: {} } });
  assert.equal(await queue.create(task()), 'exists');
});

test('only what can never succeed is permanent; a missing queue and everything unknown is tried again', async () => {
  const options = { queue: QUEUE, target: { appEngine: {} }, retryTimeout: '0s' } as const;
  for (let code = 0; code <= 17; code += 1) {
    if (code === 6) continue;
    const queue = cloudTasksQueue(failing(code), options);
    const kind = code === 3 || code === 11 ? PermanentError : TransientError;
    await assert.rejects(queue.create(task()), (error) => {
      assert.ok(error instanceof kind, `code ${code}`);
      assert.match(error.message, /queues\/delay-queue .*: said so$/);
      return true;
    });
  }
  const odd = fakeClient(() => Promise.reject(new Error('no code'))).client;
  const queue = cloudTasksQueue(odd, options);
  await assert.rejects(queue.create(task()), { code: 'TASK_QUEUE_UNAVAILABLE' });
});

test('B21: a call that hangs is a transient error after its time limit', async () => {
  const clock = virtualClock();
  const { client } = fakeClient(() => new Promise(() => {}));
  const queue = cloudTasksQueue(client, {
    queue: QUEUE,
    target: { appEngine: {} },
    callTimeout: '3s',
    clock,
  });
  await assert.rejects(clock.until(queue.create(task())), (error) => error instanceof TransientError);
  assert.equal(clock.monotonic(), 3_000);
});

test('what could never be called is refused at the start', () => {
  const { client } = fakeClient();
  const make = (change: object) => () =>
    cloudTasksQueue(client, { queue: QUEUE, target: { appEngine: {} }, ...change });
  assert.throws(make({ queue: 'delay-queue' }), refusal('queue'));
  assert.throws(make({ target: { ...HTTP, url: 'r.example' } }), refusal('target.url'));
  assert.throws(make({ target: { ...HTTP, url: 'ftp://r.example' } }), refusal('target.url'));
  assert.throws(
    make({ target: { ...HTTP, url: 'http://r.example' } }),
    refusal('target.url', /accepted: an https URL/),
  );
  assert.throws(make({ target: { ...HTTP, serviceAccount: 'caller' } }), refusal('target.serviceAccount'));
  assert.throws(make({ callTimeout: 'soon' }), refusal('callTimeout'));
  for (const emulatorHost of [
    '127.0.0.1',
    'http://127.0.0.1:1',
    ':1',
    '127.0.0.1:0',
    '127.0.0.1:65536',
    '',
  ]) {
    assert.throws(() => cloudTasksClient({ emulatorHost }), refusal('emulatorHost'), emulatorHost);
  }
});

type Received = { body: Buffer; headers: Record<string, unknown>; atMs: number };

/** A local Cloud Tasks server with a queue, and what its App Engine target receives. */
async function local(t: TestContext) {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const received: Received[] = [];
  const target = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
      received.push({ body: Buffer.concat(chunks), headers: request.headers, atMs: Date.now() });
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(target.address() as AddressInfo).port}`;
  const server = await startCloudTasks({ clock: systemClock(), appEngine: () => url });
  const client = cloudTasksClient({ emulatorHost: server.address });
  t.after(async () => {
    await client.close();
    await server.close();
    target.closeAllConnections();
    target.close();
  });
  const queue = cloudTasksQueue(client, { queue: QUEUE, target: { appEngine: {} }, callTimeout: '5s' });
  const createQueue = () => client.createQueue({ parent: LOCATION, queue: { name: QUEUE } });
  return { client, queue, createQueue, received };
}

test('B25: against a local server: one task for a name, dispatched at its time, byte for byte', async (t) => {
  const { queue, createQueue, received } = await local(t);
  await createQueue();
  const scheduleTimeMs = Date.now() + 300;
  assert.equal(await queue.create(task({ scheduleTimeMs })), 'created');
  assert.equal(await queue.create(task({ scheduleTimeMs })), 'exists');
  for (let look = 0; look < 12_000 && received.length === 0; look += 1) await wait(10);
  assert.equal(received.length, 1);
  assert.deepEqual(received[0]?.body, task().body);
  assert.ok((received[0]?.atMs ?? 0) >= scheduleTimeMs);
  assert.equal(received[0]?.headers['content-type'], 'application/octet-stream');
  assert.equal(await queue.create(task({ scheduleTimeMs })), 'exists');
});

test('against a local server: a missing queue is transient, 30 days and more are permanent', async (t) => {
  const { queue, createQueue } = await local(t);
  await assert.rejects(queue.create(task()), (error) => {
    assert.ok(error instanceof TransientError);
    assert.equal(error.code, 'TASK_QUEUE_MISSING');
    return true;
  });
  await createQueue();
  const tooFar = Date.now() + 721 * 3_600_000;
  await assert.rejects(queue.create(task({ scheduleTimeMs: tooFar })), { code: 'TASK_REFUSED' });
  assert.equal(await queue.create(task({ scheduleTimeMs: Date.now() + 708 * 3_600_000 })), 'created');
});

test('against a local server: what the queue says it adds is not less than what it adds', async (t) => {
  const { client, queue, createQueue } = await local(t);
  await createQueue();
  const given = task({ name: 'n'.repeat(43), scheduleTimeMs: Date.now() + 3_600_000 });
  await queue.create(given);
  const [stored] = await client.getTask({ name: `${QUEUE}/tasks/${given.name}`, responseView: 'FULL' });
  const { headers, relativeUri, appEngineRouting } = stored.appEngineHttpRequest ?? {};
  const text = [stored.name, headers, relativeUri, appEngineRouting]
    .map((part) => JSON.stringify(part))
    .join('');
  assert.ok(queue.overheadBytes >= text.length, `${queue.overheadBytes} < ${text.length}`);
});

test('a server that is not there is a transient error within the time limit', async () => {
  const client = cloudTasksClient({ emulatorHost: '127.0.0.1:9' });
  const options = { queue: QUEUE, target: { appEngine: {} }, callTimeout: '2s', retryTimeout: '1s' } as const;
  const queue = cloudTasksQueue(client, options);
  const rejects = () => assert.rejects(queue.create(task()), (error) => error instanceof TransientError);
  assert.ok((await turnsDuring(rejects)) < 4_000);
  await client.close();
});

const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
