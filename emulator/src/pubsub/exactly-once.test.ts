import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { AckResponses, v1, type Message } from '@google-cloud/pubsub';
import type { Clock } from '../clock.ts';
import { manualClock } from '../manual-clock.ts';
import { subscriptionName, testServer, texts, topicName, until, type TestServer } from './test-server.ts';
import type { StreamingPullResponse } from './wire.ts';

const SUB = 'orders-sub';
const EXACTLY_ONCE = { enableExactlyOnceDelivery: true };
const INVALID = 'PERMANENT_FAILURE_INVALID_ACK_ID';
const message = (content: string) => ({ data: Buffer.from(content) });
const responseOf = (error: unknown): string => String((error as { errorCode?: unknown }).errorCode);

type Settle = (ackIds: readonly (string | undefined)[], ackDeadlineSeconds?: number) => Promise<string>;

/** A server with an exactly-once subscription, and the client library's unary calls, which decode error details. */
async function start(t: TestContext, clock?: Clock): Promise<TestServer & Readonly<{ settle: Settle }>> {
  const running = await testServer(t, clock);
  await running.create('orders', SUB, EXACTLY_ONCE);
  const options = (await running.pubsub.getClientConfig()) as ConstructorParameters<
    typeof v1.SubscriberClient
  >[0];
  const client = new v1.SubscriberClient(options);
  t.after(() => client.close());
  /** `ok`, or what the reply says of the ack IDs. */
  const settle: Settle = async (ids, ackDeadlineSeconds) => {
    const request = { subscription: subscriptionName(SUB), ackIds: ids.map(String) };
    try {
      if (ackDeadlineSeconds === undefined) await client.acknowledge(request);
      else await client.modifyAckDeadline({ ...request, ackDeadlineSeconds });
      return 'ok';
    } catch (error) {
      const { code, reason, domain, errorInfoMetadata } = error as Record<string, unknown>;
      assert.deepEqual(
        [code, reason, domain],
        [3, 'EXACTLY_ONCE_ACKID_FAILURE', 'pubsub.googleapis.com'],
        String(error),
      );
      return JSON.stringify(errorInfoMetadata);
    }
  };
  return { ...running, settle };
}

const named = (...ids: readonly (string | undefined)[]): string =>
  JSON.stringify(Object.fromEntries(ids.map((id) => [id, INVALID])));

test('the client sees the subscription as exactly-once, and every ack succeeds', async (t) => {
  const { pubsub, server } = await start(t);
  const subscription = pubsub.subscription(SUB);
  assert.equal((await subscription.getMetadata())[0].enableExactlyOnceDelivery, true);
  const answers: string[] = [];
  subscription.on('message', (one: Message) => {
    one.ackWithResponse().then(
      (answer) => answers.push(answer),
      (error: unknown) => answers.push(responseOf(error)),
    );
  });
  await Promise.all(
    Array.from({ length: 20 }, (_, index) => pubsub.topic('orders').publishMessage(message(`${index}`))),
  );
  await until(() => answers.length === 20 && server.stats().outstanding === 0);
  assert.deepEqual([...new Set(answers)], [AckResponses.Success]);
  assert.equal(subscription.isOpen, true);
  await subscription.close();
});

test('the client gets INVALID for a delivery whose lease is over, and SUCCESS for the next one', async (t) => {
  const clock = manualClock();
  const { pubsub, server } = await start(t, clock);
  const subscription = pubsub.subscription(SUB);
  const got: Message[] = [];
  subscription.on('message', (one: Message) => got.push(one));
  await pubsub.topic('orders').publishMessage(message('a'));
  await until(() => got.length === 1);
  t.after(() => subscription.close());
  clock.advance(59_000);
  assert.deepEqual([server.stats().outstanding, server.stats().backlog], [1, 0], 'a lease that is valid');
  clock.advance(2_000);
  await until(() => got.length === 2);
  const [first, second] = got;
  assert.notEqual(first?.ackId, second?.ackId);
  await assert.rejects(first!.ackWithResponse(), (error) => responseOf(error) === AckResponses.Invalid);
  assert.equal(server.stats().outstanding, 1, 'the later delivery is untouched');
  assert.equal(await second!.ackWithResponse(), AckResponses.Success);
  assert.equal(await second!.ackWithResponse(), AckResponses.Invalid);
  assert.deepEqual([server.stats().outstanding, server.stats().backlog], [0, 0]);
  await subscription.close();
});

test('names acknowledged, nacked, expired and malformed ack IDs, for acks and new deadlines alike', async (t) => {
  const clock = manualClock();
  const { publish, pull, settle } = await start(t, clock);
  await publish('orders', message('a'), message('b'), message('c'));
  const [a, b, c] = (await pull(SUB)).map(({ ackId }) => ackId);
  assert.equal(await settle([a]), 'ok');
  assert.equal(await settle([b], 0), 'ok');
  assert.equal(await settle([c], 30), 'ok');
  for (const seconds of [undefined, 0, 20]) {
    assert.equal(await settle([a], seconds), named(a));
    assert.equal(await settle([b], seconds), named(b));
    assert.equal(await settle(['no such form'], seconds), named('no such form'));
  }
  clock.advance(30_000);
  assert.equal(await settle([c]), named(c));
  assert.equal(texts(await pull(SUB)), 'b,c');
});

test('of a mixed request the valid ones are carried out, and one that is named twice counts once', async (t) => {
  const clock = manualClock();
  const { publish, pull, settle, server } = await start(t, clock);
  await publish('orders', message('a'), message('b'), message('c'));
  const [a, b, c] = (await pull(SUB)).map(({ ackId }) => ackId);
  assert.equal(await settle([a, 'x', b, 'y', a]), named('x', 'y'));
  assert.equal(server.stats().outstanding, 1);
  assert.equal(await settle([a, c], 0), named(a));
  clock.advance(50);
  assert.equal(texts(await pull(SUB)), 'c');
});

test('an answer about thousands of ack IDs still arrives', async (t) => {
  const { settle } = await start(t, manualClock());
  const answer = await settle(Array.from({ length: 3000 }, (_, index) => `stale-${index}`));
  assert.ok(Object.keys(JSON.parse(answer) as object).length > 400);
});

test('a stream confirms what was delivered on it, and shows the property whenever it changes', async (t) => {
  const { publish, stream, call, server } = await start(t, manualClock());
  const pulling = stream();
  const got: StreamingPullResponse[] = [];
  pulling.on('data', (response: StreamingPullResponse) => got.push(response));
  pulling.write({ subscription: subscriptionName(SUB), streamAckDeadlineSeconds: 10 });
  await publish('orders', message('a'), message('b'));
  const received = () => got.flatMap(({ receivedMessages = [] }) => receivedMessages);
  await until(() => received().length === 2);
  const [a, b] = received().map(({ ackId }) => ackId);
  assert.equal(got[0]?.subscriptionProperties?.exactlyOnceDeliveryEnabled, true);
  pulling.write({
    ackIds: [a!, 'x'],
    modifyDeadlineAckIds: [b!, 'y'],
    modifyDeadlineSeconds: [20, 20],
  });
  await until(() => got.some((response) => response.modifyAckDeadlineConfirmation));
  const confirmed = got.find((response) => response.acknowledgeConfirmation)?.acknowledgeConfirmation;
  assert.deepEqual([confirmed?.ackIds, confirmed?.invalidAckIds], [[a], ['x']]);
  const moved = got.find((response) => response.modifyAckDeadlineConfirmation)?.modifyAckDeadlineConfirmation;
  assert.deepEqual([moved?.ackIds, moved?.invalidAckIds], [[b], ['y']]);
  assert.equal(server.stats().outstanding, 1);
  await call('UpdateSubscription', {
    subscription: { name: subscriptionName(SUB), enableExactlyOnceDelivery: false },
    updateMask: { paths: ['enable_exactly_once_delivery'] },
  });
  await publish('orders', message('c'));
  await until(() => received().length === 3);
  assert.equal(got.at(-1)?.subscriptionProperties?.exactlyOnceDeliveryEnabled, false);
  pulling.end();
  await until(() => pulling.closed || pulling.readableEnded);
});

test('is refused together with push, however the two come together', async (t) => {
  const { call, create } = await start(t);
  const refused = { code: 3, details: /is not supported with push/ };
  const pushConfig = { pushEndpoint: 'http://127.0.0.1:1/' };
  const wanted = { name: subscriptionName('pushed'), topic: topicName('orders'), pushConfig };
  await assert.rejects(call('CreateSubscription', { ...wanted, ...EXACTLY_ONCE }), refused);
  await assert.rejects(
    call('ModifyPushConfig', { subscription: subscriptionName(SUB), pushConfig }),
    refused,
  );
  const update = (name: string, fields: object, path: string) =>
    call('UpdateSubscription', {
      subscription: { name: subscriptionName(name), ...fields },
      updateMask: { paths: [path] },
    });
  await assert.rejects(update(SUB, { pushConfig }, 'push_config'), refused);
  await create('orders', 'pushed', { pushConfig });
  await assert.rejects(update('pushed', EXACTLY_ONCE, 'enable_exactly_once_delivery'), refused);
});
