import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { startFixture, type Fixture } from './fixture.ts';

const HOUR_MS = 3_600_000;

let fixture: Fixture;
before(async () => {
  fixture = await startFixture();
  await fixture.client.createQueue({ parent: fixture.parent, queue: { name: fixture.queue } });
  // Nothing here is about dispatching.
  await fixture.client.pauseQueue({ name: fixture.queue });
});
after(() => fixture.close());

const create = async (task: object) => {
  const [created] = await fixture.client.createTask({ parent: fixture.queue, task, responseView: 'FULL' });
  return created;
};
const http = (request: object = {}) => ({ httpRequest: { url: 'http://127.0.0.1:9/x', ...request } });
const appEngine = (request: object = {}) => ({ appEngineHttpRequest: { relativeUri: '/x', ...request } });
const inMs = (ms: number) => {
  const at = fixture.clock.now() + ms;
  return { seconds: Math.floor(at / 1000), nanos: (at % 1000) * 1e6 };
};

function refusal(code: number, text: string | RegExp) {
  return (error: Error & { code?: number; details?: string }) => {
    assert.equal(error.code, code, error.message);
    if (typeof text === 'string') assert.equal(error.details, text);
    else assert.match(error.details ?? '', text);
    return true;
  };
}
const invalid = (text: string | RegExp) => refusal(status.INVALID_ARGUMENT, text);

test('makes up a name, and fills in method, deadline, times and headers', async () => {
  const created = await create(http({ body: Buffer.from('x') }));
  assert.match(created.name ?? '', new RegExp(`^${fixture.queue}/tasks/[0-9]{20}$`));
  assert.equal(created.httpRequest?.httpMethod, 'POST');
  assert.equal(Number(created.dispatchDeadline?.seconds), 600);
  assert.equal(Number(created.scheduleTime?.seconds), fixture.clock.now() / 1000);
  assert.equal(Number(created.createTime?.seconds), fixture.clock.now() / 1000);
  assert.equal(created.dispatchCount, 0);
  assert.equal(created.view, 'FULL');
  assert.deepEqual({ ...created.httpRequest?.headers }, { 'User-Agent': 'Google-Cloud-Tasks' });
  assert.notEqual((await create(http())).name, created.name);
});

test('keeps the headers that the recordings show, for both kinds of target', async () => {
  const agent = 'AppEngine-Google; (+http://code.google.com/appengine)';
  const body = Buffer.alloc(17);
  const given = { 'X-Mixed-Case': 'preserve-me', 'content-type': 'application/json' };
  const ofHttp = await create(http({ body, headers: given }));
  assert.deepEqual({ ...ofHttp.httpRequest?.headers }, { ...given, 'User-Agent': 'Google-Cloud-Tasks' });
  const ofAppEngine = await create(appEngine({ body, headers: given }));
  assert.deepEqual(
    { ...ofAppEngine.appEngineHttpRequest?.headers },
    {
      ...given,
      'Content-Length': '17',
      'User-Agent': agent,
    },
  );
  const plain = await create(appEngine({ body, headers: { 'user-agent': 'mine/1' } }));
  assert.deepEqual(
    { ...plain.appEngineHttpRequest?.headers },
    {
      'Content-Length': '17',
      'Content-Type': 'application/octet-stream',
      'User-Agent': `mine/1 ${agent}`,
    },
  );
});

test('answers the recorded errors for illegal names', async () => {
  for (const id of ['orders/42 ü', 'not a valid id', '', 'x'.repeat(501)]) {
    await assert.rejects(
      create({ name: `${fixture.queue}/tasks/${id}`, ...http() }),
      invalid(
        `Task ID "${id}" can contain only letters ([A-Za-z]), numbers ([0-9]), hyphens (-), or underscores (_). Task ID must between 1 and 500 characters.`,
      ),
    );
  }
  await create({ name: `${fixture.queue}/tasks/${'x'.repeat(500)}`, ...http() });
  await assert.rejects(
    create({ name: `${fixture.queue}-other/tasks/a`, ...http() }),
    invalid(
      `The queue name from request ('${fixture.queue}') must be the same as the queue name in the named task ('${fixture.queue}-other').`,
    ),
  );
  await assert.rejects(create({ name: 'a', ...http() }), invalid(/^Task name must be formatted/));
});

test('answers ALREADY_EXISTS for a name in use and for an hour after the task is gone', async () => {
  const { client, clock } = fixture;
  const named = { name: `${fixture.queue}/tasks/t-x`, ...http() };
  const exists = refusal(status.ALREADY_EXISTS, 'Requested entity already exists');
  await create(named);
  await assert.rejects(create(named), exists);
  await client.deleteTask({ name: named.name });
  await assert.rejects(
    client.getTask({ name: named.name }),
    refusal(
      status.NOT_FOUND,
      'The task no longer exists, though a task with this name existed recently. The task either successfully completed or was deleted.',
    ),
  );
  clock.advance(HOUR_MS - 1);
  await assert.rejects(create(named), exists);
  clock.advance(1);
  await assert.rejects(
    client.getTask({ name: named.name }),
    refusal(status.NOT_FOUND, 'Requested entity was not found.'),
  );
  await create(named);
});

test('answers NOT_FOUND as recorded for an unknown task', async () => {
  const unknown = refusal(status.NOT_FOUND, 'Requested entity was not found.');
  const name = `${fixture.queue}/tasks/unknown`;
  await assert.rejects(fixture.client.getTask({ name }), unknown);
  await assert.rejects(fixture.client.deleteTask({ name }), unknown);
  await assert.rejects(fixture.client.runTask({ name }), unknown);
});

test('takes an absent or past schedule time as now', async () => {
  const now = fixture.clock.now() / 1000;
  for (const scheduleTime of [undefined, { seconds: 0 }, { seconds: -31_536_000 }, inMs(-1)]) {
    const created = await create({ ...http(), ...(scheduleTime && { scheduleTime }) });
    assert.equal(Number(created.scheduleTime?.seconds), now);
  }
});

test('accepts a schedule time of 720 hours ahead and refuses anything beyond, and nonsense', async () => {
  await create({ ...http(), scheduleTime: inMs(720 * HOUR_MS) });
  await assert.rejects(
    create({ ...http(), scheduleTime: inMs(720 * HOUR_MS + 1) }),
    invalid(
      'The Task.scheduleTime, 2027-01-30T17:00:00-08:00, is too far in the future. Schedule time must be no more than 720h in the future.',
    ),
  );
  await assert.rejects(create({ ...http(), scheduleTime: { seconds: 253_402_300_799 } }), invalid(/720h/));
  await assert.rejects(
    create({ ...http(), scheduleTime: { seconds: 1e15 } }),
    invalid(/not a valid Timestamp/),
  );
  await assert.rejects(create({ ...http(), scheduleTime: { nanos: -1 } }), invalid(/not a valid Timestamp/));
});

test('checks the URL of an HTTP target', async () => {
  const scheme = invalid("HttpTarget.url must start with 'http://' or 'https://'.");
  await assert.rejects(create(http({ url: '' })), invalid('HttpRequest.url is required.'));
  for (const url of ['127.0.0.1/x', 'ftp://127.0.0.1/x', '/x'])
    await assert.rejects(create(http({ url })), scheme);
  for (const url of ['http://', 'http://127.0.0.1:99999/']) {
    await assert.rejects(create(http({ url })), invalid(/is not a valid URL/));
  }
  await assert.rejects(create(http({ url: `http://h/${'x'.repeat(2075)}` })), invalid(/2084 characters/));
  const created = await create(http({ url: 'http://127.0.0.1:9/%zz' }));
  assert.equal(created.httpRequest?.url, 'http://127.0.0.1:9/%zz');
});

test('checks the relative URI of an App Engine target, "/" where there is none', async () => {
  await assert.rejects(create(appEngine({ relativeUri: 'x' })), invalid(/must begin with "\/"/));
  await assert.rejects(create(appEngine({ relativeUri: '/a b' })), invalid(/spaces/));
  await assert.rejects(
    create(appEngine({ relativeUri: `/${'x'.repeat(2083)}` })),
    invalid(/2084 characters/),
  );
  assert.equal((await create(appEngine({ relativeUri: '' }))).appEngineHttpRequest?.relativeUri, '/');
});

test('shows the routing of an App Engine target with its host', async () => {
  const { appEngineHttpRequest } = await create(
    appEngine({ appEngineRouting: { service: 'republisher', version: 'v1', host: 'ignored' } }),
  );
  assert.equal(appEngineHttpRequest?.appEngineRouting?.service, 'republisher');
  assert.equal(appEngineHttpRequest?.appEngineRouting?.host, 'v1.republisher.demo-project.appspot.com');
});

test('accepts a body only with the methods that may have one', async () => {
  const body = Buffer.from('x');
  for (const httpMethod of ['POST', 'PUT', 'PATCH']) await create(http({ httpMethod, body }));
  for (const httpMethod of ['GET', 'HEAD', 'DELETE', 'OPTIONS']) {
    await create(http({ httpMethod }));
    await assert.rejects(create(http({ httpMethod, body })), invalid(/A body is allowed/));
  }
  await create(appEngine({ httpMethod: 'PUT', body }));
  await assert.rejects(create(appEngine({ httpMethod: 'PATCH', body })), invalid(/A body is allowed/));
});

test('checks headers: what cannot be sent, doubles, and 80 KB', async () => {
  await assert.rejects(create(http({ headers: { 'a b': 'x' } })), invalid(/cannot be sent/));
  await assert.rejects(create(http({ headers: { a: 'x\r\ny: z' } })), invalid(/cannot be sent/));
  await assert.rejects(create(http({ headers: { a: 'Łódź' } })), invalid(/cannot be sent/));
  await assert.rejects(create(http({ headers: { a: '1', A: '2' } })), invalid(/given twice/));
  await assert.rejects(create(http({ headers: { a: 'x'.repeat(81_919) } })), invalid(/80KB/));
});

test('accepts deadlines in the interval of the kind of target', async () => {
  const withDeadline = (target: object, seconds: number) =>
    create({ ...target, dispatchDeadline: { seconds } }).then((task) =>
      Number(task.dispatchDeadline?.seconds),
    );
  assert.equal(await withDeadline(http(), 15), 15);
  assert.equal(await withDeadline(http(), 1800), 1800);
  assert.equal(await withDeadline(appEngine(), 86_415), 86_415);
  assert.equal(await withDeadline(appEngine(), 0), 600);
  for (const seconds of [0, 14, 1801])
    await assert.rejects(withDeadline(http(), seconds), invalid(/must be between \[15s, /));
  for (const seconds of [14, 86_416])
    await assert.rejects(withDeadline(appEngine(), seconds), invalid(/must be between \[15s, /));
  await assert.rejects(withDeadline(http(), -20), invalid(/dispatchDeadline/));
});

test('accepts a task of 1,048,569 bytes as stored and refuses one more', async () => {
  const name = `${fixture.queue}/tasks/size`;
  await assert.rejects(
    create({ name, ...http({ body: Buffer.alloc(1_100_000) }) }),
    invalid(/at most 1048569/),
  );
  const sizeOf = async (bytes: number): Promise<number> => {
    const error = await create({ name, ...http({ body: Buffer.alloc(bytes) }) }).catch(
      (caught: Error) => caught,
    );
    return Number(/(\d+) bytes as stored/.exec((error as Error).message)?.[1] ?? Number.NaN);
  };
  const overhead = (await sizeOf(1_100_000)) - 1_100_000;
  await assert.rejects(
    create({ name, ...http({ body: Buffer.alloc(1_048_570 - overhead) }) }),
    invalid(/1048570 bytes/),
  );
  await create({ name, ...http({ body: Buffer.alloc(1_048_569 - overhead) }) });
});

test('accepts 100 KB and no more where that is the cap, for both kinds of target', async () => {
  const cap = 102_400;
  const small = await startFixture({ maxTaskBytes: cap });
  try {
    const { client, parent, queue } = small;
    await client.createQueue({ parent, queue: { name: queue } });
    await client.pauseQueue({ name: queue });
    for (const target of [http, appEngine]) {
      const name = `${queue}/tasks/${target === http ? 'http' : 'app-engine'}`;
      const attempt = (bytes: number) =>
        client.createTask({ parent: queue, task: { name, ...target({ body: Buffer.alloc(bytes) }) } });
      const error = await attempt(cap).catch((caught: Error) => caught);
      const overhead = Number(/(\d+) bytes as stored/.exec((error as Error).message)?.[1]) - cap;
      assert.ok(overhead > 0 && overhead < 500, String(overhead));
      await assert.rejects(attempt(cap - overhead + 1), invalid(/102401 bytes .* at most 102400/));
      await attempt(cap - overhead);
    }
  } finally {
    await small.close();
  }
});

test('takes tasks in a queue that is called "tasks"', async () => {
  const { client, parent } = fixture;
  const queue = `${parent}/queues/tasks`;
  await client.createQueue({ parent, queue: { name: queue } });
  await client.pauseQueue({ name: queue });
  const name = `${queue}/tasks/tasks`;
  await client.createTask({ parent: queue, task: { name, ...http() } });
  assert.equal((await client.getTask({ name }))[0].name, name);
});

test('refuses what it cannot do and what is missing', async () => {
  const serviceAccountEmail = 'a@demo-project.iam.gserviceaccount.com';
  await assert.rejects(
    create(http({ oidcToken: { serviceAccountEmail } })),
    refusal(status.UNIMPLEMENTED, /oidcToken/),
  );
  await assert.rejects(
    create(http({ oauthToken: { serviceAccountEmail } })),
    refusal(status.UNIMPLEMENTED, /oauthToken/),
  );
  await assert.rejects(
    create(http({ url: 'http://me:secret@h/' })),
    refusal(status.UNIMPLEMENTED, /user name/),
  );
  await assert.rejects(create({}), invalid(/needs a target/));
  await assert.rejects(fixture.client.createTask({ parent: fixture.queue }), invalid(/task is required/));
});

test('shows the body in the full view only', async () => {
  const body = Buffer.from([0x1f, 0x8b, 0x08, 0x00, 0xff, 0xfe]);
  const { name } = await create(http({ body }));
  const [basic] = await fixture.client.getTask({ name: name ?? '' });
  const [full] = await fixture.client.getTask({ name: name ?? '', responseView: 'FULL' });
  assert.equal(basic.view, 'BASIC');
  assert.equal(basic.httpRequest?.body?.length, 0);
  assert.deepEqual(Buffer.from(full.httpRequest?.body as Uint8Array), body);
});

test('lists tasks page by page, also while others are deleted, and ends a page before it is too large', async () => {
  const { client, parent } = fixture;
  const queue = `${parent}/queues/listed`;
  await client.createQueue({ parent, queue: { name: queue } });
  await client.pauseQueue({ name: queue });
  const add = (id: string, body = Buffer.alloc(0)) =>
    client.createTask({ parent: queue, task: { name: `${queue}/tasks/${id}`, ...http({ body }) } });
  for (const id of ['a', 'b', 'c', 'd', 'e']) await add(id, Buffer.alloc(900_000));
  const page = async (options: object) => {
    const [tasks, , reply] = await client.listTasks({ parent: queue, ...options }, { autoPaginate: false });
    return {
      ids: tasks.map((task) => (task.name ?? '').slice(-1)).join(''),
      token: reply?.nextPageToken ?? '',
    };
  };
  const first = await page({ pageSize: 2 });
  assert.equal(first.ids, 'ab');
  await client.deleteTask({ name: `${queue}/tasks/b` });
  await client.deleteTask({ name: `${queue}/tasks/c` });
  const rest = await page({ pageSize: 2, pageToken: first.token });
  assert.deepEqual(rest, { ids: 'de', token: '' });
  await add('f', Buffer.alloc(900_000));
  const full = await page({ responseView: 'FULL' });
  assert.equal(full.ids, 'ade');
  assert.equal((await page({ responseView: 'FULL', pageToken: full.token })).ids, 'f');
  assert.equal((await client.listTasks({ parent: queue }))[0].length, 4);
});
