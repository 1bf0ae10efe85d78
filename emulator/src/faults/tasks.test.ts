import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { startFixture, until } from '../cloud-tasks/fixture.ts';
import { createFaults } from './index.ts';

/** A queue with one attempt per second, and rules of Cloud Tasks. */
async function faulty(t: TestContext, ...rules: readonly object[]) {
  const faults = createFaults();
  const fixture = await startFixture({ faults });
  t.after(fixture.close);
  const { client, parent, queue, target } = fixture;
  const retryConfig = { minBackoff: { seconds: 1 }, maxBackoff: { seconds: 1 } };
  await client.createQueue({ parent, queue: { name: queue, retryConfig } });
  faults.set({ rules: rules.map((rule) => ({ service: 'tasks', ...rule })) });
  const create = (id: string) =>
    client.createTask({
      parent: queue,
      task: { name: `${queue}/tasks/${id}`, httpRequest: { url: `${target.url}/${id}` } },
    });
  const urls = (): string => target.received.map(({ url }) => url).join();
  const rest = async (method: string, path: string, body?: object) => {
    const answer = await fixture.tasks.rest(
      method,
      `/v2/${path}`,
      '',
      Buffer.from(JSON.stringify(body) ?? ''),
    );
    return answer?.status;
  };
  return { ...fixture, faults, create, urls, rest, stats: fixture.tasks.stats };
}

test('fails a call; another goes through', async (t) => {
  const { create, stats, faults, queue } = await faulty(t, {
    method: 'CreateTask',
    nth: 1,
    action: { type: 'fail', code: 'PERMISSION_DENIED' },
  });
  await assert.rejects(create('a'), { code: 7 });
  assert.equal(stats().dispatched, 0);
  await create('a');
  assert.deepEqual(
    faults.log().map(({ method, resource, n }) => [method, resource, n]),
    [['CreateTask', queue, 1]],
  );
});

test('counts calls about a task with its queue', async (t) => {
  const { client, queue, faults } = await faulty(t, {
    method: 'GetTask',
    nth: 2,
    action: { type: 'fail', code: 'ABORTED' },
  });
  await assert.rejects(client.getTask({ name: `${queue}/tasks/a` }), { code: 5 });
  await assert.rejects(client.getTask({ name: `${queue}/tasks/b` }), { code: 10 });
  assert.equal(faults.log()[0]?.resource, queue);
});

test('loses the reply of a named task, whose second creation then finds it', async (t) => {
  const { create, urls } = await faulty(t, { method: 'CreateTask', nth: 1, action: { type: 'lose-reply' } });
  await assert.rejects(create('a'), { code: 14 });
  await assert.rejects(create('a'), { code: 6 });
  await until(() => urls() === '/a', 'the task is dispatched once');
});

for (const [when, code] of [
  ['before', undefined],
  ['after', 6],
] as const) {
  test(`cuts the connection ${when} a task is created`, async (t) => {
    const { create } = await faulty(t, { method: 'CreateTask', nth: 1, action: { type: 'cut', when } });
    await assert.rejects(create('a'), { code: 14 });
    const again = create('a').then(
      () => undefined,
      (error: { code: number }) => error.code,
    );
    assert.equal(await again, code);
  });
}

test('delays a call in real time', async (t) => {
  const { create } = await faulty(t, { method: 'CreateTask', action: { type: 'delay', ms: 60 } });
  const start = performance.now();
  await create('a');
  assert.ok(performance.now() - start >= 55);
});

test('reaches the REST form as well, with the counts of both in one', async (t) => {
  const { rest, queue, create } = await faulty(
    t,
    { method: 'CreateTask', nth: 2, action: { type: 'fail', code: 'RESOURCE_EXHAUSTED' } },
    { method: 'GetQueue', nth: [1, 2], action: { type: 'cut' } },
    { method: 'PauseQueue', action: { type: 'lose-reply' } },
    { method: 'ResumeQueue', action: { type: 'delay', ms: 40 } },
  );
  await create('a');
  const task = { httpRequest: { url: 'http://127.0.0.1:9/' } };
  assert.equal(await rest('POST', `${queue}/tasks`, { task }), 429);
  assert.equal(await rest('POST', `${queue}/tasks`, { task }), 200);
  const get = () => rest('GET', queue);
  assert.deepEqual([await get(), await get(), await get()], [503, 503, 200]);
  assert.equal(await rest('POST', `${queue}:pause`), 503);
  const start = performance.now();
  assert.equal(await rest('POST', `${queue}:resume`), 200);
  assert.ok(performance.now() - start >= 35);
});

test('a dispatch that fails is not sent, and is tried again after its backoff', async (t) => {
  for (const action of [{ type: 'fail', status: 500 }, { type: 'fail' }]) {
    const { create, urls, clock, lines, stats } = await faulty(t, { method: 'dispatch', nth: 1, action });
    await create('a');
    await until(() => lines.length === 1, 'the attempt has failed');
    assert.match(lines[0] ?? '', action.status === undefined ? /broken by the faults/ : /status code 500/);
    assert.deepEqual([urls(), stats().inFlight], ['', 0]);
    clock.advance(1_000);
    await until(() => stats().succeeded === 1, 'it succeeded');
    assert.equal(urls(), '/a');
  }
});

test('a dispatch whose answer is lost was sent, and is sent again', async (t) => {
  const { create, urls, clock, stats, target } = await faulty(t, {
    method: 'dispatch',
    nth: 1,
    action: { type: 'lose-reply' },
  });
  await create('a');
  await until(() => stats().inFlight === 0 && urls() === '/a', 'the first attempt is over');
  assert.equal(stats().pending, 1);
  clock.advance(1_000);
  await until(() => stats().succeeded === 1, 'it succeeded');
  assert.deepEqual(
    target.received.map(({ headers }) => headers['x-cloudtasks-taskretrycount']),
    ['0', '1'],
  );
});

test('a dispatch that is delayed waits on the clock, and is not in flight meanwhile', async (t) => {
  const { create, urls, clock, stats } = await faulty(t, {
    method: 'dispatch',
    action: { type: 'delay', ms: 9_000 },
  });
  await create('a');
  assert.deepEqual([stats().inFlight, stats().pending, urls()], [0, 1, '']);
  clock.advance(8_999);
  assert.equal(stats().inFlight, 0);
  clock.advance(1);
  assert.equal(stats().inFlight, 1);
  await until(() => stats().succeeded === 1, 'it succeeded');
});

test('a task is dispatched twice, and is done once', async (t) => {
  const { create, urls, stats, target } = await faulty(t, {
    method: 'dispatch',
    nth: 1,
    action: { type: 'duplicate' },
  });
  await create('a');
  await until(() => urls() === '/a,/a' && stats().inFlight === 0, 'both are answered');
  assert.deepEqual([stats().succeeded, stats().dispatched, stats().pending], [1, 1, 0]);
  assert.deepEqual(
    target.received.map(({ headers }) => headers['x-cloudtasks-taskretrycount']),
    ['0', '0'],
  );
});

test('a delayed and a duplicated dispatch end with the server', async (t) => {
  const { create, clock, tasks, urls, target } = await faulty(
    t,
    { method: 'dispatch', nth: 1, action: { type: 'delay', ms: 5_000 } },
    { method: 'dispatch', nth: 2, action: { type: 'duplicate' } },
  );
  target.answer.with = () => 'hang';
  await create('a');
  await create('b');
  await until(() => urls() === '/b,/b', 'the second is there twice');
  await tasks.close();
  clock.advance(10_000);
  assert.deepEqual([clock.timers(), urls()], [0, '/b,/b']);
});
