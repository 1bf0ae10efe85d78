import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startFixture, START_MS, until, type Fixture } from './fixture.ts';
import type { RestAnswer } from '../rest-error.ts';

let fixture: Fixture;
before(async () => {
  fixture = await startFixture();
  await call('POST', '/queues', { name: fixture.queue });
  await call('POST', '/queues/delay-queue:pause');
});
after(() => fixture.close());

const BASE = '/v2/projects/demo-project/locations/us-central1';

async function call(method: string, path: string, body?: unknown): Promise<RestAnswer> {
  const [at = '', query = ''] = path.split('?');
  const text = body === undefined || typeof body === 'string' ? (body ?? '') : JSON.stringify(body);
  const answer = await fixture.tasks.rest(method, `${BASE}${at}`, query, Buffer.from(text));
  assert.ok(answer);
  return answer;
}
const post = (body: unknown, query = '') => call('POST', `/queues/delay-queue/tasks${query}`, body);
const messageOf = ({ body }: RestAnswer): string => (body as { error: { message: string } }).error.message;

test('answers proto3 JSON: camel case, times in RFC 3339, durations in seconds, defaults left out', async () => {
  assert.deepEqual(await call('GET', '/queues/delay-queue'), {
    status: 200,
    body: {
      name: fixture.queue,
      rateLimits: { maxDispatchesPerSecond: 500, maxBurstSize: 100, maxConcurrentDispatches: 1000 },
      retryConfig: { maxAttempts: 100, minBackoff: '0.100s', maxBackoff: '3600s', maxDoublings: 16 },
      state: 'PAUSED',
    },
  });
  const task = {
    name: `${fixture.queue}/tasks/json`,
    schedule_time: '2027-01-01T02:00:03.25+02:00',
    dispatchDeadline: '20.5s',
    httpRequest: { url: 'http://127.0.0.1:9/', httpMethod: 'PUT', body: '_-4', headers: { a: 'b' } },
  };
  const { status, body } = await post({ task, responseView: 'FULL' });
  assert.equal(status, 200);
  assert.deepEqual(body, {
    name: `${fixture.queue}/tasks/json`,
    httpRequest: {
      url: 'http://127.0.0.1:9/',
      httpMethod: 'PUT',
      headers: { a: 'b', 'User-Agent': 'Google-Cloud-Tasks' },
      body: '/+4=',
    },
    scheduleTime: '2027-01-01T00:00:03.250Z',
    createTime: '2027-01-01T00:00:00Z',
    dispatchDeadline: '20.500s',
    view: 'FULL',
  });
});

test('writes enums as numbers when asked, and reads both', async () => {
  const query = '?$alt=json%3Benum-encoding=int&$prettyPrint=0&key=k';
  const task = { httpRequest: { url: 'http://127.0.0.1:9/', httpMethod: 4 } };
  const { body } = await post({ task, responseView: 2 }, query);
  const { view, httpRequest } = body as { view: unknown; httpRequest: { httpMethod: unknown } };
  assert.deepEqual([view, httpRequest.httpMethod], [2, 4]);
  for (const [view, seen] of [
    ['FULL', 'FULL'],
    ['2', 'FULL'],
    ['1', 'BASIC'],
  ]) {
    const got = await call('GET', `/queues/delay-queue/tasks/json?responseView=${view}&alt=json`);
    assert.equal((got.body as { view: unknown }).view, seen);
  }
});

test('B25: refuses a body that it cannot read, base64 that is none included, naming the place', async () => {
  const http = (request: object) => ({
    task: { httpRequest: { url: 'http://127.0.0.1:9/', ...request } },
  });
  const refused: readonly (readonly [unknown, RegExp])[] = [
    ['{', /^Invalid JSON payload received\. SyntaxError/],
    ['[]', /The root must be an object/],
    ['"x"', /The root must be an object/],
    [{ tusk: {} }, /Unknown name "tusk": Cannot find field/],
    [{ task: { httpRequest: { uri: 'x' } } }, /Unknown name "uri" at 'task\.http_request'/],
    [{ task: [] }, /Invalid value at 'task'/],
    [http({ body: '%' }), /Invalid value at 'task\.http_request\.body', "%"/],
    [http({ body: 'abcde' }), /task\.http_request\.body/],
    [http({ body: 'ab=' }), /task\.http_request\.body/],
    [http({ body: 'not base64!' }), /task\.http_request\.body/],
    [http({ body: 7 }), /task\.http_request\.body/],
    [http({ httpMethod: 'FETCH' }), /task\.http_request\.http_method/],
    [http({ httpMethod: 99 }), /task\.http_request\.http_method/],
    [http({ headers: { a: 1 } }), /task\.http_request\.headers/],
    [{ task: { scheduleTime: 'tomorrow' } }, /task\.schedule_time/],
    [{ task: { scheduleTime: '2027-02-30T00:00:00Z' } }, /task\.schedule_time/],
    [{ task: { scheduleTime: '2027-01-01T00:00:00' } }, /task\.schedule_time/],
    [{ task: { scheduleTime: START_MS } }, /task\.schedule_time/],
    [{ task: { dispatchDeadline: '20' } }, /task\.dispatch_deadline/],
    [{ task: { dispatchDeadline: { seconds: 20 } } }, /task\.dispatch_deadline/],
    [{ ...http({}), responseView: 'ALL' }, /response_view/],
    [{ task: { ...http({}).task, dispatchDeadline: '-20s' } }, /not a valid Duration/],
    [{ task: { ...http({}).task, scheduleTime: '2027-02-01T00:00:00Z' } }, /720h/],
  ];
  for (const [body, text] of refused) {
    const answer = await post(body);
    assert.equal(answer.status, 400, JSON.stringify(body));
    assert.match(messageOf(answer), text);
    const { error } = answer.body as { error: object };
    assert.deepEqual(error, { code: 400, message: messageOf(answer), status: 'INVALID_ARGUMENT' });
  }
  const queue = { rateLimits: { maxConcurrentDispatches: 1.5 } };
  assert.match(
    messageOf(await call('PATCH', '/queues/delay-queue', queue)),
    /max_concurrent_dispatches', 1\.5/,
  );
});

test('refuses a query or a body where none belongs, and a form that it does not speak', async () => {
  const refused: readonly (readonly [string, string, unknown, RegExp])[] = [
    ['GET', '/queues?pageSize=x', undefined, /Invalid value at 'page_size'/],
    ['GET', '/queues?page=1', undefined, /Cannot bind query parameter\. Field 'page' could not be found/],
    ['GET', '/queues?fields=name', undefined, /Field 'fields'/],
    ['GET', '/queues?alt=media', undefined, /"media"; accepted are json/],
    ['GET', '/queues', { parent: 'x' }, /takes no body/],
    ['POST', '/queues?queue=x', { name: fixture.queue }, /Field 'queue'/],
  ];
  for (const [method, path, body, text] of refused) {
    const answer = await call(method, path, body);
    assert.equal(answer.status, 400, path);
    assert.match(messageOf(answer), text);
  }
});

test('the path names what is meant, whatever the body says', async () => {
  const body = { name: 'projects/p/locations/l/queues/other', retryConfig: { maxAttempts: '3' } };
  const changed = await call('PATCH', '/queues/delay-queue?updateMask=retryConfig.maxAttempts', body);
  assert.equal(changed.status, 200);
  const { name, retryConfig } = changed.body as { name: string; retryConfig: { maxAttempts: number } };
  assert.deepEqual([name, retryConfig.maxAttempts], [fixture.queue, 3]);
  const snake = await call('PATCH', '/queues/delay-queue?updateMask=retry_config,rate_limits', {});
  assert.equal(snake.status, 200);
});

test('maps codes to HTTP statuses', async () => {
  const at = (path: string, method = 'GET', body?: unknown) => call(method, path, body);
  assert.equal((await at('/queues/none')).status, 404);
  assert.equal((await at('/queues', 'POST', { name: fixture.queue })).status, 409);
  const logged = { name: `${fixture.parent}/queues/logged`, stackdriverLoggingConfig: { samplingRatio: 1 } };
  assert.equal((await at('/queues', 'POST', logged)).status, 501);
  assert.equal((await at('/queues/delay-queue', 'PUT', {})).status, 404);
  assert.equal((await at('/queues/delay-queue/tasks/json:stop', 'POST', {})).status, 404);
  await call('POST', '/queues', { name: `${fixture.parent}/queues/gone` });
  assert.deepEqual(await at('/queues/gone', 'DELETE', '""'), { status: 200, body: {} });
  const again = await at('/queues', 'POST', { name: `${fixture.parent}/queues/gone` });
  assert.deepEqual(
    [again.status, (again.body as { error: { status: string } }).error.status],
    [400, 'FAILED_PRECONDITION'],
  );
  assert.match(messageOf(await at('/queues/%zz')), /Queue name must be formatted/);
});

test('leaves paths of others alone', async () => {
  for (const path of [
    '/',
    '/state',
    '/v1/projects/p/topics/t:publish',
    '/v2/projects/p/topics',
    '/v2beta3/projects/p/locations/l/queues',
  ]) {
    assert.equal(await fixture.tasks.rest('GET', path, '', Buffer.alloc(0)), undefined);
  }
});

test('dispatches what was created over REST', async () => {
  await call('POST', '/queues/delay-queue:purge', {});
  const { body } = await post({ task: { appEngineHttpRequest: { relativeUri: '/r', body: 'AAH/' } } });
  const { name } = body as { name: string };
  await call('POST', `/queues/delay-queue/tasks/${name.slice(-20)}:run`, {});
  await until(() => fixture.target.received.length === 1, 'the request');
  assert.deepEqual(fixture.target.received[0]?.body, Buffer.from([0, 1, 0xff]));
});
