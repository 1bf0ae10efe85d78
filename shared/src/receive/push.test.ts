import assert from 'node:assert/strict';
import test from 'node:test';
import { PermanentError } from '../errors.ts';
import type { Message } from '../message.ts';
import type { HttpRequest } from './http-request.ts';
import { readPush } from './push.ts';

const NOW = Date.UTC(2026, 5, 1);
const SUBSCRIPTION = 'projects/p/subscriptions/s';
const TYPE = 'google.cloud.pubsub.topic.v1.messagePublished';
const BIN = 'AP/+gMMo';
const UNI = 'eyJuYW1lIjoixYHDs2TFuiDml6XmnKwg8J+agCJ9';
const BIG = 'eyJ0d2VldCI6MTUyNDgzMTE4MzIwMDI2MDA5N30=';
const ce = {
  'ce-id': '42',
  'ce-type': TYPE,
  'ce-specversion': '1.0',
  'ce-source': '//pubsub.googleapis.com/projects/p/topics/t',
};

const post = (body: unknown, headers: HttpRequest['headers'] = {}): HttpRequest => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  rawBody:
    body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
});
const read = (body: unknown, headers?: HttpRequest['headers']): Message => readPush(post(body, headers), NOW);
const message = (parts: object = {}): object => ({ messageId: '42', data: 'aGVsbG8=', ...parts });
const refuses = (body: unknown, headers: HttpRequest['headers'], code: string, text: RegExp): void =>
  assert.throws(
    () => read(body, headers),
    (error: Error & { code?: string }) => {
      assert.equal(error.name, 'PermanentError', error.stack);
      assert.equal(error.code, code, error.message);
      assert.match(error.message, text);
      return true;
    },
  );

const TIME = '2026-01-02T03:04:05.678Z';
const HELLO: Message = {
  id: '42',
  data: Buffer.from('hello'),
  attributes: {},
  orderingKey: 'k1',
  publishTime: new Date(TIME),
  subscription: SUBSCRIPTION,
};
const camel = { data: 'aGVsbG8=', messageId: '42', orderingKey: 'k1', publishTime: TIME };
const snake = { data: 'aGVsbG8=', message_id: '42', ordering_key: 'k1', publish_time: TIME };
const body = { message: { ...camel, ...snake }, subscription: SUBSCRIPTION };
const structured = { specversion: '1.0', id: '42', type: TYPE, source: 'x', time: TIME };
const json64 = Buffer.from(JSON.stringify(body)).toString('base64');
const unwrapped = {
  'X-Goog-Pubsub-Message-Id': '42',
  'x-goog-pubsub-publish-time': TIME,
  'x-goog-pubsub-subscription-name': SUBSCRIPTION,
  'x-goog-ordering-key': 'k1',
  'content-type': 'application/x-www-form-urlencoded',
  host: '127.0.0.1:80',
  'user-agent': 'Java/17',
  'content-length': '5',
  connection: 'keep-alive',
};

test('B03: one logical message from every kind of request gives one identical message', () => {
  const requests: Record<string, [unknown, HttpRequest['headers']?]> = {
    'binary CloudEvent': [body, { ...ce, 'ce-time': TIME }],
    'structured CloudEvent': [
      { ...structured, data: body },
      { 'content-type': 'application/cloudevents+json; charset=utf-8' },
    ],
    'structured CloudEvent, data_base64': [
      { ...structured, data_base64: json64 },
      { 'Content-Type': 'application/cloudevents+json' },
    ],
    'push, camel case': [{ message: camel, subscription: SUBSCRIPTION }],
    'push, snake case': [{ message: snake, subscription: SUBSCRIPTION }],
    'push, both, attributes empty': [{ ...body, message: { ...camel, ...snake, attributes: {} } }],
    'push, attributes null': [{ ...body, message: { ...camel, attributes: null } }],
    'push without wrapper': ['hello', unwrapped],
  };
  for (const [name, [sent, headers]] of Object.entries(requests))
    assert.deepEqual(read(sent, headers), HELLO, name);
});

test('B03: the first-generation event differs in what it does not have: the subscription', () => {
  const { subscription, ...rest } = HELLO;
  assert.equal(subscription, SUBSCRIPTION);
  const legacy = {
    data: {
      '@type': 'type.googleapis.com/google.pubsub.v1.PubsubMessage',
      data: 'aGVsbG8=',
      attributes: null,
      orderingKey: 'k1',
    },
    context: {
      eventId: '42',
      timestamp: TIME,
      eventType: 'google.pubsub.topic.publish',
      resource: { name: 'projects/p/topics/t' },
    },
  };
  assert.deepEqual(read(legacy), rest);
  refuses({ ...legacy, context: { timestamp: TIME } }, {}, 'INVALID_BODY', /context.eventId is missing/);
});

test('B03: the official emulator leaves out most fields; the message is the same, published now', () => {
  const emulator = {
    subscription: SUBSCRIPTION,
    message: { data: 'aGVsbG8=', messageId: '42', attributes: {} },
  };
  const { orderingKey, ...rest } = HELLO;
  assert.equal(orderingKey, 'k1');
  assert.deepEqual(read(emulator), {
    ...rest,
    publishTime: new Date(NOW),
    assumedPublishTime: 'not set',
  });
  // An event has a time of its own.
  assert.deepEqual(read(emulator, { ...ce, 'ce-time': TIME }), rest);
});

test('B02: a message of attributes alone is a message like any other', () => {
  for (const data of [{}, { data: '' }, { data: null }]) {
    const received = read({
      subscription: SUBSCRIPTION,
      message: { messageId: '7', attributes: { type: 'ping' }, ...data },
    });
    assert.deepEqual(received.data, Buffer.alloc(0));
    assert.deepEqual(received.attributes, { type: 'ping' });
    assert.equal(received.id, '7');
  }
});

test('B25: data is bytes, whatever they mean', () => {
  for (const data of [BIN, UNI, BIG, 'H4sIAA==']) {
    const received = read({ message: message({ data }) });
    assert.equal(received.data.toString('base64'), data);
    assert.deepEqual(read(received.data, unwrapped).data, received.data);
  }
  assert.notEqual(read({ message: message({ data: BIN }) }).data.length, 14);
});

test('B25: attributes are text in UTF-8, in headers too', () => {
  const name = 'Łódź 日本 🚀';
  assert.deepEqual(read({ message: message({ attributes: { name } }) }).attributes, { name });
  const asLatin1 = Buffer.from(name, 'utf8').toString('latin1');
  assert.deepEqual(read('hello', { ...unwrapped, name: asLatin1 }).attributes, { name });
  assert.deepEqual(read('hello', { ...unwrapped, name: 'caf\u00e9' }).attributes, { name: 'café' });
});

test('base64 is checked strictly', () => {
  for (const data of ['aGVsbG8', 'aGVsbG9=', 'aGVs bG8=', 'AP_-gMMo', '====', 'hello!', 'aGVsbG8=\n']) {
    refuses({ message: message({ data }) }, {}, 'INVALID_BODY', /^message.data is not base64/);
  }
  refuses({ message: message({ data: { a: 1 } }) }, {}, 'INVALID_BODY', /^message.data is of type object/);
});

test('B48: an attempt that the service does not count is absent', () => {
  for (const attempt of [0, -1, 1.5, '', 'x', null, undefined, NaN]) {
    assert.ok(
      !('deliveryAttempt' in read({ message: message(), deliveryAttempt: attempt })),
      String(attempt),
    );
  }
  assert.equal(read({ message: message(), deliveryAttempt: 5 }).deliveryAttempt, 5);
  assert.equal(read('', { ...unwrapped, 'x-goog-pubsub-delivery-attempt': '3' }).deliveryAttempt, 3);
});

test('a publish time is rounded up to the millisecond', () => {
  const received = read({ message: message({ publishTime: '2026-01-02T03:04:05.678000001Z' }) });
  assert.equal(received.publishTime.toISOString(), '2026-01-02T03:04:05.679Z');
});

test('an empty ordering key or subscription is none', () => {
  const received = read({ message: message({ orderingKey: '' }), subscription: '' });
  assert.ok(!('orderingKey' in received) && !('subscription' in received));
});

test('an attribute called __proto__ is an attribute', () => {
  const received = read('{"message":{"messageId":"1","attributes":{"__proto__":"x","constructor":"y"}}}');
  assert.deepEqual(Object.entries(received.attributes), [
    ['__proto__', 'x'],
    ['constructor', 'y'],
  ]);
  assert.equal(Object.getPrototypeOf(received.attributes), Object.prototype);
});

test('B30: attributes of an unwrapped push are the headers that are not the transport’s', () => {
  const received = read('hello', {
    ...unwrapped,
    tenant: 'a',
    'x-cloud-trace-context': '1/2',
    traceparent: '00-1-2-03',
    authorization: 'Bearer secret',
    'x-forwarded-for': '10.0.0.1',
    'x-appengine-country': 'XX',
    'x-serverless-authorization': 'secret',
    'function-execution-id': 'abc',
    from: 'noreply@google.com',
    forwarded: 'for=x',
    via: '1.1 google',
    'ce-type': 'mine',
    list: ['a', 'b'],
    gone: undefined,
  });
  assert.deepEqual(received.attributes, { tenant: 'a', 'ce-type': 'mine', list: 'a, b' });
});

test('B30: header names have no case; the names of the contract get theirs back', () => {
  const { attributes } = read('hello', {
    ...unwrapped,
    dedupid: 'd',
    SCHEDULEKEY: 'k',
    deliverat: 't',
    tenantId: 'a',
  });
  assert.deepEqual(attributes, { dedupId: 'd', scheduleKey: 'k', deliverAt: 't', tenantid: 'a' });
});

test('B30: without metadata it cannot be said whose message it is', () => {
  refuses('hello', { 'content-type': 'text/plain', tenant: 'a' }, 'NOT_FROM_PUBSUB', /enable write_metadata/);
  refuses(
    'hello',
    { 'x-goog-pubsub-publish-time': TIME },
    'INVALID_BODY',
    /header x-goog-pubsub-message-id is missing/,
  );
});

test('a wrapped push with metadata headers as well is still a wrapped push', () => {
  const headers = { ...unwrapped, 'content-type': 'application/json' };
  assert.deepEqual(read(body, headers), HELLO);
  // Data that only looks like one belongs to another message.
  const other = read({ message: message({ messageId: '1' }) }, headers);
  assert.equal(other.id, '42');
  assert.equal(other.data.toString(), '{"message":{"messageId":"1","data":"aGVsbG8="}}');
});

test('what came from Pub/Sub and is malformed is refused with the name of the field', () => {
  const bad: [object, RegExp][] = [
    [{ message: message({ messageId: undefined }) }, /^message.messageId is missing/],
    [{ message: message({ messageId: '' }) }, /^message.messageId is missing/],
    [{ message: message({ messageId: 42 }) }, /^message.messageId is 42; accepted: a string/],
    [{ message: null }, /^message is null/],
    [{ message: 'hello' }, /^message is of type string; accepted: an object$/],
    [{ message: [] }, /^message is of type array/],
    [{ message: message({ attributes: { n: 1 } }) }, /^message.attributes\["n"\] is 1; accepted: a string/],
    [{ message: message({ attributes: ['a'] }) }, /^message.attributes is /],
    [{ message: message({ attributes: { n: '\ud800' } }) }, /^message.attributes\["n"\] holds half/],
    [{ message: message({ publishTime: 'yesterday' }) }, /^message.publishTime is "yesterday"/],
    [{ message: message({ orderingKey: 7 }) }, /^message.orderingKey is 7/],
    [{ message: message(), subscription: 7 }, /^subscription is 7/],
  ];
  for (const [sent, text] of bad) refuses(sent, {}, 'INVALID_BODY', text);
});

test('malformed CloudEvents are refused with the name of the field', () => {
  const type = { 'content-type': 'application/cloudevents+json' };
  refuses(
    body,
    { ...ce, 'ce-type': 'google.cloud.storage.object.v1.finalized' },
    'INVALID_BODY',
    /^header ce-type is "google.cloud.storage/,
  );
  refuses('{', ce, 'INVALID_BODY', /^the body of a CloudEvent/);
  refuses({ x: 1 }, ce, 'INVALID_BODY', /^message is missing/);
  refuses(
    { ...structured, data: { message: {} } },
    type,
    'INVALID_BODY',
    /^data.message.messageId is missing/,
  );
  refuses(
    { ...structured, data: 'text' },
    type,
    'INVALID_BODY',
    /^data is of type string; accepted: an object/,
  );
  refuses({ ...structured, data_base64: '!' }, type, 'INVALID_BODY', /^data_base64 is not base64/);
  refuses({ ...structured, data_base64: 'AAAA' }, type, 'INVALID_BODY', /^data_base64 does not hold/);
  refuses(
    [],
    { 'content-type': 'application/cloudevents-batch+json' },
    'INVALID_BODY',
    /^header content-type is/,
  );
});

test('what is no delivery is refused as such', () => {
  for (const junk of ['', '{"x":1}', '[]', 'null', '"text"', '{', 'hello', '{"data":{},"context":{}}']) {
    refuses(junk, {}, 'NOT_FROM_PUBSUB', /accepted: a Pub\/Sub push/);
  }
  refuses(Buffer.from([0xff, 0xfe]), {}, 'NOT_FROM_PUBSUB', /not a JSON object/);
});

test('a payload in the wrong place is never in an error, because errors are logged', () => {
  const secret = 'SECRET';
  const event = { 'content-type': 'application/cloudevents+json' };
  const type = 'google.cloud.pubsub.topic.v1.messagePublished';
  const bodies: [unknown, Record<string, string>][] = [
    [{ message: secret }, {}],
    [{ message: [secret] }, {}],
    [{ message: { messageId: '1', data: { secret } } }, {}],
    [{ message: { messageId: '1', attributes: [secret] } }, {}],
    [{ type, data: secret }, event],
    [{ type, data: [secret] }, event],
    [{ type, data: { message: secret } }, event],
    [{ type, data_base64: Buffer.from(secret).toString('base64') }, event],
  ];
  for (const [body, headers] of bodies) {
    assert.throws(
      () => readPush({ method: 'POST', headers, rawBody: Buffer.from(JSON.stringify(body)) }, 0),
      (error) => error instanceof PermanentError && !error.message.includes(secret),
      JSON.stringify(body),
    );
  }
});
