/**
 * Pull subscribers on a clock that is moved: Google's own client, with its own batching of acknowledgements, beside the
 * moves. What Google's Python and Go clients see of the same is in emulator/polyglot.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, test } from 'node:test';
import { type Message, PubSub } from '@google-cloud/pubsub';
import { seedFrom } from '../seed/seed.ts';
import { turnsDuring } from '../spent.ts';
import { until } from '../until.ts';
import { type Stack, startStack } from './stack.ts';

const [SECOND_MS, MINUTE_MS, DAY_MS] = [1_000, 60_000, 86_400_000];
const QUEUE = 'projects/demo-project/locations/us-central1/queues/later';

const seed = seedFrom({
  topics: {
    orders: {
      subscriptions: {
        billing: {
          expirationPeriod: 'never',
          retryPolicy: { minimumBackoff: '10s', maximumBackoff: '600s' },
          deadLetterPolicy: { deadLetterTopic: 'dead', maxDeliveryAttempts: 5 },
        },
      },
    },
    dead: { subscriptions: { 'dead-sub': { expirationPeriod: 'never' } } },
  },
  queues: { later: { rateLimits: { maxDispatchesPerSecond: 500 } } },
});

let stack: Stack;
let pubsub: PubSub;
let arrivals: Message[];
let close: (() => Promise<void>)[];

beforeEach(async () => {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  stack = await startStack({ seed });
  pubsub = new PubSub({ apiEndpoint: stack.addresses.pubsub, projectId: 'demo-project' });
  arrivals = [];
  close = [() => pubsub.close(), () => stack.close()];
});
afterEach(async () => {
  for (const end of close) await end();
});

/** Hands each arrival to `settle`. Resolves when the stream is open. */
async function subscribe(settle: (message: Message) => void): Promise<void> {
  const subscription = pubsub.subscription('billing');
  subscription.on('message', (message: Message) => {
    arrivals.push(message);
    settle(message);
  });
  close.unshift(() => subscription.close());
  // The stream takes messages as soon as one comes through it.
  await publish(1);
  await until(() => arrivals.length === 1 && outstanding() === 0);
  arrivals.length = 0;
}

async function publish(count: number): Promise<void> {
  const topic = pubsub.topic('orders');
  await Promise.all(
    Array.from({ length: count }, (_, n) => topic.publishMessage({ data: Buffer.from(String(n)) })),
  );
}

/** Tasks that publish a message each, at their times on the stack's clock: `ms` from now. */
async function publishLater(...delaysMs: readonly number[]): Promise<void> {
  const target = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    request.resume().once('end', () => {
      void publish(1).then(() => response.writeHead(204).end());
    });
  });
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
  close.unshift(async () => {
    target.closeAllConnections();
    await new Promise((resolve) => target.close(resolve));
  });
  const url = `http://127.0.0.1:${(target.address() as AddressInfo).port}/`;
  for (const delayMs of delaysMs) {
    const scheduleTime = new Date(stack.clock.now() + delayMs).toISOString();
    const response = await fetch(`${stack.addresses.control}/v2/${QUEUE}/tasks`, {
      method: 'POST',
      body: JSON.stringify({ task: { scheduleTime, httpRequest: { url } } }),
    });
    assert.equal(response.status, 200, await response.text());
  }
}

const counts = () => stack.state().pubsub as { outstanding: number; backlog: number };
const outstanding = (): number => counts().outstanding;

async function deadLetters(): Promise<number> {
  const url = `${stack.addresses.control}/v1/projects/demo-project/subscriptions/dead-sub:pull`;
  const body = JSON.stringify({ maxMessages: 1000, returnImmediately: true });
  const response = await fetch(url, { method: 'POST', body });
  return ((await response.json()) as { receivedMessages?: object[] }).receivedMessages?.length ?? 0;
}

/** Each once, each at its first attempt, nothing left, nothing dead-lettered. */
async function assertEachOnce(count: number): Promise<void> {
  await until(() => arrivals.length >= count && outstanding() === 0);
  assert.deepEqual([arrivals.length, new Set(arrivals.map(({ id }) => id)).size], [count, count]);
  assert.deepEqual([...new Set(arrivals.map(({ deliveryAttempt }) => deliveryAttempt))], [1]);
  assert.equal(await deadLetters(), 0);
}

test('what is acknowledged at once arrives once, published just before a move of 45 days', async () => {
  await subscribe((message) => message.ack());
  await publish(600);
  await stack.clock.advance(45 * DAY_MS);
  await assertEachOnce(600);
});

test('what is acknowledged at once arrives once, published by tasks during a move', async () => {
  await subscribe((message) => message.ack());
  await publishLater(...Array.from({ length: 20 }, (_, n) => DAY_MS + n * 7 * MINUTE_MS));
  await stack.clock.advance(45 * DAY_MS);
  await assertEachOnce(20);
});

test('what is acknowledged at once arrives once under many short moves', async () => {
  await subscribe((message) => message.ack());
  await publishLater(...Array.from({ length: 40 }, (_, n) => n * 15 * SECOND_MS));
  for (let move = 0; move < 60; move += 1) await stack.clock.advance(11 * SECOND_MS);
  await assertEachOnce(40);
});

test('a nack on its way counts as an attempt, and the message comes after its backoff, in the same move', async () => {
  let first = true;
  await subscribe((message) => {
    if (first || message.deliveryAttempt === 3) message.ack();
    else message.nack();
    first = false;
  });
  await publish(20);
  await stack.clock.advance(DAY_MS);
  await until(() => outstanding() === 0);
  const attempts = arrivals.map(({ deliveryAttempt }) => deliveryAttempt).toSorted((a, b) => a - b);
  assert.deepEqual(
    attempts,
    [1, 2, 3].flatMap((attempt) => Array.from({ length: 20 }, () => attempt)),
  );
  assert.equal(await deadLetters(), 0);
});

test('a subscriber slower than the stack waits gets the message again, and no attempt is counted', async () => {
  const held: Message[] = [];
  let first = true;
  await subscribe((message) => {
    if (first) message.ack();
    else held.push(message);
    first = false;
  });
  await publish(3);
  await until(() => held.length === 3);
  const turns = await turnsDuring(async () => {
    for (let move = 0; move < 7; move += 1) await stack.clock.advance((45 * DAY_MS) / 7);
  });
  assert.ok(turns < 60_000, `the moves waited for ${turns} turns`);
  // Once in each move, and not at each of its deadlines.
  assert.ok(arrivals.length <= 3 * 8, `${arrivals.length} arrivals`);
  assert.ok(arrivals.length > 3, 'no message was delivered again');
  assert.deepEqual([...new Set(arrivals.map(({ deliveryAttempt }) => deliveryAttempt))], [1]);
  for (const message of held) message.ack();
  await until(() => outstanding() === 0);
  assert.equal(await deadLetters(), 0);
});
