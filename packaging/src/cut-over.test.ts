/**
 * Putting a function between a topic and its subscription without a double effect (docs/upgrades.md), on the local
 * stack: the new subscription is set to the old one's snapshot, so that it has what the old one has not acknowledged,
 * and nothing that it has.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Message, PubSub, type Subscription } from '@google-cloud/pubsub';
import { startPubsub, systemClock } from 'pubsub-guarantees-emulator';

/** Handles `count` messages and closes: what the subscriber has by then is acknowledged. */
async function handled(subscription: Subscription, count: number): Promise<readonly string[]> {
  const done: string[] = [];
  const acked: Promise<unknown>[] = [];
  await new Promise<void>((resolve) => {
    subscription.on('message', (message: Message) => {
      if (done.length === count) return message.nack();
      done.push(message.data.toString());
      acked.push(Promise.resolve(message.ack()));
      if (done.length === count) resolve();
    });
  });
  await Promise.all(acked);
  await subscription.close();
  return done;
}

test('what the old subscription has handled does not come through the new one, and what it has not comes once', async (t) => {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const server = await startPubsub({ clock: systemClock() });
  const client = new PubSub({ projectId: 'demo-project', apiEndpoint: server.address });
  t.after(async () => {
    await client.close();
    await server.close();
  });
  const [topic] = await client.createTopic('orders');
  const flow = { flowControl: { maxMessages: 1, allowExcessMessages: false } };
  await topic.createSubscription('worker');
  const publish = async (...texts: string[]): Promise<void> => {
    for (const text of texts) await topic.publishMessage({ data: Buffer.from(text) });
  };

  await publish('1', '2');
  // 1. The function's subscription, as a pull subscription: both hold what comes from now on.
  await topic.createSubscription('orders-once-push');
  await publish('3', '4', '5');
  const before = await handled(client.subscription('worker', flow), 3);
  // 2. The worker is stopped: it has handled some of what both hold.
  const [snapshot] = await client.subscription('worker').createSnapshot('cut-over');
  // 3. The new one is set to the old one's snapshot.
  await client.subscription('orders-once-push').seek(snapshot.name);
  await publish('6');
  const after = await handled(client.subscription('orders-once-push', flow), 3);

  assert.deepEqual([...before, ...after].toSorted(), ['1', '2', '3', '4', '5', '6']);
});

test('without the snapshot some would be handled twice, and some not at all', async (t) => {
  const server = await startPubsub({ clock: systemClock() });
  const client = new PubSub({ projectId: 'demo-project', apiEndpoint: server.address });
  t.after(async () => {
    await client.close();
    await server.close();
  });
  const [topic] = await client.createTopic('orders');
  const flow = { flowControl: { maxMessages: 1, allowExcessMessages: false } };
  await topic.createSubscription('worker');
  await topic.publishMessage({ data: Buffer.from('1') });
  await topic.createSubscription('orders-once-push');
  await topic.publishMessage({ data: Buffer.from('2') });
  const before = await handled(client.subscription('worker', flow), 2);
  const after = await handled(client.subscription('orders-once-push', flow), 1);
  assert.deepEqual([...before, ...after].toSorted(), ['1', '2', '2']);
});
