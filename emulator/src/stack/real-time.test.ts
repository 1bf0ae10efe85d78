/**
 * What takes days, minutes or a rate by the clock of the stack happens at its time and is not waited for. The suite
 * runs each case once; `npm run bench -- real-time` sets TEST_REAL_TIME and demands that each takes under 300 ms of real
 * time. Measured is the case itself, with what it creates; servers, programs and clients are ready and warm.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, type TestContext, test } from 'node:test';
import { v1 } from '@google-cloud/pubsub';
import { CloudTasksClient } from '@google-cloud/tasks';
import { credentials } from '@grpc/grpc-js';
import { type Stack, startStack } from './stack.ts';
import { startToolkit, type Toolkit } from './toolkit.ts';

const IS_MEASURED = process.env['TEST_REAL_TIME'] === '1';
const LIMIT_MS = 300;
/** Measured runs, the best of which counts: a machine that is busy with other things spoils some of them. */
const RUNS = 5;
/** Where all of these were spoiled it goes on: the limit is for the case, and not for its neighbours. */
const MOST_RUNS = 20;
/** Before that, so that what is measured is not how the runtime compiles. */
const WARM_UP_RUNS = 10;
const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;

// Otherwise the clients first look for a metadata server.
process.env['METADATA_SERVER_DETECTION'] = 'none';

let stack: Stack;
let toolkit: Toolkit;
let target: Server;
let targetUrl: string;
/** Paths that the target was asked for, and when by the clock. */
let asked: { path: string; atMs: number }[] = [];

type Clients = Readonly<{
  publisher: v1.PublisherClient;
  subscriber: v1.SubscriberClient;
  tasks: CloudTasksClient;
}>;
let own: Clients;
let ofToolkit: Clients;
const closers: (() => Promise<unknown>)[] = [];

function clientsOf({ addresses }: Stack | Toolkit): Clients {
  const at = (address: string) => ({
    projectId: addresses.project,
    apiEndpoint: '127.0.0.1',
    port: Number(address.split(':')[1]),
    sslCreds: credentials.createInsecure(),
  });
  const clients = {
    publisher: new v1.PublisherClient(at(addresses.pubsub)),
    subscriber: new v1.SubscriberClient(at(addresses.pubsub)),
    tasks: new CloudTasksClient(at(addresses.tasks)),
  };
  closers.push(...Object.values(clients).map((client) => () => client.close()));
  return clients;
}

before(async () => {
  target = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const path = request.url ?? '';
    asked.push({ path, atMs: stack.clock.now() });
    request.resume().once('end', () => response.writeHead(path.startsWith('/fails') ? 500 : 204).end());
  });
  target.listen(0, '127.0.0.1');
  await once(target, 'listening');
  targetUrl = `http://127.0.0.1:${(target.address() as AddressInfo).port}`;
  [stack, toolkit] = await Promise.all([startStack(), startToolkit()]);
  stack.clock.freeze();
  toolkit.clock.freeze();
  [own, ofToolkit] = [clientsOf(stack), clientsOf(toolkit)];
});

after(async () => {
  for (const close of closers) await close();
  await stack?.close();
  await toolkit?.close();
  target?.close();
  target?.closeAllConnections();
});

/** Each run gets a number of its own, for names. */
async function underLimit(t: TestContext, run: (n: number) => Promise<void>): Promise<void> {
  if (!IS_MEASURED) return run(0);
  for (let n = 0; n < WARM_UP_RUNS; n += 1) await run(n);
  const took: number[] = [];
  for (let n = WARM_UP_RUNS; n < WARM_UP_RUNS + MOST_RUNS; n += 1) {
    asked = [];
    const started = performance.now();
    await run(n);
    took.push(performance.now() - started);
    if (took.length >= RUNS && Math.min(...took) < LIMIT_MS) break;
  }
  const figures = took.map((milliseconds) => milliseconds.toFixed(0)).join(', ');
  t.diagnostic(`best of ${took.length}: ${Math.min(...took).toFixed(0)} ms of real time (${figures})`);
  assert.ok(Math.min(...took) < LIMIT_MS, `${figures} ms: none is under ${LIMIT_MS}`);
}

const nameOf = (kind: string, id: string): string => `projects/${stack.addresses.project}/${kind}/${id}`;

async function pull({ subscriber }: Clients, subscription: string) {
  const [{ receivedMessages }] = await subscriber.pull({
    subscription,
    maxMessages: 10,
    returnImmediately: true,
  });
  return receivedMessages ?? [];
}

test('a delay of 45 days through a function and the republisher', async (t) => {
  const { project } = toolkit.addresses;
  const subscription = `projects/${project}/subscriptions/delay-out-sub`;
  await underLimit(t, async (n) => {
    const messages = [{ data: Buffer.from(String(n)), attributes: { delay: String(45 * 86_400) } }];
    await ofToolkit.publisher.publish({ topic: `projects/${project}/topics/delay-in`, messages });
    await toolkit.clock.advance(45 * DAY_MS - SECOND_MS);
    assert.deepEqual(await pull(ofToolkit, subscription), [], 'it was early');
    await toolkit.clock.advance(SECOND_MS);
    const [arrived, ...more] = await pull(ofToolkit, subscription);
    assert.equal(arrived?.message?.data?.toString(), String(n));
    assert.deepEqual(more, []);
    await ofToolkit.subscriber.acknowledge({ subscription, ackIds: [arrived?.ackId ?? ''] });
  });
});

test('an ack deadline of ten minutes', async (t) => {
  await underLimit(t, async (n) => {
    const [topic, subscription] = [
      nameOf('topics', `deadline-${n}`),
      nameOf('subscriptions', `deadline-${n}`),
    ];
    await own.publisher.createTopic({ name: topic });
    await own.subscriber.createSubscription({ name: subscription, topic, ackDeadlineSeconds: 600 });
    await own.publisher.publish({ topic, messages: [{ data: Buffer.from('a') }] });
    assert.equal((await pull(own, subscription)).length, 1);
    await stack.clock.advance(600 * SECOND_MS - 1);
    assert.equal((await pull(own, subscription)).length, 0, 'it was delivered again before the deadline');
    await stack.clock.advance(SECOND_MS);
    const [again] = await pull(own, subscription);
    assert.equal(again?.message?.data?.toString(), 'a', 'it did not come again');
    await own.subscriber.acknowledge({ subscription, ackIds: [again?.ackId ?? ''] });
  });
});

test('five dead-letter attempts with backoff, by push', async (t) => {
  await underLimit(t, async (n) => {
    const [topic, subscription] = [nameOf('topics', `failing-${n}`), nameOf('subscriptions', `failing-${n}`)];
    const [dead, deadLetters] = [nameOf('topics', `dead-${n}`), nameOf('subscriptions', `dead-${n}`)];
    await Promise.all([topic, dead].map((name) => own.publisher.createTopic({ name })));
    await own.subscriber.createSubscription({ name: deadLetters, topic: dead });
    await own.subscriber.createSubscription({
      name: subscription,
      topic,
      pushConfig: { pushEndpoint: `${targetUrl}/fails-${n}` },
      deadLetterPolicy: { deadLetterTopic: dead, maxDeliveryAttempts: 5 },
      retryPolicy: { minimumBackoff: { seconds: 10 }, maximumBackoff: { seconds: 600 } },
    });
    const from = stack.clock.now();
    await own.publisher.publish({ topic, messages: [{ data: Buffer.from('a') }] });
    await stack.clock.advance(3_600 * SECOND_MS);
    const [parked] = await pull(own, deadLetters);
    assert.equal(parked?.message?.attributes?.['CloudPubSubDeadLetterSourceDeliveryCount'], '5');
    const at = asked.filter(({ path }) => path === `/fails-${n}`).map(({ atMs }) => atMs - from);
    assert.equal(at.length, 5);
    at.slice(1).forEach((atMs, index) => {
      assert.ok(atMs - (at[index] ?? 0) >= 10 * SECOND_MS, `attempts at ${at.join(', ')} ms`);
    });
  });
});

test('a queue of 100 tasks with a rate of 1 per second', async (t) => {
  const parent = nameOf('locations', 'us-central1');
  await underLimit(t, async (n) => {
    const name = `${parent}/queues/slow-${n}`;
    const [queue] = await own.tasks.createQueue({
      parent,
      queue: { name, rateLimits: { maxDispatchesPerSecond: 1 } },
    });
    const from = stack.clock.now();
    const task = { httpRequest: { url: `${targetUrl}/slow-${n}` } };
    await Promise.all(Array.from({ length: 100 }, () => own.tasks.createTask({ parent: name, task })));
    await stack.clock.advance(120 * SECOND_MS);
    const at = asked.filter(({ path }) => path === `/slow-${n}`).map(({ atMs }) => atMs - from);
    // A burst, which the service picks, and then one each second.
    const burst = queue.rateLimits?.maxBurstSize ?? 0;
    const each = Array.from({ length: 100 }, (_, index) => Math.max(index - burst + 1, 0) * SECOND_MS);
    assert.deepEqual(at, each);
  });
});
