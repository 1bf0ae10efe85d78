import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import test, { type TestContext } from 'node:test';
import { type Message as ClientMessage, PubSub, type Subscription } from '@google-cloud/pubsub';
import { startPubsub, systemClock, turnsDuring, until } from 'pubsub-guarantees-emulator';
import { PermanentError } from '../../../shared/src/errors.ts';
import type { Handler } from '../../../shared/src/handler.ts';
import { jsonLog } from '../../../shared/src/log.ts';
import type { Message } from '../../../shared/src/message.ts';
import { ack, retry } from '../../../shared/src/outcome.ts';
import { receive, type ReceiveOptions } from '../../../shared/src/receive/pubsub.ts';
import { answer } from '../../../shared/src/receive/pubsub-message.ts';
import { refusal } from '../../../shared/src/testing/refusal.ts';

// Otherwise the client looks for a machine of Google's to run on, and warns that there is none.
process.env['METADATA_SERVER_DETECTION'] = 'none';

type SubscriptionOptions = Parameters<PubSub['createSubscription']>[2] & object;

async function setUp(t: TestContext, options: SubscriptionOptions = {}) {
  const server = await startPubsub({ clock: systemClock() });
  const client = new PubSub({ apiEndpoint: server.address, projectId: 'test-project' });
  const lines: string[] = [];
  const handled: Message[] = [];
  const receivers: { close(): Promise<void> }[] = [];
  t.after(async () => {
    for (const receiver of receivers) await receiver.close();
    await client.close();
    await server.close();
  });
  await client.createTopic('topic-1');
  await client.createSubscription('topic-1', 'sub-1', { ackDeadlineSeconds: 10, ...options });
  const start = (handler: Handler, parts: Partial<ReceiveOptions> = {}, subscription?: Subscription) => {
    const receiver = receive(
      subscription ?? client.subscription('sub-1'),
      (message, context) => {
        handled.push(message);
        return handler(message, context);
      },
      { consumer: 'c', log: jsonLog((line) => lines.push(line)), ...parts },
    );
    receivers.push(receiver);
    return receiver;
  };
  const publish = (text: string, parts: object = {}): Promise<string> =>
    client.topic('topic-1', { messageOrdering: true }).publishMessage({ data: Buffer.from(text), ...parts });
  const texts = (): string => handled.map(({ data }) => data.toString()).join(' ');
  return { server, client, lines, handled, start, publish, texts };
}

test('a pulled message has the form that a pushed one has', async (t) => {
  const { handled, start, publish, client, server } = await setUp(t);
  start(async () => ack());
  const id = await publish('hello', { attributes: { name: 'Łódź' }, orderingKey: 'k1' });
  await until(() => handled.length === 1);
  const [message] = handled;
  assert.ok(message);
  const { publishTime, ...rest } = message;
  assert.deepEqual(rest, {
    id,
    data: Buffer.from('hello'),
    attributes: { name: 'Łódź' },
    orderingKey: 'k1',
    subscription: 'projects/test-project/subscriptions/sub-1',
  });
  assert.equal(Object.getPrototypeOf(publishTime), Date.prototype);
  assert.ok(Math.abs(Date.now() - publishTime.getTime()) < 60_000);
  await client.topic('topic-1').publishMessage({ attributes: { type: 'ping' } });
  await until(() => handled.length === 2);
  assert.deepEqual([handled[1]?.data.length, 'orderingKey' in (handled[1] ?? {})], [0, false]);
  await until(() => server.stats().outstanding === 0);
});

test('a message that is not acknowledged comes again, whatever the handler did', async (t) => {
  const { handled, start, publish, lines, server } = await setUp(t);
  const answers: Handler[] = [
    async () => retry(new Error('later')),
    async () => Promise.reject(new Error('rejected')),
    () => {
      throw new Error('thrown');
    },
    async () => Promise.reject(new PermanentError('NO', 'not published')),
    (async () => undefined) as unknown as Handler,
    async () => ack(),
  ];
  start((message, context) => (answers[handled.length - 1] ?? (async () => ack()))(message, context), {
    retry: { min: '1ms' },
  });
  await publish('a');
  await until(() => handled.length === answers.length && server.stats().outstanding === 0);
  assert.equal(server.stats().backlog, 0);
  assert.equal(lines.length, answers.length - 1);
  assert.ok(lines.every((line) => line.includes('"messageId"') && line.includes('"code"')));
});

test('B48: the attempt is there where the subscription counts, and absent elsewhere', async (t) => {
  const { client, handled, start, publish } = await setUp(t);
  await client.createTopic('dead-1');
  await client.createSubscription('topic-1', 'sub-2', {
    deadLetterPolicy: { deadLetterTopic: 'projects/test-project/topics/dead-1', maxDeliveryAttempts: 5 },
  });
  start(async () => ack());
  start(
    async ({ deliveryAttempt = 0 }) => (deliveryAttempt < 3 ? retry(new Error('no')) : ack()),
    {},
    client.subscription('sub-2'),
  );
  await publish('a');
  await until(() => handled.length === 4);
  const attempts = handled.map(
    ({ subscription = '', deliveryAttempt }) => `${subscription.slice(-5)} ${deliveryAttempt}`,
  );
  assert.deepEqual(attempts.toSorted(), ['sub-1 undefined', 'sub-2 1', 'sub-2 2', 'sub-2 3']);
});

test('no more handlers run at once than asked for', async (t) => {
  const { start, publish, handled, server } = await setUp(t);
  let running = 0;
  let most = 0;
  start(
    async () => {
      most = Math.max(most, (running += 1));
      await pause(20);
      running -= 1;
      return ack();
    },
    { concurrency: 3 },
  );
  await Promise.all(Array.from({ length: 20 }, (_, index) => publish(String(index))));
  await until(() => handled.length >= 20 && server.stats().outstanding === 0);
  assert.equal(most, 3);
  assert.equal(handled.length, 20);
});

test('messages beyond the limit wait in the receiver, and are given back on close', async () => {
  const events = new EventEmitter();
  const subscription = Object.assign(events, {
    name: 'projects/p/subscriptions/s',
    pubsub: { projectId: 'p' },
    setOptions: () => {},
    close: () => Promise.resolve(),
  });
  const answers: string[] = [];
  const finish: (() => void)[] = [];
  const handler: Handler = ({ publishTime }) => {
    assert.equal(publishTime.getTime(), 679);
    return new Promise((resolve) => finish.push(() => resolve(ack())));
  };
  const receiver = receive(subscription as unknown as Subscription, handler, {
    consumer: 'c',
    concurrency: 2,
  });
  const send = (id: string): unknown =>
    events.emit('message', {
      id,
      data: Buffer.from(id),
      attributes: {},
      publishTime: Object.assign(new Date(678), { getMicroseconds: () => 0, getNanoseconds: () => 1 }),
      ackWithResponse: async () => answers.push(`ack ${id}`),
      nackWithResponse: async () => answers.push(`nack ${id}`),
    });
  for (const id of ['1', '2', '3', '4']) send(id);
  await pause(5);
  assert.equal(finish.length, 2);
  finish[0]?.();
  await until(() => finish.length === 3);
  const closing = receiver.close();
  await pause(5);
  send('5');
  await pause(5);
  assert.deepEqual(answers, ['ack 1', 'nack 4', 'nack 5']);
  for (const end of finish) end();
  await closing;
  assert.deepEqual(answers, ['ack 1', 'nack 4', 'nack 5', 'ack 2', 'ack 3']);
});

test('close waits for what is running, acks it, and gives back what waits', async (t) => {
  const { start, publish, handled, server } = await setUp(t);
  let finish = (): void => {};
  const receiver = start(() => new Promise((resolve) => (finish = () => resolve(ack()))), { concurrency: 1 });
  await publish('a');
  await until(() => handled.length === 1);
  await publish('b');
  await until(() => server.stats().outstanding === 2, 'b waits there');
  let closed = false;
  const closing = Promise.all([receiver.close(), receiver.close()]).then(() => (closed = true));
  await pause(200);
  assert.equal(closed, false);
  assert.equal(handled.length, 1);
  finish();
  await closing;
  await until(() => server.stats().outstanding === 0, 'a is acked, b is given back');
  assert.equal(server.stats().backlog, 1);
});

test('close does not wait for ever', async (t) => {
  const { start, publish, handled, server, lines } = await setUp(t);
  const receiver = start(() => new Promise(() => {}), { closeTimeout: '200ms' });
  await publish('a');
  await until(() => handled.length === 1);
  assert.ok((await turnsDuring(() => receiver.close())) < 3_000);
  await until(() => server.stats().outstanding === 0);
  assert.equal(server.stats().backlog, 1);
  assert.match(lines.join('\n'), /closing although handlers are running/);
});

test('B53: a handler past its deadline gives its message back', async (t) => {
  const { start, publish, handled, lines } = await setUp(t);
  start(() => (handled.length === 1 ? new Promise(() => {}) : Promise.resolve(ack())), {
    handlerTimeout: '100ms',
  });
  await publish('a');
  await until(() => handled.length === 2);
  assert.match(lines.join('\n'), /HANDLER_TIMEOUT/);
});

test('B53: an ack that an exactly-once subscription refuses is logged and not thrown', async () => {
  const lines: string[] = [];
  const log = jsonLog((line) => lines.push(line));
  const refusal = Object.assign(new Error('INVALID : expired'), { errorCode: 'INVALID' });
  const received = {
    id: '42',
    ackWithResponse: () => Promise.reject(refusal),
    nackWithResponse: () => Promise.resolve('SUCCESS'),
  } as unknown as ClientMessage;
  await answer(received, true, log);
  await answer(received, false, log);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /"messageId":"42","answer":"ack","code":"INVALID"/);
});

test('B53: an error of the stream is logged and not thrown, and the stream opens again', async (t) => {
  const { client, handled, start, publish, lines, texts } = await setUp(t);
  start(async () => ack(), { reopenAfter: '50ms' }, client.subscription('sub-2'));
  await until(() => lines.length > 0);
  assert.match(lines[0] ?? '', /the subscription reports an error.*sub-2.*"code":"5"/);
  await client.createSubscription('topic-1', 'sub-2');
  await publish('late');
  await until(() => handled.length === 1);
  assert.equal(texts(), 'late');
});

test('options are checked before anything is received', async (t) => {
  const { start } = await setUp(t);
  const handler: Handler = async () => ack();
  const wrong: object[] = [{ consumer: '' }, { consumer: undefined }, { consumer: 5 }, { source: '' }];
  wrong.push({ concurrency: 0 }, { concurrency: 1.5 }, { handlerTimeout: '0s' });
  for (const parts of wrong) {
    const [path = ''] = Object.keys(parts);
    assert.throws(() => start(handler, parts as Partial<ReceiveOptions>), refusal(path));
  }
  assert.throws(
    () => start(handler, { handlerTimeout: '2h' }),
    refusal('handlerTimeout', /at most maxExtension \("60m"\), because/),
  );
  assert.throws(
    () => start(handler, { maxExtension: '1m', handlerTimeout: '2m' }),
    refusal('handlerTimeout'),
  );
  assert.throws(
    () => start(handler, { maxExtension: '59s' }),
    refusal('maxExtension', /at least handlerTimeout \("60s"\)/),
  );
});

test('a subscription object serves one receiver at a time: with two, the ack of one would settle for both', async (t) => {
  const { client, start, publish, texts } = await setUp(t);
  const subscription = client.subscription('sub-1');
  const first = start(async () => ack(), {}, subscription);
  assert.throws(() => start(async () => retry(new Error('no')), { consumer: 'other' }, subscription), {
    code: 'SUBSCRIPTION_IN_USE',
  });
  await first.close();
  start(async () => ack(), {}, subscription);
  await publish('a');
  await until(() => texts() === 'a');
});

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));
