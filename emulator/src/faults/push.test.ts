import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { manualClock } from '../manual-clock.ts';
import { subscriptionName, testServer, until } from '../pubsub/test-server.ts';
import { createFaults } from './index.ts';

/** A push subscription on a clock that stands, with an endpoint that answers 204 unless it is to hang. */
async function pushing(t: TestContext, rule: object) {
  const got: string[] = [];
  const state = { hangs: false };
  const endpoint = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      got.push(Buffer.from(JSON.parse(body).message.data, 'base64').toString());
      if (!state.hangs) response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    endpoint.close();
    endpoint.closeAllConnections();
  });
  const pushEndpoint = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/`;
  const clock = manualClock();
  const faults = createFaults();
  const server = await testServer(t, clock, undefined, faults);
  await server.create('orders', 'pushed', {
    pushConfig: { pushEndpoint },
    retryPolicy: { minimumBackoff: { seconds: 10 }, maximumBackoff: { seconds: 10 } },
  });
  faults.set({
    rules: [{ service: 'pubsub', method: 'push', resource: subscriptionName('pushed'), ...rule }],
  });
  const publish = (text: string) => server.publish('orders', { data: Buffer.from(text) });
  const { stats } = server.server;
  return { ...server, clock, faults, got, publish, stats, state };
}

test('a push that fails is not sent, and comes after its backoff', async (t) => {
  for (const action of [{ type: 'fail', status: 503 }, { type: 'fail' }]) {
    const { publish, got, stats, clock, log } = await pushing(t, { nth: 1, action });
    await publish('a');
    await until(() => log.length === 1);
    assert.match(log[0] ?? '', action.status === undefined ? /broken by the faults/ : /status 503/);
    assert.deepEqual([got, stats().backlog, stats().pushing], [[], 1, 0]);
    clock.advance(10_000);
    await until(() => stats().backlog + stats().outstanding === 0);
    assert.deepEqual(got, ['a']);
  }
});

test('a push whose answer is lost was sent, and is sent again', async (t) => {
  const { publish, got, stats, clock } = await pushing(t, { nth: 1, action: { type: 'lose-reply' } });
  await publish('a');
  await until(() => got.length === 1 && stats().backlog === 1);
  assert.deepEqual(got, ['a']);
  clock.advance(10_000);
  await until(() => stats().backlog + stats().outstanding === 0);
  assert.deepEqual(got, ['a', 'a']);
});

test('a push that is delayed waits on the clock, is not in flight, and loses its lease when that takes too long', async (t) => {
  const { publish, got, stats, clock, faults } = await pushing(t, {
    nth: 1,
    action: { type: 'delay', ms: 5_000 },
  });
  await publish('a');
  await until(() => stats().outstanding === 1);
  assert.equal(stats().pushing, 0);
  clock.advance(5_000);
  await until(() => stats().outstanding === 0);
  assert.deepEqual(got, ['a']);
  faults.set({
    rules: [{ service: 'pubsub', method: 'push', nth: 1, action: { type: 'delay', ms: 60_000 } }],
  });
  await publish('b');
  await until(() => stats().outstanding === 1);
  clock.advance(10_000);
  assert.deepEqual([stats().outstanding, stats().pushing, stats().backlog], [0, 0, 1]);
  clock.advance(10_000);
  await until(() => stats().outstanding + stats().backlog === 0);
  clock.advance(60_000);
  assert.deepEqual(got, ['a', 'b'], 'the one that waited is not sent as well');
});

test('a push is sent twice, and both are in flight until they are answered', async (t) => {
  const { publish, got, stats, state, clock } = await pushing(t, { nth: 1, action: { type: 'duplicate' } });
  await publish('a');
  await until(() => got.length === 2 && stats().pushing === 0);
  assert.deepEqual(got, ['a', 'a']);
  assert.deepEqual([stats().outstanding, stats().backlog], [0, 0]);
  state.hangs = true;
  await publish('b');
  await until(() => got.length === 3);
  assert.equal(stats().pushing, 1);
  clock.advance(10_000);
  await until(() => stats().pushing === 0);
});

test('a second push that hangs ends with the ack deadline', async (t) => {
  const { publish, got, stats, state, clock } = await pushing(t, { nth: 1, action: { type: 'duplicate' } });
  state.hangs = true;
  await publish('a');
  await until(() => got.length === 2);
  assert.equal(stats().pushing, 2);
  clock.advance(10_000);
  assert.equal(stats().pushing, 0);
});
