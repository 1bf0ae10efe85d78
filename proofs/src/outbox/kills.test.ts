/**
 * Publishers with an outbox that are killed at random, on the local stack: what is committed arrives, in order.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Firestore } from '@google-cloud/firestore';
import { type Message, PubSub } from '@google-cloud/pubsub';
import { startFirestore, startPubsub, systemClock, until } from 'pubsub-guarantees-emulator';
import { silent } from '../../../shared/src/log.ts';
import { pubsubPublisher } from '../../../shared/src/publish/pubsub.ts';
import { firestoreOutbox } from '../../../shared/src/outbox/firestore.ts';
import { pendingOf } from './pending-of.ts';
import { relay } from '../../../shared/src/outbox/relay.ts';
import type { PublishingTask } from './pubsub-worker.ts';

process.env['METADATA_SERVER_DETECTION'] ??= 'none';

/** A few by default, since each costs the start of a process; `TEST_KILLS` takes more. */
const KILLS = Number(process.env['TEST_KILLS'] ?? 2);
const KEYS = 8;
const WORKERS = 2;

test(`publishers killed ${KILLS} times lose nothing, and their streams have no gap`, async (t) => {
  const clock = systemClock();
  const compiled = await mkdtemp(join(tmpdir(), 'outbox-kills-'));
  const [firestoreServer, pubsubServer] = await Promise.all([
    startFirestore({ clock }),
    startPubsub({ clock }),
  ]);
  const [host = '', port] = firestoreServer.address.split(':');
  const firestore = new Firestore({ projectId: 'demo-project', host, port: Number(port), ssl: false });
  const pubsub = new PubSub({ projectId: 'demo-project', apiEndpoint: pubsubServer.address });
  const publisher = pubsubPublisher(pubsub);
  const children = new Set<ChildProcess>();
  t.after(async () => {
    await Promise.all([...children].map(end));
    await publisher.close();
    await pubsub.close();
    await firestore.terminate();
    await Promise.all([firestoreServer.close(), pubsubServer.close()]);
    await rm(compiled, { recursive: true, force: true });
  });
  const [topic] = await pubsub.createTopic('orders');
  const [subscription] = await topic.createSubscription('orders', { enableMessageOrdering: true });

  let made = 0;
  const start = async (): Promise<ChildProcess> => {
    const name = `worker-${(made += 1)}`;
    const addresses = { firestore: firestoreServer.address, pubsub: pubsubServer.address };
    const task: PublishingTask = { name, ...addresses, keys: KEYS };
    const child = fork(new URL('./pubsub-worker.ts', import.meta.url), [JSON.stringify(task)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { NODE_COMPILE_CACHE: compiled, ...process.env },
    });
    children.add(child);
    await once(child, 'message');
    return child;
  };
  const workers = Array.from({ length: WORKERS }, start);
  for (let kill = 0; kill < KILLS; kill += 1) {
    const victim = await workers.shift();
    await pause(200 + Math.random() * 1_000);
    // Its successor is already starting, so that a process is always at work.
    if (kill < KILLS - 1) workers.push(start());
    await end(victim);
  }
  await Promise.all(workers);
  await Promise.all([...children].map(end));

  const store = firestoreOutbox(firestore);
  const { signal } = new AbortController();
  const left = await pendingOf(store);
  const relayed = relay(store, publisher, { log: silent });
  await until(async () => {
    await relayed.sweep({ signal });
    return (await pendingOf(store)).length === 0;
  }, 'nothing is left in the outbox');
  const orders = await firestore.collection('orders').get();
  const received: Message[] = [];
  const missing = new Set(orders.docs.map(({ id }) => id));
  subscription.on('message', (message: Message) => {
    message.ack();
    received.push(message);
    missing.delete(message.data.toString());
  });
  await until(
    () => missing.size === 0,
    () => `every order has its message, also ${[...missing].join(', ')}`,
  );
  await subscription.close();

  const firsts = new Map<string, number[]>();
  const seen = new Map<string, string>();
  for (const { data, attributes } of received) {
    const [text, dedupId = ''] = [data.toString(), attributes['dedupId']];
    assert.equal(seen.get(dedupId) ?? text, text);
    if (seen.has(dedupId)) continue;
    seen.set(dedupId, text);
    const key = attributes['sequenceKey'] ?? '';
    firsts.set(key, [...(firsts.get(key) ?? []), Number(attributes['sequence'])]);
  }
  const repeats = received.length - seen.size;
  t.diagnostic(
    `${KILLS} kills, ${orders.size} orders, ${left.length} left behind at the end, ${repeats} repeats`,
  );
  assert.equal(new Set(seen.values()).size, orders.size, 'and no message is without its order');
  for (const [key, numbers] of firsts) {
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index + 1),
      `${key} is in order and has no gap`,
    );
  }
});

async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}
