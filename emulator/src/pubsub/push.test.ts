import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { manualClock } from '../manual-clock.ts';
import { subscriptionName, testServer, texts, topicName, until } from './test-server.ts';

const SUB = 'orders-sub';
const message = (content: string, orderingKey = '') => ({ data: Buffer.from(content), orderingKey });

type Pushed = Readonly<{ headers: IncomingHttpHeaders; body: Buffer; url: string; text: string }>;
type Envelope = { message: Record<string, unknown>; subscription: string; deliveryAttempt?: number };
type Answer = (pushed: Pushed, response: ServerResponse) => void;

/** A push endpoint that remembers what it got; `text` is the data of a wrapped message. */
async function endpoint(
  t: TestContext,
  answer: Answer = (_, response) => void response.writeHead(204).end(),
) {
  const got: Pushed[] = [];
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const wrapped = request.headers['content-type'] === 'application/json';
      const text = wrapped ? Buffer.from(String(envelope(body).message['data']), 'base64').toString() : '';
      const pushed = { headers: request.headers, body, url: request.url ?? '', text };
      got.push(pushed);
      answer(pushed, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  t.after(close);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/push?a=b`, got, close, server };
}

const envelope = (body: Buffer): Envelope => JSON.parse(body.toString()) as Envelope;
const status =
  (code: number): Answer =>
  (_, response) =>
    void response.writeHead(code).end();

test('pushes the wrapped form, with every field that the message has and none that it has not', async (t) => {
  const clock = manualClock(Date.UTC(2030, 0, 2, 3, 4, 5, 678));
  const running = await testServer(t, clock);
  const { url, got } = await endpoint(t);
  await running.create('orders', SUB, { pushConfig: { pushEndpoint: url }, enableMessageOrdering: true });
  const [id] = await running.publish('orders', {
    data: Buffer.from([0, 255]),
    attributes: { a: 'ü' },
    orderingKey: 'key',
  });
  await until(() => got.length === 1);
  assert.deepEqual(envelope(got[0]!.body), {
    message: {
      attributes: { a: 'ü' },
      data: 'AP8=',
      messageId: id,
      message_id: id,
      orderingKey: 'key',
      publishTime: '2030-01-02T03:04:05.678Z',
      publish_time: '2030-01-02T03:04:05.678Z',
    },
    subscription: subscriptionName(SUB),
  });
  assert.equal(got[0]?.headers['content-type'], 'application/json');
  assert.equal(got[0]?.url, '/push?a=b');
  await running.publish('orders', { attributes: { a: 'b' } });
  await until(() => got.length === 2);
  assert.deepEqual(Object.keys(envelope(got[1]!.body).message), [
    'attributes',
    'messageId',
    'message_id',
    'publishTime',
    'publish_time',
  ]);
  await until(() => running.server.stats().outstanding === 0);
});

test('pushes the unwrapped form, attributes as headers where they are legal ones', async (t) => {
  const running = await testServer(t);
  const { url, got } = await endpoint(t);
  const pushConfig = { pushEndpoint: url, noWrapper: { writeMetadata: true } };
  await running.create('orders', SUB, { pushConfig });
  const [id] = await running.publish('orders', {
    data: Buffer.from([1, 2, 255]),
    attributes: {
      Tenant: 'a',
      'content-type': 'text/x',
      'not legal': 'x',
      line: 'a\r\nb: c',
      greek: 'λ',
      'content-length': '1',
      'transfer-encoding': 'chunked',
      host: 'example.com',
    },
    orderingKey: 'key',
  });
  await until(() => got.length === 1);
  const { headers, body } = got[0]!;
  assert.deepEqual(body, Buffer.from([1, 2, 255]));
  assert.equal(headers['tenant'], 'a');
  assert.equal(headers['content-type'], 'text/x');
  assert.equal(headers['x-goog-pubsub-message-id'], id);
  assert.match(String(headers['x-goog-pubsub-publish-time']), /^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/);
  assert.equal(headers['x-goog-pubsub-subscription-name'], subscriptionName(SUB));
  assert.equal(headers['x-goog-pubsub-ordering-key'], 'key');
  assert.equal(headers['content-length'], '3');
  // The bytes of UTF-8, which Node reads as characters of Latin-1.
  assert.equal(Buffer.from(String(headers['greek']), 'latin1').toString(), 'λ');
  for (const left of ['not legal', 'line', 'b', 'transfer-encoding']) assert.ok(!(left in headers), left);
});

test('without metadata pushes the body alone', async (t) => {
  const running = await testServer(t);
  const { url, got } = await endpoint(t);
  await running.create('orders', SUB, { pushConfig: { pushEndpoint: url, noWrapper: {} } });
  await running.publish('orders', {
    data: Buffer.from('plain'),
    attributes: { tenant: 'a' },
    orderingKey: 'k',
  });
  await until(() => got.length === 1);
  assert.equal(got[0]?.body.toString(), 'plain');
  assert.deepEqual(
    Object.keys(got[0]!.headers).filter((name) => name.startsWith('x-goog') || name === 'tenant'),
    [],
  );
});

test('takes 102, 200, 201, 202 and 204 for acknowledgements and nothing else', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  const codes = [200, 201, 202, 204, 102, 203, 301, 400, 404, 429, 500, 503];
  const { url, got } = await endpoint(t, ({ text }, response) => {
    const code = Number(text);
    if (code === 102) response.writeProcessing();
    response.writeHead(code === 102 ? 500 : code).end();
  });
  await running.create('orders', SUB, { pushConfig: { pushEndpoint: url } });
  await running.publish('orders', ...codes.map((code) => message(String(code))));
  await until(() => got.length === codes.length && running.server.stats().outstanding === 0);
  assert.equal(running.server.stats().backlog, 7);
  clock.advance(100);
  await until(() => got.length === codes.length + 7);
  const repeated = got.slice(codes.length).map(({ text }) => Number(text));
  assert.deepEqual(
    repeated.toSorted((a, b) => a - b),
    [203, 301, 400, 404, 429, 500, 503],
  );
});

test('backs off from 100 ms, doubling, when there is no retry policy', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  const { url, got } = await endpoint(t, status(500));
  await running.create('orders', SUB, { pushConfig: { pushEndpoint: url } });
  await running.publish('orders', message('a'));
  for (const [index, wait] of [100, 200, 400, 800, 1600].entries()) {
    await until(() => got.length === index + 1 && running.server.stats().outstanding === 0);
    clock.advance(wait - 1);
    assert.equal(running.server.stats().outstanding, 0);
    clock.advance(1);
  }
  await until(() => got.length === 6);
});

test('follows the retry policy and counts attempts up to the dead letter', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  const { url, got } = await endpoint(t, status(500));
  await running.create('dead', 'dead-sub');
  await running.create('orders', SUB, {
    pushConfig: { pushEndpoint: url },
    retryPolicy: { minimumBackoff: { seconds: 1 }, maximumBackoff: { seconds: 2 } },
    deadLetterPolicy: { deadLetterTopic: topicName('dead'), maxDeliveryAttempts: 5 },
  });
  await running.publish('orders', message('a'));
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    await until(() => got.length === attempt && running.server.stats().outstanding === 0);
    clock.advance(2000);
  }
  assert.deepEqual(
    got.map(({ body }) => envelope(body).deliveryAttempt),
    [1, 2, 3, 4, 5],
  );
  assert.equal(texts(await running.pull('dead-sub')), 'a');
});

test('aborts a request that outlives the ack deadline, and pushes again', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  let aborted = 0;
  const { url, got } = await endpoint(t, (_, response) => {
    response.on('close', () => {
      aborted += 1;
    });
    if (got.length > 1) response.writeHead(200).end();
  });
  await running.create('orders', SUB, { pushConfig: { pushEndpoint: url } });
  await running.publish('orders', message('slow'));
  await until(() => got.length === 1);
  clock.advance(9_999);
  assert.equal(running.server.stats().outstanding, 1);
  clock.advance(1);
  await until(() => aborted === 1);
  clock.advance(100);
  await until(() => got.length === 2 && running.server.stats().outstanding === 0);
  assert.equal(running.server.stats().backlog, 0);
});

test('a connection that breaks is a nack, and a new endpoint at the address gets the message', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  const { url, got } = await endpoint(t, (_, response) =>
    got.length === 1 ? response.socket?.destroy() : response.writeHead(200).end(),
  );
  await running.create('orders', SUB, { pushConfig: { pushEndpoint: url } });
  await running.publish('orders', message('a'));
  await until(() => got.length === 1 && running.server.stats().outstanding === 0);
  clock.advance(100);
  await until(() => got.length === 2 && running.server.stats().backlog === 0);
  assert.match(running.log.join(), /push of \d+ to .* failed: /);
});

test('has a hundred requests in flight at once, and one of each ordering key', async (t) => {
  const running = await testServer(t);
  const open: ServerResponse[] = [];
  const { url, got } = await endpoint(t, (_, response) => void open.push(response));
  await running.create('orders', SUB, { pushConfig: { pushEndpoint: url }, enableMessageOrdering: true });
  await running.publish('orders', ...Array.from({ length: 97 }, (_, index) => message(`x${index}`)));
  for (const id of ['a1', 'a2', 'b1', 'a3', 'b2', 'c1']) await running.publish('orders', message(id, id[0]));
  await until(() => open.length === 100);
  assert.deepEqual(
    got
      .slice(97)
      .map(({ text }) => text)
      .toSorted(),
    ['a1', 'b1', 'c1'],
  );
  for (let round = 0; round < 20 && got.length < 103; round += 1) {
    for (const response of open.splice(0)) response.writeHead(200).end();
    await until(() => open.length > 0);
  }
  for (const response of open.splice(0)) response.writeHead(200).end();
  assert.deepEqual(
    got.map(({ text }) => text).filter((id) => id.startsWith('a')),
    ['a1', 'a2', 'a3'],
  );
  await until(() => running.server.stats().outstanding === 0);
});

test('retries a failed message of a key before the next one', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  const { url, got } = await endpoint(t, ({ text }, response) => {
    const failures = got.filter((pushed) => pushed.text === text).length;
    response.writeHead(text === 'a2' && failures < 3 ? 500 : 200).end();
  });
  await running.create('orders', SUB, { pushConfig: { pushEndpoint: url }, enableMessageOrdering: true });
  await running.publish('orders', ...['a1', 'a2', 'a3'].map((id) => message(id, 'a')));
  await until(() => got.length > 0);
  for (let round = 0; round < 4; round += 1) {
    await until(() => running.server.stats().outstanding === 0);
    clock.advance(1000);
  }
  await until(() => running.server.stats().outstanding === 0 && running.server.stats().backlog === 0);
  assert.equal(got.map(({ text }) => text).join(), 'a1,a2,a2,a2,a3');
});

test('does not hammer an endpoint that is down with a long backlog', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  const { url, close, server } = await endpoint(t);
  close();
  await until(() => !server.listening);
  await running.create('orders', SUB, { pushConfig: { pushEndpoint: url } });
  await running.publish('orders', ...Array.from({ length: 1000 }, () => message('a')));
  await until(() => running.log.length > 0 && running.server.stats().outstanding === 0);
  assert.ok(running.log.length <= 300, `${running.log.length} attempts at first`);
  const first = running.log.length;
  for (let tenth = 0; tenth < 10; tenth += 1) {
    clock.advance(100);
    await until(() => running.server.stats().outstanding === 0);
  }
  assert.ok(running.log.length - first <= 10, `${running.log.length - first} attempts in the next second`);
});

test('turns from pull to push and back', async (t) => {
  const running = await testServer(t);
  const { url, got } = await endpoint(t);
  const { pubsub } = running;
  await running.create('orders', SUB);
  await running.publish('orders', message('a'));
  await pubsub.subscription(SUB).modifyPushConfig({ pushEndpoint: url });
  await until(() => got.length === 1);
  await assert.rejects(running.pull(SUB), {
    code: 9,
    details: 'This method is not supported for this subscription type.',
  });
  await pubsub.subscription(SUB).modifyPushConfig({});
  await running.publish('orders', message('b'));
  assert.equal(texts(await running.pull(SUB)), 'b');
  assert.equal(got.length, 1);
});
