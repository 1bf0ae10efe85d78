/** What the target of an HTTP task gets. */
import assert from 'node:assert/strict';
import { dispatchedHttp, headersOf, recording } from '../dispatched.ts';
import { createTask, later, openQueue, seconds, section, type TasksCase } from '../section.ts';
import { HTTP_HANDLER, HTTP_REQUEST, RECORDED } from '../sources.ts';

const of = section('Dispatching HTTP tasks');
const each = headersOf('x-cloudtasks');

const RESERVED = {
  'X-CloudTasks-TaskName': 'forged',
  'x-cloudtasks-taskretrycount': '9',
  'X-Google-Anything': 'forged',
  'X-AppEngine-QueueName': 'forged',
};

export const dispatchHttpCases: readonly TasksCase[] = [
  of('names the queue, the task and the schedule time', HTTP_HANDLER, async (world) => {
    await openQueue(world);
    await createTask(world, { scheduleTime: later(world, 1_250) }, 't');
    await world.pass(2_000);
    assert.deepEqual([each(world, 'queuename'), each(world, 'taskname')], [['conformance'], ['t']]);
    assert.equal(Number(each(world, 'tasketa')[0]) * 1_000, world.now() - 750);
  }),
  of('TaskRetryCount counts the retries: 0, 1, 2, 3, 4, 5', RECORDED, async (world) => {
    await recording(world, dispatchedHttp);
    assert.deepEqual(each(world, 'taskretrycount'), ['0', '1', '2', '3', '4', '5']);
  }),
  of('TaskExecutionCount does not count 5xx answers: 0, 0, 1, 2, 2, 3', RECORDED, async (world) => {
    await recording(world, dispatchedHttp);
    assert.deepEqual(each(world, 'taskexecutioncount'), ['0', '0', '1', '2', '2', '3']);
  }),
  of('TaskPreviousResponse is the last status from the second attempt on', RECORDED, async (world) => {
    await recording(world, dispatchedHttp);
    assert.deepEqual(each(world, 'taskpreviousresponse'), [undefined, '503', '404', '429', '500', '302']);
  }),
  of('TaskRetryReason comes with retries alone', HTTP_HANDLER, async (world) => {
    await recording(world, dispatchedHttp);
    const [first, ...others] = each(world, 'taskretryreason');
    assert.deepEqual([first, others.every((reason) => reason !== undefined)], [undefined, true]);
  }),
  of('TaskETA of a retry is its own schedule time', HTTP_HANDLER, async (world) => {
    await openQueue(world, { retryConfig: { minBackoff: seconds(10) } });
    world.target.answer.with = (n) => (n === 0 ? 500 : 200);
    const from = world.now();
    await createTask(world);
    await world.pass(60_000);
    assert.deepEqual(
      each(world, 'tasketa').map((eta) => Number(eta) * 1_000 - from),
      [0, 10_000],
    );
  }),
  of('the User-Agent is Google-Cloud-Tasks', RECORDED, async (world) => {
    assert.equal((await dispatchedHttp(world)).headers['user-agent'], 'Google-Cloud-Tasks');
  }),
  of('replaces a User-Agent of the caller', HTTP_REQUEST, async (world) => {
    const { headers } = await dispatchedHttp(world, { headers: { 'user-agent': 'mine' } });
    assert.equal(headers['user-agent'], 'Google-Cloud-Tasks');
  }),
  of('computes Host and Content-Length, whatever the caller says', HTTP_REQUEST, async (world) => {
    const headers = { Host: 'forged.example', 'Content-Length': '999' };
    const received = await dispatchedHttp(world, { headers, body: Buffer.from('body') });
    assert.deepEqual(
      [received.headers.host, received.headers['content-length']],
      [new URL(world.target.url).host, '4'],
    );
  }),
  of(
    'lets no caller set headers of the service: X-CloudTasks-*, X-Google-*, X-AppEngine-*',
    HTTP_REQUEST,
    async (world) => {
      const { headers } = await dispatchedHttp(world, { headers: RESERVED });
      assert.equal(headers['x-cloudtasks-taskname'], 't');
      assert.equal(headers['x-cloudtasks-taskretrycount'], '0');
      assert.deepEqual(
        [headers['x-google-anything'], headers['x-appengine-queuename']],
        [undefined, undefined],
      );
    },
  ),
  of('makes up no Content-Type', HTTP_REQUEST, async (world) => {
    assert.equal(
      (await dispatchedHttp(world, { body: Buffer.from('{}') })).headers['content-type'],
      undefined,
    );
  }),
  of('sends the Content-Type and the headers of the caller', HTTP_REQUEST, async (world) => {
    const headers = { 'Content-Type': 'application/json', 'X-Mine': 'a, b' };
    const received = await dispatchedHttp(world, { headers, body: Buffer.from('{}') });
    assert.deepEqual(
      [received.headers['content-type'], received.headers['x-mine']],
      ['application/json', 'a, b'],
    );
  }),
  of('sends the body byte by byte, text or not', HTTP_REQUEST, async (world) => {
    const body = Buffer.from([0x1f, 0x8b, 0x08, 0x00, 0xff, 0xfe, 0x80]);
    assert.deepEqual((await dispatchedHttp(world, { body })).body, body);
  }),
  of('sends path and query as they are', HTTP_REQUEST, async (world) => {
    assert.equal((await dispatchedHttp(world, {}, '/a%20b/?c=%2Fd&e')).url, '/a%20b/?c=%2Fd&e');
  }),
  ...['POST', 'GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'].map((httpMethod) =>
    of(`sends ${httpMethod}`, HTTP_REQUEST, async (world) => {
      assert.equal((await dispatchedHttp(world, { httpMethod })).method, httpMethod);
    }),
  ),
];
