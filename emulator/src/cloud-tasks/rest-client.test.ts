import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { identity } from '../identity.ts';
import { startFixture, START_MS, until, type Fixture } from './fixture.ts';
import { manualClock } from '../manual-clock.ts';
import { startRest, type RestFixture } from './rest-fixture.ts';

const UNKNOWN_QUEUE =
  'Queue does not exist. If you just created the queue, wait at least a minute for the queue to initialize.';

let fixture: Fixture;
let rest: RestFixture;
before(async () => {
  const clock = manualClock(START_MS);
  fixture = await startFixture({ clock, identity: identity(clock) });
  rest = await startRest(fixture.tasks.rest);
});
after(async () => {
  await rest.close();
  await fixture.close();
});

const nameOf = (id: string): string => `${fixture.parent}/queues/${id}`;
const createQueue = (id: string, settings: object = {}) =>
  rest.client.createQueue({ parent: fixture.parent, queue: { name: nameOf(id), ...settings } });

/** What both clients return for the same name is the same message. */
async function seenAlike(name: string): Promise<object> {
  const [overRest] = await rest.client.getTask({ name, responseView: 'FULL' });
  const [overGrpc] = await fixture.client.getTask({ name, responseView: 'FULL' });
  const plain = (task: object): unknown => JSON.parse(JSON.stringify(task));
  assert.deepEqual(plain(overRest), plain(overGrpc));
  return overRest;
}

test('a queue goes through its life over REST', async () => {
  const settings = {
    rateLimits: { maxDispatchesPerSecond: 1.5, maxConcurrentDispatches: 5 },
    retryConfig: { maxAttempts: -1, minBackoff: { nanos: 500_000_000 }, maxRetryDuration: { seconds: 90 } },
  };
  const [created] = await createQueue('life', settings);
  assert.equal(created.name, nameOf('life'));
  assert.equal(created.state, 'RUNNING');
  assert.equal(created.rateLimits?.maxDispatchesPerSecond, 1.5);
  assert.equal(created.retryConfig?.maxAttempts, -1);
  assert.equal(created.retryConfig?.minBackoff?.nanos, 500_000_000);
  assert.equal(Number(created.retryConfig?.maxRetryDuration?.seconds), 90);

  const queue = { name: nameOf('life'), retryConfig: { maxAttempts: 7, maxDoublings: 3 } };
  const updateMask = { paths: ['retry_config.max_attempts'] };
  const [updated] = await rest.client.updateQueue({ queue, updateMask });
  assert.equal(updated.retryConfig?.maxAttempts, 7);
  assert.equal(updated.retryConfig?.maxDoublings, 16);
  assert.equal(updated.rateLimits?.maxConcurrentDispatches, 5);

  assert.equal((await rest.client.pauseQueue({ name: nameOf('life') }))[0].state, 'PAUSED');
  assert.equal((await rest.client.resumeQueue({ name: nameOf('life') }))[0].state, 'RUNNING');
  const [purged] = await rest.client.purgeQueue({ name: nameOf('life') });
  assert.equal(Number(purged.purgeTime?.seconds), START_MS / 1000);
  assert.deepEqual((await rest.client.getQueue({ name: nameOf('life') }))[0], purged);
  await rest.client.deleteQueue({ name: nameOf('life') });
  await assert.rejects(rest.client.getQueue({ name: nameOf('life') }), {
    code: status.NOT_FOUND,
    message: new RegExp(UNKNOWN_QUEUE.slice(0, 40)),
  });
  assert.match(
    rest.requests[0] ?? '',
    /^POST \/v2\/projects\/[^?]+\/queues\?\$alt=json%3Benum-encoding=int$/,
  );
  assert.match(rest.requests[1] ?? '', /^PATCH \/v2\/projects\/[^?]+\/life\?updateMask=/);
});

test('a task goes through its life over REST, bytes and times untouched', async () => {
  await createQueue('tasks');
  const body = Buffer.from([0x1f, 0x8b, 0x08, 0x00, 0xff, 0xfe, 0x80]);
  const seconds = START_MS / 1000 + 5;
  const [created] = await rest.client.createTask({
    parent: nameOf('tasks'),
    responseView: 'FULL',
    task: {
      name: `${nameOf('tasks')}/tasks/t-1_a`,
      scheduleTime: { seconds, nanos: 250_001_000 },
      dispatchDeadline: { seconds: 20, nanos: 500_000_000 },
      httpRequest: {
        url: `${fixture.target.url}/x?y=%20z`,
        httpMethod: 'PUT',
        headers: { 'X-Name': 'a b', 'Content-Type': 'application/gzip' },
        body,
        oidcToken: { serviceAccountEmail: 'caller@demo-project.iam.gserviceaccount.com' },
      },
    },
  });
  const name = created.name ?? '';
  assert.equal(created.httpRequest?.httpMethod, 'PUT');
  assert.equal(created.view, 'FULL');
  assert.equal(created.scheduleTime?.nanos, 250_001_000);
  assert.equal(created.dispatchDeadline?.nanos, 500_000_000);
  await seenAlike(name);
  assert.equal((await rest.client.getTask({ name }))[0].httpRequest?.body?.length, 0, 'the basic view');

  fixture.clock.advance(5_251);
  await until(() => fixture.target.received.length === 1, 'the request');
  const [request] = fixture.target.received;
  assert.deepEqual(request?.body, body);
  assert.equal(request?.url, '/x?y=%20z');
  assert.equal(request?.method, 'PUT');
  assert.equal(request?.headers['content-type'], 'application/gzip');
  assert.match(request?.headers.authorization ?? '', /^Bearer /);
  await until(() => fixture.tasks.stats().pending === 0, 'done');
  await assert.rejects(rest.client.getTask({ name }), {
    code: status.NOT_FOUND,
    message: /existed recently/,
  });
});

test('runs, lists and deletes tasks over REST, and shows a failed attempt as gRPC does', async () => {
  await createQueue('listed');
  await rest.client.pauseQueue({ name: nameOf('listed') });
  const create = async (task: object) =>
    (await rest.client.createTask({ parent: nameOf('listed'), task }))[0].name ?? '';
  const appEngineRouting = { service: 'republisher', version: 'v1', instance: 'i' };
  const appEngineHttpRequest = { relativeUri: '/y', appEngineRouting, body: Buffer.from('{}') };
  const names = [
    await create({ appEngineHttpRequest }),
    await create({ httpRequest: { url: fixture.target.url } }),
    await create({ httpRequest: { url: fixture.target.url } }),
  ];
  const [first = '', second = ''] = names;
  fixture.target.answer.with = () => 404;
  const [running] = await rest.client.runTask({ name: first });
  assert.equal(running.dispatchCount, 1);
  await until(() => fixture.tasks.stats().inFlight === 0, 'failed');
  const seen = await seenAlike(first);
  assert.match(JSON.stringify(seen), /HTTP status code 404/);

  await rest.client.deleteTask({ name: second });
  const listed = await rest.client.listTasks({ parent: nameOf('listed'), pageSize: 1, responseView: 'FULL' });
  assert.deepEqual(
    listed[0].map(({ name }) => name),
    [names[0], names[2]],
  );
  const [queues] = await rest.client.listQueues({ parent: fixture.parent });
  assert.deepEqual(
    queues.map(({ name }) => name),
    [nameOf('listed'), nameOf('tasks')],
  );
});

test('errors arrive with the code and the text that gRPC gives', async () => {
  await createQueue('errors');
  const task = { name: `${nameOf('errors')}/tasks/a`, scheduleTime: { seconds: START_MS / 1000 + 3600 } };
  const httpRequest = { url: fixture.target.url };
  await rest.client.createTask({ parent: nameOf('errors'), task: { ...task, httpRequest } });
  const cases: readonly (readonly [(client: typeof rest.client) => Promise<unknown>, number])[] = [
    [(client) => client.createTask({ parent: nameOf('errors'), task: { ...task, httpRequest } }), 6],
    [(client) => client.createTask({ parent: nameOf('none'), task: { httpRequest } }), 5],
    [(client) => client.createTask({ parent: nameOf('errors'), task: {} }), 3],
    [(client) => client.createTask({ parent: nameOf('errors') }), 3],
    [(client) => client.createTask({ parent: nameOf('errors'), task: { httpRequest: { url: 'x' } } }), 3],
    [(client) => client.getTask({ name: `${nameOf('errors')}/tasks/ü ü` }), 3],
    [(client) => client.runTask({ name: `${nameOf('errors')}/tasks/none` }), 5],
    [(client) => client.listQueues({ parent: fixture.parent, filter: 'state: A OR state: B' }), 12],
    [(client) => client.listQueues({ parent: fixture.parent, filter: 'colour: red' }), 3],
    [(client) => client.getIamPolicy({ resource: nameOf('none') }), 5],
  ];
  for (const [call, code] of cases) {
    const [overRest, overGrpc] = await Promise.all(
      [rest.client, fixture.client].map(async (client) => {
        const error = (await call(client).catch((caught: unknown) => caught)) as Error & { code?: number };
        // The gRPC client puts the code in front of the text.
        return [error.code, error.message.replace(/^\d+ [A-Z_]+: /, '')] as const;
      }),
    );
    assert.equal(overGrpc?.[0], code, overGrpc?.[1]);
    assert.equal(overRest?.[0], code, overRest?.[1]);
    if (code !== 12) assert.equal(overRest?.[1], overGrpc?.[1]);
  }
});
