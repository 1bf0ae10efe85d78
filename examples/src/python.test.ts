/**
 * The publisher in Python beside one in TypeScript, on the local stack: they share one counter. Google's Python clients
 * are looked for where `npm run test:polyglot` puts them, and in the `python3` of this machine; without them it is skipped.
 */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Firestore } from '@google-cloud/firestore';
import { type Message, PubSub } from '@google-cloud/pubsub';
import { outgoing } from 'pubsub-guarantees';
import { sequencer } from 'pubsub-guarantees/sequence';
import { startStack } from 'pubsub-guarantees-emulator';
import { firestoreCounters } from 'pubsub-guarantees/order/firestore';
import { pubsubPublisher } from 'pubsub-guarantees/publish/pubsub';

const SCRIPT = fileURLToPath(new URL('../python/publish_in_order.py', import.meta.url));
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/pubsub-guarantees', import.meta.url));
const IMPORTS = 'from google.cloud import firestore, pubsub_v1';

function python(): string | undefined {
  const cached = existsSync(CACHE) ? readdirSync(CACHE).filter((name) => name.startsWith('python-')) : [];
  const candidates = [...cached.map((name) => join(CACHE, name, 'bin/python')), 'python3'];
  return candidates.find(
    (one) => spawnSync(one, ['-c', IMPORTS], { stdio: 'ignore', timeout: 30_000 }).status === 0,
  );
}

test('publishers in Python and TypeScript share the numbers of a stream', async (t) => {
  const interpreter = python();
  if (interpreter === undefined) return t.skip('Google’s Python clients are not installed');
  process.env['METADATA_SERVER_DETECTION'] ??= 'none';
  const stack = await startStack();
  const { pubsub: pubsubAddress, firestore: firestoreAddress } = stack.addresses;
  const projectId = 'demo-project';
  const [host = '', port] = firestoreAddress.split(':');
  const firestore = new Firestore({ projectId, host, port: Number(port), ssl: false });
  const pubsub = new PubSub({ projectId, apiEndpoint: pubsubAddress });
  const publisher = pubsubPublisher(pubsub);
  t.after(async () => {
    await publisher.close();
    await pubsub.close();
    await firestore.terminate();
    await stack.close();
  });
  const key = `Łódź ${randomUUID()}`;
  const [topic] = await pubsub.createTopic('orders');
  const [subscription] = await topic.createSubscription('orders');
  const received: Message[] = [];
  const all = Promise.withResolvers<void>();
  subscription.on('message', (message: Message) => {
    message.ack();
    // On a busy machine one may come again before its acknowledgement arrives.
    if (received.some(({ id }) => id === message.id)) return;
    if (received.push(message) === 9) all.resolve();
  });
  t.after(() => subscription.close());

  const env = {
    ...process.env,
    PUBSUB_EMULATOR_HOST: pubsubAddress,
    FIRESTORE_EMULATOR_HOST: firestoreAddress,
    GOOGLE_CLOUD_PROJECT: projectId,
  };
  const run = (...texts: string[]) =>
    promisify(execFile)(interpreter, [SCRIPT, 'orders', key, ...texts], { env, timeout: 240_000 });
  const numbers = sequencer(firestoreCounters(firestore));
  const mine = ['a', 'b', 'c'].map((text) =>
    numbers.publish(publisher, key, outgoing('orders', { data: text })),
  );
  const [first, second] = await Promise.all([run('p1', 'p2', 'p3'), run('q1', 'q2', 'q3'), ...mine]);
  await all.promise;

  assert.match(first.stdout, /^published \d+: p1\npublished \d+: p2\npublished \d+: p3\n$/);
  assert.match(second.stdout, /published \d+: q3/);
  const taken = received.map(({ attributes }) => Number(attributes['sequence']));
  assert.deepEqual(
    taken.toSorted((left, right) => left - right),
    [1, 2, 3, 4, 5, 6, 7, 8, 9],
  );
  assert.deepEqual(new Set(received.map(({ attributes }) => attributes['sequenceKey'])), new Set([key]));
  assert.equal(new Set(received.map(({ attributes }) => attributes['sequenceEpoch'])).size, 1);
});
