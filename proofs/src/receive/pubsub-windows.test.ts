import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { PubSub } from '@google-cloud/pubsub';
import { startPubsub, systemClock, turnsDuring } from 'pubsub-guarantees-emulator';
import { subscriptionWindows } from '../../../shared/src/receive/pubsub.ts';

process.env['METADATA_SERVER_DETECTION'] ??= 'none';

/** A server waits for its connections, so the client goes first. */
function connect(t: TestContext, address: string, closeServer: () => unknown): PubSub {
  const client = new PubSub({ projectId: 'p', apiEndpoint: address, emulatorMode: true });
  t.after(async () => {
    await client.close();
    await closeServer();
  });
  return client;
}

test('reads ack deadline, retention, dead-letter attempts and backoff of a subscription', async (t) => {
  const server = await startPubsub({ clock: systemClock() });
  const client = connect(t, server.address, () => server.close());
  await client.createTopic('orders');
  await client.createTopic('dead-letters');
  await client.createSubscription('orders', 'full', {
    ackDeadlineSeconds: 40,
    messageRetentionDuration: { seconds: 3_600 },
    deadLetterPolicy: { deadLetterTopic: 'projects/p/topics/dead-letters', maxDeliveryAttempts: 7 },
    retryPolicy: { minimumBackoff: { seconds: 10 }, maximumBackoff: { seconds: 300 } },
  });
  await client.createSubscription('orders', 'plain');
  assert.deepEqual(await subscriptionWindows(client, 'full'), {
    ackDeadlineMs: 40_000,
    messageRetentionMs: 3_600_000,
    maxDeliveryAttempts: 7,
    minimumBackoffMs: 10_000,
    maximumBackoffMs: 300_000,
    hasSnapshots: false,
  });
  const plain = await subscriptionWindows(client, 'projects/p/subscriptions/plain');
  assert.equal(plain?.ackDeadlineMs, 10_000);
  assert.equal(plain.maxDeliveryAttempts, undefined);
  assert.equal(await subscriptionWindows(client, 'missing'), undefined);
});

test('reads what a seek can bring back: the topic’s retention, and its snapshots but no other topic’s', async (t) => {
  const server = await startPubsub({ clock: systemClock() });
  const client = connect(t, server.address, () => server.close());
  await client.createTopic({ name: 'kept', messageRetentionDuration: { seconds: 31 * 86_400 } });
  await client.createTopic('plain');
  await client.createSubscription('kept', 'kept');
  await client.createSubscription('plain', 'plain');
  await client.subscription('plain').createSnapshot('snapshot');
  const [kept, plain] = await Promise.all(['kept', 'plain'].map((name) => subscriptionWindows(client, name)));
  assert.deepEqual([kept?.topicRetentionMs, kept?.hasSnapshots], [31 * 86_400_000, false]);
  assert.deepEqual([plain?.topicRetentionMs, plain?.hasSnapshots], [undefined, true]);
});

test('the windows are unknown where the server does not answer in the time given', async (t) => {
  const sockets = new Set<Socket>();
  const deaf = createServer((socket) => sockets.add(socket.on('error', () => {}))).listen(0, '127.0.0.1');
  await once(deaf, 'listening');
  const address = deaf.address();
  assert.ok(typeof address === 'object' && address !== null);
  const client = connect(t, `127.0.0.1:${address.port}`, () => {
    deaf.close();
    for (const socket of sockets) socket.destroy();
  });
  const turns = await turnsDuring(async () =>
    assert.equal(await subscriptionWindows(client, 's', { callTimeout: '300ms' }), undefined),
  );
  assert.ok(turns < 3_000);
});
