/**
 * Native ordering keys over Google's client and a socket, against a server whose publishes fail: messages that a
 * key's publishers publish until they are confirmed arrive in order, and other keys do not wait.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { PubSub, v1 } from '@google-cloud/pubsub';
import {
  createFaults,
  type FaultRule,
  startPubsub,
  systemClock,
  turnsDuring,
} from 'pubsub-guarantees-emulator';
import { pubsubPublisher, type PubsubPublisherOptions } from '../../../shared/src/publish/pubsub.ts';

process.env['METADATA_SERVER_DETECTION'] = 'none';

async function setUp(
  t: TestContext,
  rules: readonly Pick<FaultRule, 'nth' | 'action'>[],
  options: PubsubPublisherOptions = {},
) {
  const faults = createFaults();
  const server = await startPubsub({ clock: systemClock(), faults });
  const client = new PubSub({ apiEndpoint: server.address, projectId: 'test-project' });
  const config = await client.getClientConfig();
  const subscriber = new v1.SubscriberClient(config as ConstructorParameters<typeof v1.SubscriberClient>[0]);
  const publisher = pubsubPublisher(client, options);
  t.after(async () => {
    await publisher.close();
    await subscriber.close();
    await client.close();
    await server.close();
  });
  const [topic] = await client.createTopic('topic-1');
  await client.createSubscription('topic-1', 'sub-1', { enableMessageOrdering: true });
  await publisher.publish({
    topic: 'topic-1',
    data: Buffer.from('warm 0'),
    attributes: {},
    orderingKey: 'warm',
  });
  const all = rules.map((rule) => ({ service: 'pubsub', method: 'Publish', resource: topic.name, ...rule }));
  faults.set({ rules: all });

  const send = (key: string, number: number): Promise<string> =>
    publisher.publish({
      topic: 'topic-1',
      data: Buffer.from(`${key} ${number}`),
      attributes: {},
      orderingKey: key,
    });
  /** Publishes until it is confirmed, again at once after each failure. */
  const insist = async (key: string, number: number): Promise<void> => {
    for (let attempt = 0; attempt < 20; attempt += 1) {
      const isOut = await send(key, number).then(
        () => true,
        () => false,
      );
      if (isOut) return;
    }
    throw new Error(`${key} ${number} was never taken`);
  };
  /** What the subscription has of each key, in its order. */
  const received = async (): Promise<Map<string, number[]>> => {
    const subscription = 'projects/test-project/subscriptions/sub-1';
    const byKey = new Map<string, number[]>();
    for (let pull = 0; pull < 200; pull += 1) {
      const [{ receivedMessages }] = await subscriber.pull({
        subscription,
        maxMessages: 1_000,
        returnImmediately: true,
      });
      const messages = receivedMessages ?? [];
      if (messages.length === 0) break;
      for (const { message } of messages) {
        const [key = '', number] = Buffer.from(message?.data as Uint8Array)
          .toString()
          .split(' ');
        byKey.set(key, [...(byKey.get(key) ?? []), Number(number)]);
      }
      await subscriber.acknowledge({ subscription, ackIds: messages.map(({ ackId }) => ackId ?? '') });
    }
    byKey.delete('warm');
    return byKey;
  };
  return { send, insist, received, faults };
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

test('publishes that fail, or whose replies are lost, change the order of no key', async (t) => {
  // Codes that Google's client does not retry: the caller gets each of them.
  const { insist, received, faults } = await setUp(
    t,
    [
      { nth: [1, 4, 5, 11, 17], action: { type: 'fail', code: 'PERMISSION_DENIED' } },
      { nth: [3, 9, 14, 20], action: { type: 'lose-reply', code: 'PERMISSION_DENIED' } },
      { nth: [7], action: { type: 'delay', ms: 50 } },
    ],
    { batchMessages: 7 },
  );
  const keys = ['a', 'b', 'c', 'd'];
  const count = 60;
  const work: Promise<void>[] = [];
  for (const number of numbers(count)) {
    for (const key of keys) work.push(insist(key, number));
    if (number % 15 === 0) await pause(5);
  }
  await Promise.all(work);
  assert.ok(faults.log().length >= 9, `${faults.log().length} publishes were disturbed`);
  const byKey = await received();
  let copies = 0;
  for (const key of keys) {
    const seen = byKey.get(key) ?? [];
    assert.deepEqual([...new Set(seen)], numbers(count), `${key}: ${seen.join(' ')}`);
    copies += seen.length - count;
  }
  assert.ok(copies >= 1, 'a lost reply makes copies, which have the order of their first ones');
});

test('a key whose publish hangs delays no other key; publishes behind it are rejected with it, and the key goes on', async (t) => {
  const { send, insist, received } = await setUp(t, [{ nth: [1], action: { type: 'delay', ms: 3_000 } }], {
    publishTimeout: '1s',
  });
  const answers = [1, 2].map((number) => send('stuck', number).catch((error: unknown) => error));
  await pause(20);
  const behind = send('stuck', 3).catch((error: unknown) => error);
  const free = () => Promise.all(numbers(20).map((number) => insist('free', number)));
  assert.ok((await turnsDuring(free)) < 900, 'other keys are free');
  const codes = await Promise.all([...answers, behind]);
  for (const error of codes) assert.match(String((error as { code?: string }).code), /^PUBLISH_/);
  for (const number of [1, 2, 3]) await insist('stuck', number);
  await pause(3_000);
  const byKey = await received();
  const stuck = byKey.get('stuck') ?? [];
  assert.deepEqual([...new Set(stuck)], [1, 2, 3], stuck.join(' '));
  assert.deepEqual(byKey.get('free'), numbers(20));
});
