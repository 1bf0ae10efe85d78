/** CreateTask: what the requests of tasks may look like, for HTTP and for App Engine. */
import assert from 'node:assert/strict';
import { createTask, later, openQueue, refused, section, type TasksCase } from '../section.ts';
import { APP_ENGINE_REQUEST, HTTP_REQUEST, RECORDED, TASK } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

async function http(world: TasksWorld, request: object) {
  await openQueue(world);
  const httpRequest = { url: world.target.url, ...request };
  const created = await createTask(world, { scheduleTime: later(world, 1_000), httpRequest });
  return created.httpRequest;
}
async function appEngine(world: TasksWorld, appEngineHttpRequest: object) {
  await openQueue(world);
  const created = await createTask(world, { scheduleTime: later(world, 1_000), appEngineHttpRequest });
  return created.appEngineHttpRequest;
}
const BODY = Buffer.from('body');
const METHODS = ['POST', 'GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'] as const;
const METHODS_WITH_BODY = { http: ['POST', 'PUT', 'PATCH'], appEngine: ['POST', 'PUT'] } as const;

const ofHttp = section('Creating HTTP tasks');

export const httpTargetCases: readonly TasksCase[] = [
  ofHttp('answers INVALID_ARGUMENT for an empty URL', RECORDED, async (world) => {
    await refused(http(world, { url: '' }), 'INVALID_ARGUMENT', 'HttpRequest.url is required.');
  }),
  ofHttp('answers INVALID_ARGUMENT for a URL without a scheme', RECORDED, async (world) => {
    const text = "HttpTarget.url must start with 'http://' or 'https://'.";
    await refused(http(world, { url: 'a.example/task' }), 'INVALID_ARGUMENT', text);
  }),
  ofHttp('answers INVALID_ARGUMENT for a URL of another scheme', RECORDED, async (world) => {
    const text = "HttpTarget.url must start with 'http://' or 'https://'.";
    await refused(http(world, { url: 'ftp://a.example/task' }), 'INVALID_ARGUMENT', text);
  }),
  ofHttp('accepts a URL with a bad escape', RECORDED, async (world) => {
    await http(world, { url: `${world.target.url}/%zz` });
  }),
  ofHttp('accepts an https URL', HTTP_REQUEST, async (world) => {
    await http(world, { url: 'https://a.example/task' });
  }),
  ofHttp('answers INVALID_ARGUMENT for a task without a target', TASK, async (world) => {
    await openQueue(world);
    await refused(world.call('CreateTask', { parent: world.queue, task: {} }), 'INVALID_ARGUMENT');
  }),
  ofHttp('the method is POST by default', HTTP_REQUEST, async (world) => {
    assert.equal((await http(world, {}))?.httpMethod, 'POST');
  }),
  ...METHODS.map((httpMethod) =>
    ofHttp(
      METHODS_WITH_BODY.http.some((name) => name === httpMethod)
        ? `accepts a body with ${httpMethod}`
        : `accepts ${httpMethod}, and refuses a body with it`,
      HTTP_REQUEST,
      async (world) => {
        if (METHODS_WITH_BODY.http.some((name) => name === httpMethod)) {
          assert.equal((await http(world, { httpMethod, body: BODY }))?.httpMethod, httpMethod);
          return;
        }
        assert.equal((await http(world, { httpMethod }))?.httpMethod, httpMethod);
        const httpRequest = { url: world.target.url, httpMethod, body: BODY };
        await refused(createTask(world, { httpRequest }), 'INVALID_ARGUMENT', /body/i);
      },
    ),
  ),
  ofHttp('answers INVALID_ARGUMENT for a method that is none', HTTP_REQUEST, async (world) => {
    await refused(http(world, { httpMethod: 99 }), 'INVALID_ARGUMENT');
  }),
  ofHttp('shows the User-Agent that it will send, and makes up no Content-Type', RECORDED, async (world) => {
    assert.deepEqual(
      { ...(await http(world, { body: BODY }))?.headers },
      { 'User-Agent': 'Google-Cloud-Tasks' },
    );
  }),
  ofHttp('keeps a Content-Type and other headers of the caller', HTTP_REQUEST, async (world) => {
    const headers = { 'Content-Type': 'application/json', 'X-Mine': 'a, b' };
    assert.deepEqual(
      { ...(await http(world, { headers, body: BODY }))?.headers },
      { ...headers, 'User-Agent': 'Google-Cloud-Tasks' },
    );
  }),
  ofHttp('answers INVALID_ARGUMENT for a header that cannot be sent', HTTP_REQUEST, async (world) => {
    await refused(http(world, { headers: { 'X-Mine': 'a\r\nX-Other: b' } }), 'INVALID_ARGUMENT');
    await refused(
      createTask(world, { httpRequest: { url: world.target.url, headers: { 'not a name': 'a' } } }),
      'INVALID_ARGUMENT',
    );
  }),
];

const ofAppEngine = section('Creating App Engine tasks');

export const appEngineTargetCases: readonly TasksCase[] = [
  ofAppEngine('the relative URI is / where it is empty', APP_ENGINE_REQUEST, async (world) => {
    assert.equal((await appEngine(world, {}))?.relativeUri, '/');
  }),
  ofAppEngine('accepts a path with a query', APP_ENGINE_REQUEST, async (world) => {
    assert.equal((await appEngine(world, { relativeUri: '/a/b?c=d' }))?.relativeUri, '/a/b?c=d');
  }),
  ofAppEngine(
    'answers INVALID_ARGUMENT for a relative URI that does not begin with /',
    APP_ENGINE_REQUEST,
    async (world) => {
      await refused(appEngine(world, { relativeUri: 'a' }), 'INVALID_ARGUMENT', /relativeUri/);
    },
  ),
  ofAppEngine('answers INVALID_ARGUMENT for a space in a relative URI', APP_ENGINE_REQUEST, async (world) => {
    await refused(appEngine(world, { relativeUri: '/a b' }), 'INVALID_ARGUMENT', /relativeUri/);
  }),
  ofAppEngine('accepts a relative URI of 2,083 characters', APP_ENGINE_REQUEST, async (world) => {
    await appEngine(world, { relativeUri: '/'.padEnd(2_083, 'a') });
  }),
  ofAppEngine('refuses a relative URI of 2,084 characters', APP_ENGINE_REQUEST, async (world) => {
    await refused(appEngine(world, { relativeUri: '/'.padEnd(2_084, 'a') }), 'INVALID_ARGUMENT', /2083/);
  }),
  ofAppEngine('the method is POST by default', APP_ENGINE_REQUEST, async (world) => {
    assert.equal((await appEngine(world, {}))?.httpMethod, 'POST');
  }),
  ...METHODS.map((httpMethod) =>
    ofAppEngine(
      METHODS_WITH_BODY.appEngine.some((name) => name === httpMethod)
        ? `accepts a body with ${httpMethod}`
        : `accepts ${httpMethod}, and refuses a body with it`,
      APP_ENGINE_REQUEST,
      async (world) => {
        if (METHODS_WITH_BODY.appEngine.some((name) => name === httpMethod)) {
          await appEngine(world, { httpMethod, body: BODY });
          return;
        }
        assert.equal((await appEngine(world, { httpMethod }))?.httpMethod, httpMethod);
        await refused(
          createTask(world, { appEngineHttpRequest: { httpMethod, body: BODY } }),
          'INVALID_ARGUMENT',
          /body/i,
        );
      },
    ),
  ),
  ofAppEngine(
    'sets Content-Type and Content-Length where there is a body',
    APP_ENGINE_REQUEST,
    async (world) => {
      const { headers = {} } = (await appEngine(world, { body: BODY })) ?? {};
      assert.deepEqual(
        [headers['Content-Type'], headers['Content-Length']],
        ['application/octet-stream', '4'],
      );
    },
  ),
  ofAppEngine('sets neither where there is none', APP_ENGINE_REQUEST, async (world) => {
    const { headers = {} } = (await appEngine(world, {})) ?? {};
    assert.deepEqual(Object.keys(headers), ['User-Agent']);
  }),
  ofAppEngine('appends its own to the User-Agent of the caller', APP_ENGINE_REQUEST, async (world) => {
    const { headers = {} } = (await appEngine(world, { headers: { 'User-Agent': 'mine' } })) ?? {};
    assert.equal(headers['User-Agent'], 'mine AppEngine-Google; (+http://code.google.com/appengine)');
  }),
  ofAppEngine('shows the host that the routing leads to', TASK, async (world) => {
    const request = await appEngine(world, {
      appEngineRouting: { service: 'worker', version: 'v1', instance: '2' },
    });
    assert.equal(request?.appEngineRouting['host'], '2.v1.worker.demo-project.appspot.com');
  }),
  ofAppEngine('shows the host of the default service where there is no routing', TASK, async (world) => {
    assert.equal((await appEngine(world, {}))?.appEngineRouting['host'], 'demo-project.appspot.com');
  }),
];
