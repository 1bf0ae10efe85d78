import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { manualClock } from '../manual-clock.ts';
import { movableClock } from '../movable-clock.ts';
import { subscriptionName, testServer, texts, until, type Stream, type TestServer } from './test-server.ts';
import type { ReceivedMessage } from './wire.ts';

const SUB = 'billing';
const message = (data: string) => ({ data: Buffer.from(data) });

function open(
  t: TestContext,
  running: TestServer,
  id = SUB,
): Readonly<{ stream: Stream; received: ReceivedMessage[] }> {
  const received: ReceivedMessage[] = [];
  const stream = running.stream();
  stream.on('data', ({ receivedMessages }: { receivedMessages: ReceivedMessage[] }) =>
    received.push(...receivedMessages),
  );
  stream.on('error', () => undefined);
  t.after(() => stream.cancel());
  stream.write({ subscription: subscriptionName(id), streamAckDeadlineSeconds: 60 });
  return { stream, received };
}

test('what a subscriber nacks while it closes comes to the next one, and not to the stream that it leaves', async (t) => {
  const running = await testServer(t);
  for (let round = 0; round < 20; round += 1) {
    const id = `billing-${round}`;
    await running.create(`orders-${round}`, id);
    const first = open(t, running, id);
    await running.publish(`orders-${round}`, message('a'));
    await until(() => first.received.length === 1);
    first.stream.write({ modifyDeadlineAckIds: [first.received[0]!.ackId], modifyDeadlineSeconds: [0] });
    // As a client closes: the nack has been written, and the stream is left some milliseconds later.
    await new Promise((resolve) => setTimeout(resolve, 10));
    first.stream.cancel();
    const next = open(t, running, id);
    await until(() => next.received.length === 1);
  }
});

async function nack({ call }: TestServer, { ackId }: ReceivedMessage): Promise<void> {
  await call('ModifyAckDeadline', {
    subscription: subscriptionName(SUB),
    ackIds: [ackId],
    ackDeadlineSeconds: 0,
  });
}

test('a nack takes effect after 50 ms of real time, also while the clock is frozen', async (t) => {
  const real = manualClock();
  const clock = movableClock(async () => {}, real);
  const running = await testServer(t, clock);
  await running.create('orders', SUB);
  await running.publish('orders', message('a'));
  for (const frozen of [false, true]) {
    if (frozen) clock.freeze();
    const [received] = await running.pull(SUB);
    await nack(running, received!);
    assert.deepEqual(running.server.stats().backlog, 1);
    real.advance(49);
    assert.deepEqual(await running.pull(SUB), []);
    real.advance(1);
    const [again] = await running.pull(SUB);
    assert.equal(texts([again!]), 'a');
    await nack(running, again!);
    real.advance(50);
    assert.equal(running.server.inFlight(), 0);
  }
});

test('a move of the clock waits for what was nacked', async (t) => {
  const real = manualClock();
  const running = await testServer(
    t,
    movableClock(async () => {}, real),
  );
  await running.create('orders', SUB);
  await running.publish('orders', message('a'));
  const [received] = await running.pull(SUB);
  await nack(running, received!);
  assert.equal(running.server.inFlight(), 1);
  real.advance(50);
  assert.equal(running.server.inFlight(), 0);
});

test('a retry policy with a longer backoff has the last word', async (t) => {
  const clock = manualClock();
  const running = await testServer(t, clock);
  await running.create('orders', SUB, { retryPolicy: { minimumBackoff: { seconds: '10' } } });
  await running.publish('orders', message('a'));
  const [received] = await running.pull(SUB);
  await nack(running, received!);
  clock.advance(9_999);
  assert.deepEqual(await running.pull(SUB), []);
  clock.advance(1);
  assert.equal((await running.pull(SUB)).length, 1);
});
