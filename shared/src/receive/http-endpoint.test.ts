import assert from 'node:assert/strict';
import test from 'node:test';
import { PermanentError, TransientError } from '../errors.ts';
import type { Handler } from '../handler.ts';
import { jsonLog, silent } from '../log.ts';
import type { Message } from '../message.ts';
import { ack, deadLetter, retry } from '../outcome.ts';
import { memoryPublisher, virtualClock } from '../testing/index.ts';
import {
  httpEndpoint,
  type HttpEndpointOptions,
  type HttpRequest,
  type HttpResponse,
} from './http-endpoint.ts';
import { refusal } from '../testing/refusal.ts';

const BODY = {
  message: { messageId: '42', data: 'aGVsbG8=', publishTime: '2030-01-01T00:00:00Z' },
  subscription: 'projects/p/subscriptions/s',
};
const post = (
  body: unknown,
  headers: HttpRequest['headers'] = { 'content-type': 'application/json' },
): HttpRequest => ({
  method: 'POST',
  headers,
  rawBody:
    body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
});
function setUp(handler: Handler = async () => ack(), parts: Partial<HttpEndpointOptions> = {}) {
  const publisher = memoryPublisher();
  const lines: string[] = [];
  const handled: Message[] = [];
  const clock = virtualClock();
  const endpoint = httpEndpoint(
    (message, context) => {
      handled.push(message);
      return handler(message, context);
    },
    {
      consumer: 'c',
      clock,
      log: jsonLog((line) => lines.push(line)),
      handlerTimeout: '60s',
      publisher,
      deadLetterTopic: 'dead-letters',
      ...parts,
    },
  );
  return { endpoint, publisher, lines, handled, clock };
}
const json = (response: HttpResponse): Record<string, string> =>
  JSON.parse(response.body) as Record<string, string>;

test('an outcome that is safe is answered 204, any other 503 with a line that names the code and the message', async () => {
  const error = new TransientError('BUSY', 'busy');
  const answers: [ReturnType<typeof ack>, number][] = [
    [ack(), 204],
    [ack('held'), 204],
    [{ kind: 'deadLetter', error, published: true }, 204],
    [deadLetter(error), 503],
    [retry(error), 503],
  ];
  for (const [outcome, status] of answers) {
    const { endpoint, lines } = setUp(async () => outcome);
    const response = await endpoint(post(BODY));
    assert.equal(response.status, status);
    if (status === 204) assert.equal(response.body, '');
    else assert.match(lines.join('\n'), /"messageId":"42".*"code":"BUSY"/);
  }
});

test('a handler that throws asks for another delivery', async () => {
  const { endpoint, publisher } = setUp(async () => Promise.reject(new PermanentError('NO', 'no')));
  assert.equal((await endpoint(post(BODY))).status, 503);
  assert.equal(publisher.published.length, 0);
});

test('a handler that returns nothing is answered 503 with one line each time, and nothing is dead-lettered', async () => {
  const { endpoint, lines, publisher, handled } = setUp(async () => undefined as never);
  for (let request = 1; request <= 5; request += 1) {
    const response = await endpoint(post(BODY));
    const error = 'NO_OUTCOME: the handler answered with undefined; accepted: an outcome, for example ack()';
    assert.deepEqual([response.status, json(response)], [503, { error, messageId: '42' }]);
    assert.deepEqual([handled.length, lines.length], [request, request]);
  }
  for (const line of lines) {
    const { severity, message, messageId, code, outcome } = JSON.parse(line) as Record<string, string>;
    assert.deepEqual(
      [severity, message, messageId, code, outcome],
      ['WARNING', 'not done: asked for another delivery', '42', 'NO_OUTCOME', 'retry'],
    );
  }
  assert.equal(publisher.published.length, 0);
});

test('B53: a handler past its deadline is answered 503 at the deadline', async () => {
  const { endpoint, clock } = setUp(() => new Promise(() => {}));
  const response = await clock.until(endpoint(post(BODY)));
  assert.deepEqual([response.status, clock.monotonic()], [503, 60_000]);
});

test('a delivery that cannot be read is dead-lettered as it came, and then acknowledged', async () => {
  const { endpoint, publisher, handled } = setUp();
  const raw = Buffer.from('{"message":{"data":"aGVsbG8="},"note":"Łódź"}');
  const response = await endpoint(post(raw));
  assert.equal(response.status, 200);
  assert.equal(json(response)['deadLetterReason'], 'INVALID_BODY');
  assert.match(json(response)['deadLetterError'] ?? '', /^message.messageId is missing/);
  assert.equal(handled.length, 0);
  const [deadLetter] = publisher.published;
  assert.deepEqual(Buffer.from(deadLetter?.data ?? []), raw);
  assert.equal(deadLetter?.topic, 'dead-letters');
  assert.equal(deadLetter.attributes['deadLetterReason'], 'INVALID_BODY');
  assert.match(deadLetter.attributes['deadLetterError'] ?? '', /^message.messageId is missing/);
  assert.equal(deadLetter.attributes['contentType'], 'application/json');
});

test('what an unwrapped push or a CloudEvent says in headers is kept with the dead letter', async () => {
  const { endpoint, publisher } = setUp();
  await endpoint(
    post('x', { 'x-goog-pubsub-publish-time': 't', tenant: 'a', long: 'x'.repeat(1_025), host: 'h' }),
  );
  await endpoint(post('{', { 'ce-id': '9', 'ce-type': 'other', 'content-type': 'application/json' }));
  const [first, second] = publisher.published.map(({ attributes }) => attributes);
  assert.deepEqual(Object.keys(first ?? {}).toSorted(), [
    'deadLetterConsumer',
    'deadLetterError',
    'deadLetterReason',
    'tenant',
  ]);
  assert.equal(second?.['ce-id'], '9');
  assert.equal(second['ce-type'], 'other');
});

test('B18: a dead letter that is not published leaves the delivery where it is', async () => {
  const { endpoint, publisher, lines } = setUp();
  publisher.failOn(1, 'refused');
  const response = await endpoint(post({ message: {} }));
  assert.equal(response.status, 503);
  assert.match(lines.join('\n'), /was not published/);
  const without = setUp(undefined, {
    publisher: undefined,
    deadLetterTopic: undefined,
  } as unknown as Partial<HttpEndpointOptions>);
  assert.equal((await without.endpoint(post({ message: {} }))).status, 503);
});

test('B40: headers that name the caller prove nothing here: the message and its treatment are the same', async () => {
  const { endpoint, handled } = setUp();
  await endpoint(post(BODY));
  const spoofed = {
    'content-type': 'application/json',
    'x-cloudtasks-queuename': 'later',
    'x-cloudtasks-taskname': 'task',
    'x-appengine-queuename': 'later',
    'x-goog-authenticated-user-email': 'accounts.google.com:root@p.iam.gserviceaccount.com',
    authorization: 'Bearer a.b.c',
  };
  await endpoint(post(BODY, spoofed));
  assert.deepEqual(handled[1], handled[0]);
  assert.equal((await endpoint(post('{', spoofed))).status, 400);
});

test('a body that no dead letter can hold stays in its subscription, with a reason', async () => {
  const { endpoint, lines } = setUp();
  const response = await endpoint(
    post(Buffer.concat([Buffer.from('{"message":{}}'), Buffer.alloc(10_000_001, ' ')])),
  );
  assert.equal(response.status, 503);
  assert.match(lines.join('\n'), /LIMIT_EXCEEDED/);
});

test('a request that is no delivery is refused with 400, and nothing is published', async () => {
  for (const body of ['', '{"x":1}', 'hello', '[]']) {
    const { endpoint, publisher, lines, handled } = setUp();
    const response = await endpoint(post(body));
    assert.equal(response.status, 400, body);
    assert.match(json(response)['error'] ?? '', /accepted: a Pub\/Sub push/);
    assert.ok(!response.body.includes('\n'));
    assert.deepEqual([publisher.published.length, handled.length, lines.length], [0, 0, 1]);
  }
});

test('another method than POST is refused with 405', async () => {
  const { endpoint, publisher } = setUp();
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']) {
    const response = await endpoint({ method, headers: {}, rawBody: new Uint8Array() });
    assert.equal(response.status, 405);
    assert.match(json(response)['error'] ?? '', new RegExp(`${method}; accepted: POST`));
  }
  assert.equal(publisher.published.length, 0);
});

test('no log line holds the payload', async () => {
  const { endpoint, lines } = setUp(async () => retry(new Error('no')));
  await endpoint(post(BODY));
  await endpoint(post({ message: { messageId: '1', data: 'c2VjcmV0!' } }));
  await endpoint(post('secret'));
  assert.equal(lines.length, 3);
  assert.doesNotMatch(lines.join('\n'), /secret|c2VjcmV0|aGVsbG8|hello/);
});

test('options are checked when the endpoint is made', () => {
  for (const consumer of ['', undefined, 5, 'half \ud800']) {
    assert.throws(() => setUp(undefined, { consumer: consumer as string }), refusal('consumer'));
  }
  assert.throws(() => setUp(undefined, { source: '' }), refusal('source'));
  const options = { consumer: 'c', clock: virtualClock(), log: silent, handlerTimeout: '60s' } as const;
  assert.throws(() => httpEndpoint(undefined as unknown as Handler, options), refusal('handler'));
  const topicAlone = { ...options, handlerTimeout: '60s', deadLetterTopic: 'dead' } as const;
  assert.throws(
    () => httpEndpoint(async () => ack(), topicAlone),
    refusal('publisher', /deadLetterTopic \("dead"\)$/),
  );
  const publisherAlone = { ...options, handlerTimeout: '60s', publisher: memoryPublisher() } as const;
  assert.throws(() => httpEndpoint(async () => ack(), publisherAlone), refusal('deadLetterTopic'));
  assert.throws(() => setUp(undefined, { handlerTimeout: '0s' }), refusal('handlerTimeout'));
  assert.throws(() => setUp(undefined, { handlerTimeout: '1.5s' as '1s' }), refusal('handlerTimeout'));
});
