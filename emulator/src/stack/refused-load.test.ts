import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Firestore } from '@google-cloud/firestore';
import { type Message, PubSub } from '@google-cloud/pubsub';
import { credentials } from '@grpc/grpc-js';
import { startStack } from './stack.ts';

test('a state that the last server refuses leaves leases, streams and transactions of the others as they are', async (t) => {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const stack = await startStack();
  const { pubsub: address, firestore, project: projectId } = stack.addresses;
  const pubsub = new PubSub({ apiEndpoint: address, projectId });
  const [host, port] = firestore.split(':');
  const sslCreds = credentials.createInsecure();
  const db = new Firestore({
    projectId,
    host: firestore,
    servicePath: host,
    port: Number(port),
    ssl: false,
    sslCreds,
  });
  const [topic] = await pubsub.createTopic('orders');
  const [subscription] = await topic.createSubscription('billing', { enableExactlyOnceDelivery: true });
  const errors: unknown[] = [];
  subscription.on('error', (error) => errors.push(error));
  t.after(async () => {
    await subscription.close();
    await pubsub.close();
    await db.terminate();
    await stack.close();
  });
  const arrived = new Promise<Message>((resolve) => void subscription.on('message', resolve));
  await topic.publishMessage({ data: Buffer.from('a') });
  const message = await arrived;

  let runs = 0;
  const refuse = async (): Promise<void> => {
    const saved = stack.save() as unknown as { tasks: object };
    const queues = [{ name: 'no name of a queue' }];
    await assert.rejects(
      stack.load({ ...saved, tasks: { ...saved.tasks, queues } }),
      /Queue name must be formatted/,
    );
  };
  await db.runTransaction(async (transaction) => {
    runs += 1;
    const read = await transaction.get(db.doc('orders/one'));
    if (runs === 1) await refuse();
    transaction.set(read.ref, { n: 1 });
  });
  assert.equal(runs, 1, 'the transaction had to be repeated');
  assert.equal(await message.ackWithResponse(), 'SUCCESS');
  assert.deepEqual(errors, []);
  assert.equal((await db.doc('orders/one').get()).get('n'), 1);
});
