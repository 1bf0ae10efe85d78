/** What the handler of an App Engine task gets, and where the routing leads. */
import assert from 'node:assert/strict';
import { dispatchedAppEngine, headersOf, recording } from '../dispatched.ts';
import { createTask, openQueue, refused, seconds, section, taskName, type TasksCase } from '../section.ts';
import { APP_ENGINE_HANDLER, APP_ENGINE_REQUEST, QUEUE, RECORDED } from '../sources.ts';
import type { TasksWorld } from '../world.ts';

const of = section('Dispatching App Engine tasks');
const DAY_MS = 86_400_000;
const each = headersOf('x-appengine');
const AGENT = 'AppEngine-Google; (+http://code.google.com/appengine)';

async function timeout(world: TasksWorld): Promise<void> {
  world.target.answer.with = (n) => (n === 0 ? 'hang' : 200);
  await openQueue(world);
  await createTask(world, { appEngineHttpRequest: {}, dispatchDeadline: seconds(15) });
  await world.pass(16_000);
  assert.equal(world.target.received.length, 2, 'not tried again after the deadline');
}

export const dispatchAppEngineCases: readonly TasksCase[] = [
  of('names the queue, the task and the schedule time', APP_ENGINE_HANDLER, async (world) => {
    await dispatchedAppEngine(world);
    assert.deepEqual([each(world, 'queuename'), each(world, 'taskname')], [['conformance'], ['t']]);
    assert.equal(Number(each(world, 'tasketa')[0]) * 1_000, world.now());
  }),
  of('TaskRetryCount counts the retries: 0, 1, 2, 3, 4, 5', RECORDED, async (world) => {
    await recording(world, dispatchedAppEngine);
    assert.deepEqual(each(world, 'taskretrycount'), ['0', '1', '2', '3', '4', '5']);
  }),
  of('TaskExecutionCount equals TaskRetryCount', RECORDED, async (world) => {
    await recording(world, dispatchedAppEngine);
    assert.deepEqual(each(world, 'taskexecutioncount'), ['0', '1', '2', '3', '4', '5']);
  }),
  of('TaskPreviousResponse is the last status from the second attempt on', RECORDED, async (world) => {
    await recording(world, dispatchedAppEngine);
    assert.deepEqual(each(world, 'taskpreviousresponse'), [undefined, '503', '404', '429', '500', '302']);
  }),
  of('TaskRetryReason is App Error after an answer that is no success', RECORDED, async (world) => {
    await recording(world, dispatchedAppEngine);
    const reasons = each(world, 'taskretryreason');
    assert.deepEqual(reasons, [undefined, ...Array.from({ length: 5 }, () => 'App Error')]);
  }),
  of(
    'after a timeout the counts are 1 and 0, the previous response 0, the reason Instance Unavailable',
    RECORDED,
    async (world) => {
      await timeout(world);
      assert.deepEqual(
        ['taskretrycount', 'taskexecutioncount', 'taskpreviousresponse', 'taskretryreason'].map(
          (name) => each(world, name)[1],
        ),
        ['1', '0', '0', 'Instance Unavailable'],
      );
    },
  ),
  of('the User-Agent is that of App Engine', RECORDED, async (world) => {
    assert.equal((await dispatchedAppEngine(world)).headers['user-agent'], AGENT);
  }),
  of('sends a User-Agent of the caller with its own appended', APP_ENGINE_REQUEST, async (world) => {
    const { headers } = await dispatchedAppEngine(world, { headers: { 'User-Agent': 'mine' } });
    assert.equal(headers['user-agent'], `mine ${AGENT}`);
  }),
  of(
    'the Content-Type of a body is application/octet-stream by default',
    APP_ENGINE_REQUEST,
    async (world) => {
      assert.equal(
        (await dispatchedAppEngine(world, { body: Buffer.from('a') })).headers['content-type'],
        'application/octet-stream',
      );
    },
  ),
  of('sends the Content-Type of the caller', APP_ENGINE_REQUEST, async (world) => {
    const headers = { 'Content-Type': 'application/json' };
    assert.equal(
      (await dispatchedAppEngine(world, { headers, body: Buffer.from('{}') })).headers['content-type'],
      'application/json',
    );
  }),
  of('lets no caller set Host, X-Google-* or X-AppEngine-*', APP_ENGINE_REQUEST, async (world) => {
    const { headers } = await dispatchedAppEngine(world, {
      headers: {
        Host: 'forged.example',
        'X-Google-A': 'forged',
        'X-AppEngine-TaskName': 'forged',
        'x-appengine-b': 'forged',
      },
    });
    assert.equal(headers['x-appengine-taskname'], 't');
    assert.deepEqual([headers['x-google-a'], headers['x-appengine-b']], [undefined, undefined]);
    assert.notEqual(headers.host, 'forged.example');
  }),
  of('sends the relative URI to the service', APP_ENGINE_REQUEST, async (world) => {
    assert.equal((await dispatchedAppEngine(world, { relativeUri: '/a/b?c=d' })).url, '/a/b?c=d');
  }),
  of('sends path / where there is no relative URI', APP_ENGINE_REQUEST, async (world) => {
    assert.equal((await dispatchedAppEngine(world)).url, '/');
  }),
  of('sends to the default service where there is no routing', APP_ENGINE_REQUEST, async (world) => {
    await dispatchedAppEngine(world);
    assert.deepEqual(world.routings, [{}]);
  }),
  of('sends to the service, version and instance of the task', APP_ENGINE_REQUEST, async (world) => {
    const appEngineRouting = { service: 'worker', version: 'v1', instance: '2' };
    await dispatchedAppEngine(world, { appEngineRouting });
    assert.deepEqual(world.routings, [appEngineRouting]);
  }),
  of('the routing override of the queue takes the place of the routing of the task', QUEUE, async (world) => {
    await openQueue(world, { appEngineRoutingOverride: { service: 'override' } });
    await createTask(world, {
      appEngineHttpRequest: { appEngineRouting: { service: 'worker', version: 'v1' } },
    });
    await world.pass(0);
    assert.deepEqual(world.routings, [{ service: 'override' }]);
  }),
  of('the routing override does not affect HTTP tasks', QUEUE, async (world) => {
    await openQueue(world, { appEngineRoutingOverride: { service: 'override' } });
    await createTask(world);
    await world.pass(0);
    assert.deepEqual([world.target.received.length, world.routings], [1, []]);
  }),
  of('does not follow a redirect', APP_ENGINE_REQUEST, async (world) => {
    world.target.answer.with = (n) => (n === 0 ? { status: 302, headers: { location: '/elsewhere' } } : 200);
    await dispatchedAppEngine(world, { relativeUri: '/task' });
    await world.pass(DAY_MS);
    assert.deepEqual(
      world.target.received.map(({ url }) => url),
      ['/task', '/task'],
    );
  }),
  of('any 2xx is success', APP_ENGINE_REQUEST, async (world) => {
    world.target.answer.with = () => 204;
    await dispatchedAppEngine(world);
    await refused(world.call('GetTask', { name: taskName(world, 't') }), 'NOT_FOUND');
  }),
];
