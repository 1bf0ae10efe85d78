import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import test, { type TestContext } from 'node:test';
import { protos, PubSub, type v1 } from '@google-cloud/pubsub';
import { type handleUnaryCall, Server, ServerCredentials } from '@grpc/grpc-js';
import { startPubsub, systemClock, turnsDuring, until } from 'pubsub-guarantees-emulator';
import type { Attributes, OutgoingMessage } from '../../../shared/src/message.ts';
import {
  pubsubClient,
  pubsubPublisher,
  type PubsubPublisher,
  type PubsubPublisherOptions,
} from '../../../shared/src/publish/pubsub.ts';
import { publishError } from '../../../shared/src/publish/pubsub-errors.ts';
import { refusal } from '../../../shared/src/testing/refusal.ts';

const { PublishRequest, PublishResponse } = protos.google.pubsub.v1;
type Request = protos.google.pubsub.v1.PublishRequest;
type Handle = handleUnaryCall<Request, string[]>;

// Otherwise the client looks for a machine of Google's to run on, and warns that there is none.
process.env['METADATA_SERVER_DETECTION'] = 'none';

const BIN = Buffer.from('AP/+gMMo', 'base64');
const out = (data: string | Buffer, attributes: Attributes = {}, orderingKey?: string): OutgoingMessage => ({
  topic: 'topic-1',
  data: Buffer.from(data),
  attributes,
  ...(orderingKey !== undefined && { orderingKey }),
});
const texts = (request: Request | undefined): string =>
  (request?.messages ?? []).map(({ data }) => Buffer.from(data as Uint8Array).toString()).join(' ');

/** The local Pub/Sub server with one topic and one subscription. */
async function setUp(t: TestContext, options?: PubsubPublisherOptions) {
  const server = await startPubsub({ clock: systemClock() });
  const client = new PubSub({ apiEndpoint: server.address, projectId: 'test-project' });
  const publisher = pubsubPublisher(client, options);
  const subscriber = await v1Subscriber(client);
  t.after(async () => {
    await publisher.close();
    await subscriber.close();
    await client.close();
    await server.close();
  });
  await client.createTopic('topic-1');
  await client.createSubscription('topic-1', 'sub-1', { enableMessageOrdering: true });
  const pull = async (maxMessages = 100): Promise<protos.google.pubsub.v1.IPubsubMessage[]> => {
    const subscription = 'projects/test-project/subscriptions/sub-1';
    const [{ receivedMessages }] = await subscriber.pull({ subscription, maxMessages });
    return (receivedMessages ?? []).map(({ message }) => message ?? {});
  };
  return { client, publisher, pull };
}

async function v1Subscriber(client: PubSub): Promise<v1.SubscriberClient> {
  const pubsub = await import('@google-cloud/pubsub');
  const config = await client.getClientConfig();
  return new pubsub.v1.SubscriberClient(config as ConstructorParameters<typeof v1.SubscriberClient>[0]);
}

/** A server that answers as the test says. */
async function fake(t: TestContext, handle: Handle, options: PubsubPublisherOptions = {}) {
  const requests: Request[] = [];
  const server = new Server();
  const definition = {
    publish: {
      path: '/google.pubsub.v1.Publisher/Publish',
      requestStream: false as const,
      responseStream: false as const,
      requestSerialize: (request: Request) => Buffer.from(PublishRequest.encode(request).finish()),
      requestDeserialize: (bytes: Buffer) => PublishRequest.decode(bytes),
      responseSerialize: (messageIds: string[]) =>
        Buffer.from(PublishResponse.encode({ messageIds }).finish()),
      responseDeserialize: (bytes: Buffer) => PublishResponse.decode(bytes).messageIds,
    },
  };
  const publish: Handle = (call, answer) => {
    requests.push(call.request);
    handle(call, answer);
  };
  server.addService(definition, { publish });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const client = new PubSub({ apiEndpoint: `127.0.0.1:${port}`, projectId: 'test-project' });
  const publisher = pubsubPublisher(client, options);
  t.after(async () => {
    await publisher.close();
    await client.close();
    server.forceShutdown();
  });
  return { publisher, requests };
}
const confirm: Handle = (call, answer) =>
  answer(
    null,
    call.request.messages.map((_, index) => `id-${index}`),
  );
const failWith =
  (code: number): Handle =>
  (_, answer) =>
    answer({ code, details: `status ${code}` });

test('B25: bytes, attributes and ordering key arrive as they were sent', async (t) => {
  const { publisher, pull } = await setUp(t);
  const odd = '{"template":"{{projectId}}","__proto__":"x","hasOwnProperty":"y","empty":""}';
  const attributes = { ...(JSON.parse(odd) as Attributes), name: 'Łódź 日本 🚀' };
  const id = await publisher.publish(out(BIN, attributes, 'k1'));
  const [received] = await pull();
  assert.equal(received?.messageId, id);
  assert.equal(Buffer.from(received.data as Uint8Array).toString('base64'), 'AP/+gMMo');
  const entries = Object.entries(received.attributes ?? {});
  assert.deepEqual(new Map(entries), new Map(Object.entries(attributes)));
  assert.equal(received.orderingKey, 'k1');
});

test('B02: a message of attributes alone goes without data', async (t) => {
  const { publisher, pull } = await setUp(t);
  await publisher.publish(out('', { type: 'ping' }, ''));
  const [received] = await pull();
  assert.equal(received?.data?.length, 0);
  assert.deepEqual({ ...received?.attributes }, { type: 'ping' });
  assert.equal(received?.orderingKey, '');
});

test('a topic may be named in full', async (t) => {
  const { publisher, pull } = await setUp(t);
  await publisher.publish({ ...out('a'), topic: 'projects/test-project/topics/topic-1' });
  assert.equal((await pull()).length, 1);
});

test('a topic that does not exist is tried again: an operator may make it anew', async (t) => {
  const { publisher } = await setUp(t);
  const refused = publisher.publish({ ...out('a'), topic: 'topic-2' });
  await assert.rejects(refused, { name: 'TransientError', code: 'TOPIC_NOT_FOUND' });
});

test('messages of one ordering key arrive in order, however many there are', async (t) => {
  const { publisher, pull } = await setUp(t);
  await Promise.all(
    Array.from({ length: 250 }, (_, index) => publisher.publish(out(String(index), {}, 'k1'))),
  );
  const received = (await pull(250)).map(({ data }) => Number(Buffer.from(data as Uint8Array).toString()));
  assert.deepEqual(
    received,
    Array.from({ length: 250 }, (_, index) => index),
  );
});

test('B27: a message over a limit is refused before it leaves', async (t) => {
  const { publisher, requests } = await fake(t, confirm, { maxBytes: 100 });
  await assert.rejects(publisher.publish(out('x'.repeat(101))), { code: 'LIMIT_EXCEEDED' });
  await assert.rejects(publisher.publish(out('x', { goog: 'x' })), { code: 'RESERVED_ATTRIBUTE' });
  await assert.rejects(publisher.publish(out('')), { code: 'EMPTY_MESSAGE' });
  assert.equal(requests.length, 0);
});

test('what is published together goes in one request; one alone does not wait', async (t) => {
  const { publisher, requests } = await fake(t, confirm);
  await publisher.publish(out('warm'));
  assert.ok((await turnsDuring(() => publisher.publish(out('alone')))) < 500);
  assert.deepEqual(await Promise.all([publisher.publish(out('a')), publisher.publish(out('b'))]), [
    'id-0',
    'id-1',
  ]);
  assert.deepEqual(requests.map(texts), ['warm', 'alone', 'a b']);
});

test('B10: the caller’s objects are neither written to nor read later', async (t) => {
  const { publisher, requests } = await fake(t, confirm);
  const attributes: Record<string, string> = { a: 'b' };
  const data = Buffer.from('x');
  const message = Object.freeze({ topic: 'topic-1', data, attributes });
  const answer = publisher.publish(message);
  attributes['a'] = 'changed';
  data.write('y');
  await answer;
  assert.deepEqual(attributes, { a: 'changed' });
  assert.equal(texts(requests[0]), 'x');
  assert.deepEqual({ ...requests[0]?.messages[0]?.attributes }, { a: 'b' });
});

test('B10: a short outage is retried', async (t) => {
  let calls = 0;
  const { publisher, requests } = await fake(t, (call, answer) =>
    (calls += 1) < 3 ? failWith(14)(call, answer) : confirm(call, answer),
  );
  assert.equal(await publisher.publish(out('a', { dedupId: 'd' })), 'id-0');
  assert.deepEqual(requests.map(texts), ['a', 'a', 'a']);
});

test('a message is not refused for the fault of another', async (t) => {
  const { publisher } = await fake(t, (call, answer) =>
    texts(call.request).includes('bad') ? failWith(3)(call, answer) : confirm(call, answer),
  );
  for (const key of [undefined, 'k1']) {
    const answers = await Promise.allSettled(
      ['a', 'bad', 'c'].map((text) => publisher.publish(out(text, {}, key))),
    );
    assert.deepEqual(
      answers.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
  }
});

test('an ordering key that failed takes messages again', async (t) => {
  let isDown = true;
  const { publisher } = await fake(t, (call, answer) =>
    isDown ? failWith(7)(call, answer) : confirm(call, answer),
  );
  const answers = await Promise.allSettled(['1', '2'].map((text) => publisher.publish(out(text, {}, 'k1'))));
  assert.deepEqual(
    answers.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  isDown = false;
  assert.equal(await publisher.publish(out('3', {}, 'k1')), 'id-0');
});

test('a server that is down or silent gives a transient error in time, not a hang', async (t) => {
  const closed = new PubSub({ apiEndpoint: '127.0.0.1:9', projectId: 'test-project' });
  const down = pubsubPublisher(closed, { publishTimeout: '300ms' });
  t.after(() => closed.close());
  const { publisher: silent } = await fake(t, () => {}, { publishTimeout: '300ms' });
  for (const publisher of [down, silent]) {
    const rejects = () => assert.rejects(publisher.publish(out('a', {}, 'k1')), { name: 'TransientError' });
    assert.ok((await turnsDuring(rejects)) < 2_000);
  }
  await down.close();
});

test('B52: close waits for every publish, and may be called twice', async (t) => {
  const answers: (() => void)[] = [];
  const { publisher } = await fake(t, (call, answer) => void answers.push(() => confirm(call, answer)));
  const publishes = ['a', 'b', 'c'].map((text, index) => publisher.publish(out(text, {}, `k${index}`)));
  let closed = false;
  const closing = Promise.all([publisher.close(), publisher.close()]).then(() => (closed = true));
  await until(() => answers.length === 3);
  assert.equal(closed, false);
  for (const answer of answers) answer();
  await closing;
  assert.deepEqual(await Promise.all(publishes), ['id-0', 'id-0', 'id-0']);
  await assert.rejects(publisher.publish(out('d')), { name: 'TransientError', code: 'PUBLISHER_CLOSED' });
});

test('close leaves the caller’s client open', async (t) => {
  const { client, publisher } = await setUp(t);
  await publisher.publish(out('a'));
  await publisher.close();
  assert.equal(client.isOpen, true);
  const again: PubsubPublisher = pubsubPublisher(client);
  await again.publish(out('b'));
  await again.close();
});

test('each status code has one meaning', () => {
  const kinds = Array.from({ length: 17 }, (_, code) => {
    const { name, code: word } = publishError(Object.assign(new Error('x'), { code }), 't');
    return `${code} ${name} ${word}`;
  });
  assert.deepEqual(
    kinds.filter((kind) => kind.includes('Permanent')),
    [
      '3 PermanentError PUBLISH_REFUSED',

      '11 PermanentError PUBLISH_REFUSED',
    ],
  );
  assert.ok(
    kinds.includes('7 TransientError PUBLISH_DENIED') &&
      kinds.includes('14 TransientError PUBSUB_UNAVAILABLE'),
  );
  assert.equal(publishError({ code: 'ENOTFOUND' }, 't').code, 'PUBSUB_UNAVAILABLE');
  for (const odd of [new Error('no credentials'), 'text', undefined, { code: 'EMINE' }]) {
    assert.equal(publishError(odd, 't').code, 'PUBLISH_FAILED');
  }
});

test('options are checked when the publisher is made', async (t) => {
  const client = new PubSub({ apiEndpoint: '127.0.0.1:9', projectId: 'test-project' });
  t.after(() => client.close());
  for (const options of [
    { publishTimeout: '0s' },
    { publishTimeout: '1.5s' },
    { batchMessages: 0 },
    { batchMessages: 1_001 },
    { batchDelay: '10s' },
    { batchDelay: '1s', publishTimeout: '1s' },
  ]) {
    assert.throws(
      () => pubsubPublisher(client, options as PubsubPublisherOptions),
      refusal(Object.keys(options)[0] ?? ''),
    );
  }
});

test('a client finds an emulator by its IPv6 address, which Google’s own takes apart at the first colon', async (t) => {
  const server = await startPubsub({ clock: systemClock() });
  const [host = '', port = ''] = server.address.split(':');
  const relay = createServer((socket) => {
    const other = connect(Number(port), host);
    for (const end of [socket, other]) end.on('error', () => end.destroy());
    socket.pipe(other).pipe(socket);
  });
  const listening = once(relay, 'listening').then(
    () => true,
    () => false,
  );
  relay.listen(0, '::1');
  if (!(await listening)) {
    await server.close();
    return t.skip('this machine has no IPv6 loopback address');
  }
  const own = relay.address() as AddressInfo;
  const client = pubsubClient({ projectId: 'test-project', emulatorHost: `[::1]:${own.port}` });
  const publisher = pubsubPublisher(client, { publishTimeout: '60s' });
  t.after(async () => {
    await publisher.close();
    await client.close();
    relay.close();
    await server.close();
  });
  await client.createTopic('topic-1');
  assert.match(await publisher.publish(out('six')), /^\d+$/);
});

test('an emulator that is no host:port is refused when the client is made', () => {
  for (const emulatorHost of ['h', '::1:1', '[::1]', 'h:0', 'h:99999', 'http://h:1']) {
    assert.throws(() => pubsubClient({ projectId: 'p', emulatorHost }), refusal('emulatorHost'));
  }
});
