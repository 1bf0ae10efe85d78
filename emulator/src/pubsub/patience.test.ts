import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Clock } from '../clock.ts';
import { manualClock, type ManualClock } from '../manual-clock.ts';
import { movableClock, type MovableClock } from '../movable-clock.ts';
import { quiet } from '../quiet.ts';
import { subscriptionName, testServer, topicName, until, type TestServer } from './test-server.ts';
import type { ReceivedMessage } from './wire.ts';

const SUB = 'billing';
const MINUTE_MS = 60_000;

const message = (data: string) => ({ data: Buffer.from(data) });

type Fixture = TestServer & Readonly<{ clock: MovableClock; real: ManualClock; received: ReceivedMessage[] }>;

/** A stream of ten seconds on a subscription with a dead-letter policy; real time is moved by hand. */
async function fixture(t: TestContext, streams = true): Promise<Fixture> {
  const real = manualClock();
  const clock = movableClock(() => quiet(() => running.server.inFlight()), real);
  const running: TestServer = await testServer(t, clock as Clock);
  await running.create('dead', 'dead-sub');
  await running.create('orders', SUB, {
    ackDeadlineSeconds: 10,
    deadLetterPolicy: { deadLetterTopic: topicName('dead'), maxDeliveryAttempts: 5 },
  });
  const received: ReceivedMessage[] = [];
  if (streams) {
    const stream = running.stream();
    stream.on('data', (response: { receivedMessages: ReceivedMessage[] }) =>
      received.push(...response.receivedMessages),
    );
    stream.on('error', () => undefined);
    t.after(() => stream.cancel());
    stream.write({ subscription: subscriptionName(SUB), streamAckDeadlineSeconds: 10 });
  }
  return { ...running, clock, real, received };
}

const attempts = (received: readonly ReceivedMessage[]): readonly number[] =>
  received.map(({ deliveryAttempt }) => deliveryAttempt);

test('a move pauses while an answer is on its way, and goes on with it', async (t) => {
  const { clock, received, publish, ack, server } = await fixture(t);
  await publish('orders', message('a'));
  await until(() => received.length === 1);
  const start = clock.now();
  const move = clock.advance(45 * MINUTE_MS);
  await until(() => server.inFlight() === 1);
  assert.equal(clock.now() - start, 10_000);
  await ack(SUB, received[0]!);
  await move;
  assert.deepEqual(
    [received.length, server.stats().outstanding, clock.now() - start],
    [1, 0, 45 * MINUTE_MS],
  );
});

test('without an answer one move ends one lease, and counts no attempt', async (t) => {
  const { clock, real, received, publish, server } = await fixture(t);
  await publish('orders', message('a'));
  for (let moves = 1; moves <= 6; moves += 1) {
    await until(() => received.length === moves);
    const move = clock.advance(45 * MINUTE_MS);
    await until(() => server.inFlight() === 1);
    real.advance(2_000);
    await move;
  }
  await until(() => received.length === 7);
  assert.deepEqual(attempts(received), [1, 1, 1, 1, 1, 1, 1]);
  // The last lease was given in the last move, and has its whole time after it.
  real.advance(9_999);
  assert.deepEqual([server.inFlight(), server.stats().outstanding], [0, 1]);
  real.advance(1);
  await until(() => received.length === 8);
  // That was real time.
  real.advance(10_000);
  await until(() => received.length === 9);
  assert.deepEqual(attempts(received).slice(7), [2, 3]);
});

test('a client that answers nothing is waited for once in a move', async (t) => {
  const { clock, real, received, publish, server } = await fixture(t);
  await publish('orders', message('a'));
  await until(() => received.length === 1);
  const move = clock.advance(5_000);
  await move;
  await publish('orders', message('b'));
  await until(() => received.length === 2);
  const next = clock.advance(MINUTE_MS);
  await until(() => server.inFlight() === 1);
  real.advance(2_000);
  await next;
  await until(() => received.length === 4);
});

test('a client that goes on answering is waited for, but not for ever', async (t) => {
  const { clock, real, received, publish, ack, server } = await fixture(t);
  await publish('orders', ...Array.from({ length: 8 }, () => message('a')));
  await until(() => received.length === 8);
  const start = clock.now();
  const move = clock.advance(MINUTE_MS);
  await until(() => server.inFlight() === 8);
  for (let answered = 0; answered < 5; answered += 1) {
    real.advance(1_900);
    assert.deepEqual([server.inFlight(), clock.now() - start], [8 - answered, 10_000]);
    await ack(SUB, received[answered]!);
  }
  real.advance(500);
  await move;
  await until(() => received.length === 11);
  assert.deepEqual(
    attempts(received),
    Array.from({ length: 11 }, () => 1),
  );
});

test('a move that ends just before a deadline leaves the answer its time', async (t) => {
  const { clock, real, received, publish, ack, server } = await fixture(t);
  await publish('orders', message('a'), message('b'));
  await until(() => received.length === 2);
  await clock.advance(9_990);
  real.advance(50);
  assert.equal(server.inFlight(), 2);
  await ack(SUB, received[0]!);
  real.advance(2_000);
  await until(() => received.length === 3);
  assert.deepEqual(attempts(received), [1, 1, 1]);
});

test('a lease that had its time in real time ends at once, and counts', async (t) => {
  const { clock, real, received, publish } = await fixture(t);
  clock.freeze();
  await publish('orders', message('a'));
  await until(() => received.length === 1);
  real.advance(11_000);
  await clock.advance(10_000);
  await until(() => received.length === 2);
  assert.deepEqual(attempts(received), [1, 2]);
});

test('a move counts for a message that a unary pull had taken before it', async (t) => {
  const { clock, real, publish, pull, server } = await fixture(t, false);
  clock.freeze();
  await publish('orders', message('a'));
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    assert.deepEqual(attempts(await pull(SUB)), [attempt]);
    const move = clock.advance(10_000);
    await until(() => server.inFlight() === 1);
    real.advance(150);
    await move;
  }
  assert.deepEqual(await pull(SUB), []);
  assert.equal((await pull('dead-sub')).length, 1);
});

test('a pull waits in real time, also while the clock is frozen', async (t) => {
  const { clock, real, cancellable } = await fixture(t, false);
  clock.freeze();
  const timers = real.timers();
  const { answer } = cancellable('Pull', { subscription: subscriptionName(SUB), maxMessages: 1 });
  await until(() => real.timers() > timers);
  real.advance(1_000);
  assert.deepEqual((await answer).receivedMessages, []);
});
