import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deadLettering } from '../dead-letter/dead-lettering.ts';
import { dedup } from '../dedup/dedup.ts';
import { memoryClaims } from '../dedup/memory.ts';
import { contextFor } from '../context.ts';
import { ConfigError, inProgressElsewhere, TransientError } from '../errors.ts';
import { compose, type Context, type Handler, type Middleware } from '../handler.ts';
import { silent } from '../log.ts';
import type { Message, OutgoingMessage } from '../message.ts';
import { ack, type Outcome, retry } from '../outcome.ts';
import { settle } from '../receive/settle.ts';
import { memoryPublisher } from '../testing/memory-publisher.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { memoryTasks } from '../tasks/memory.ts';
import { republish } from './republish.ts';
import { type RetryLaterOptions, retryLater } from './retry-later.ts';
import { refusal } from '../testing/refusal.ts';

const TOPIC = 'projects/p/topics/in';
const MINUTE = 60_000;
const busy = new TransientError('BUSY', 'busy');

type Run = Readonly<{ atMs: number; id: string; attributes: Record<string, string> }>;

/** A topic, its subscription and a handler; the queue's tasks come back through the republisher to the topic. */
function world(
  answers: readonly Outcome[],
  options: Partial<RetryLaterOptions> & { around?: Middleware } = {},
) {
  const { around, ...rest } = options;
  const clock = virtualClock();
  const queue = memoryTasks({ clock });
  const dead = memoryPublisher();
  const runs: Run[] = [];
  const warnings: string[] = [];
  let nacks = 0;
  let ids = 0;
  const handle: Handler = async (message) => {
    runs.push({ atMs: clock.monotonic(), id: message.id, attributes: { ...message.attributes } });
    return answers[runs.length - 1] ?? ack();
  };
  const claims = memoryClaims({ clock });
  const handler = compose(handle, [
    deadLettering(dead, 'dead'),
    retryLater(queue, { clock, topic: TOPIC, ...rest }),
    around ?? dedup(claims, { clock }),
  ]);
  const deliver = async (message: Message): Promise<Outcome> => {
    const context: Context = contextFor(clock, {
      consumer: 'c',
      source: 's',
      log: { ...silent, warn: (text, fields) => void warnings.push(`${text} ${String(fields?.['code'])}`) },
    });
    const outcome = await handler(message, context);
    if (settle(outcome) === 'nack') nacks += 1;
    return outcome;
  };
  const receive = ({ data, attributes, orderingKey }: Omit<OutgoingMessage, 'topic'>): Message => ({
    id: String((ids += 1)),
    data: Buffer.from(data),
    attributes,
    publishTime: new Date(clock.now()),
    ...(orderingKey !== undefined && { orderingKey }),
  });
  const publisher = {
    async publish(message: OutgoingMessage) {
      assert.equal(message.topic, TOPIC);
      const received = receive(message);
      clock.after(0, () => void deliver(received));
      return received.id;
    },
  };
  const run = republish(
    { publisher, queue, deadLetters: deadLettering(dead, 'dead') },
    { allowedTopics: [TOPIC], clock, log: silent },
  );
  queue.dispatchTo(({ body, scheduleTimeMs }, retryCount) =>
    run({ body, etaMs: scheduleTimeMs, retryCount }),
  );
  const message = (attributes: Record<string, string> = {}, orderingKey?: string): Message =>
    receive({ data: Buffer.from('x'), attributes, ...(orderingKey !== undefined && { orderingKey }) });
  return { clock, queue, dead, runs, warnings, nacks: () => nacks, deliver, message };
}

test('a pause of ten minutes is kept to, three times, without one nack, and then the message is done', async () => {
  const w = world([retry(busy, '10m'), retry(busy, '10m'), retry(busy, '10m')]);
  assert.deepEqual(await w.deliver(w.message({ tenant: 'a' })), ack('scheduled'));
  await w.clock.runToIdle();
  assert.deepEqual(
    w.runs.map(({ atMs }) => atMs),
    [0, 10 * MINUTE, 20 * MINUTE, 30 * MINUTE],
  );
  assert.deepEqual(
    w.runs.map(({ attributes }) => attributes['retryAttempt']),
    [undefined, '1', '2', '3'],
  );
  assert.deepEqual(w.runs[3]?.attributes, {
    tenant: 'a',
    dedupId: 's/1',
    originPublishTime: '2030-01-01T00:00:00.000Z',
    retryAttempt: '3',
  });
  assert.deepEqual([w.nacks(), w.queue.pending(), w.dead.published.length], [0, 0, 0]);
  assert.equal(new Set(w.queue.created.map(({ name }) => name)).size, 3);
});

test('without a pause, with one of no length, and for any other outcome nothing changes', async () => {
  for (const outcome of [retry(busy), retry(busy, '0s'), ack(), ack('stale')] as const) {
    const w = world([outcome]);
    assert.deepEqual(await w.deliver(w.message()), outcome);
    assert.equal(w.queue.calls(), 0);
  }
});

test('an error that says when to come back is a pause as well', async () => {
  const w = world([retry(new TransientError('BUSY', 'busy', { retryAfterMs: 90_000 }))]);
  assert.deepEqual(await w.deliver(w.message()), ack('scheduled'));
  await w.clock.runToIdle();
  assert.deepEqual(
    w.runs.map(({ atMs }) => atMs),
    [0, 90_000],
  );
});

test('a queue that is down means a plain retry, and the claim is free for it', async () => {
  const w = world([retry(busy, '10m')]);
  w.queue.failOn(1, 'refused');
  const message = w.message();
  assert.deepEqual(await w.deliver(message), retry(busy, '10m'));
  assert.equal(w.nacks(), 1);
  assert.deepEqual(w.warnings, ['not rescheduled: it is delivered again as usual TASK_QUEUE_UNAVAILABLE']);
  assert.deepEqual(await w.deliver(message), ack());
});

test('the reply is lost: the redelivery asks for a pause too, and meets the one task, although the due time is later', async () => {
  const w = world([retry(busy, '10m'), retry(busy, '10m')]);
  w.queue.failOn(1, 'reply lost');
  const message = w.message();
  assert.equal((await w.deliver(message)).kind, 'retry');
  await w.clock.advance(5_000);
  assert.deepEqual(await w.deliver(message), ack('scheduled'));
  assert.equal(w.queue.created.length, 1);
  await w.clock.runToIdle();
  assert.deepEqual(
    w.runs.map(({ atMs }) => atMs),
    [0, 5_000, 10 * MINUTE],
  );
});

test('a crash after the task was stored: the redelivery succeeds, and what comes back is a duplicate', async () => {
  const w = world([retry(busy, '10m')]);
  const message = w.message();
  // The acknowledgement never arrives.
  await w.deliver(message);
  assert.deepEqual(await w.deliver(message), ack());
  await w.clock.runToIdle();
  assert.equal(w.runs.length, 2);
  assert.equal(w.queue.pending(), 0);
});

test('a crash before the task was stored leaves no claim behind, and no message is lost', async () => {
  const w = world([retry(busy, '10m')]);
  const message = w.message();
  w.queue.failOn(1, 'refused');
  await w.deliver(message);
  assert.equal(w.queue.created.length, 0);
  assert.deepEqual(await w.deliver(message), ack());
  assert.equal(w.runs.length, 2);
});

test('a dead letter that is sent again meets no name from before, though its dedupId is the same', async () => {
  const w = world([retry(busy, '10m'), ack(), retry(busy, '10m')]);
  await w.deliver(w.message({ dedupId: 'mine' }));
  await w.deliver(w.message({ dedupId: 'other' }));
  const again = w.message({ dedupId: 'mine' });
  assert.deepEqual(await w.deliver(again), ack('scheduled'));
  assert.equal(w.queue.created.length, 2);
});

test('what failed as often as is allowed is a dead letter that says why', async () => {
  const w = world([retry(busy, '1s'), retry(busy, '1s'), retry(busy, '1s')], { maxAttempts: 3 });
  await w.deliver(w.message());
  await w.clock.runToIdle();
  assert.equal(w.runs.length, 3);
  const { deadLetterReason, deadLetterError } = w.dead.published[0]?.attributes ?? {};
  assert.deepEqual(
    [deadLetterReason, deadLetterError],
    ['RETRIES_EXHAUSTED', 'failed 3 times, the last time with: busy'],
  );
});

test('of one attempt there is no second, and a failure that is not the message’s ends none of them', async () => {
  const w = world([retry(busy, '1s')], { maxAttempts: 1 });
  await w.deliver(w.message());
  assert.equal(
    w.dead.published[0]?.attributes['deadLetterError'],
    'failed 1 times, the last time with: busy',
  );
  const elsewhere = world([retry(inProgressElsewhere('busy'), '1s')], { maxAttempts: 1 });
  assert.deepEqual(await elsewhere.deliver(elsewhere.message({ retryAttempt: '7' })), ack('scheduled'));
});

test('the attempt is part of the name: a message that comes back under an ID of before meets no task of before', async () => {
  const w = world([retry(busy, '10m'), retry(busy, '10m'), retry(busy, '10m')]);
  const message = w.message({ dedupId: 'd' });
  const back = { ...message, attributes: { ...message.attributes, retryAttempt: '1' } };
  for (const each of [message, back, back]) assert.deepEqual(await w.deliver(each), ack('scheduled'));
  assert.equal(w.queue.created.length, 2);
});

test('a count that is not ours counts as none, and is replaced', async () => {
  const w = world([retry(busy, '1s')], { maxAttempts: 2 });
  for (const text of ['soon', '-1', '01', '1e9', '']) {
    const again = world([retry(busy, '1s')], { maxAttempts: 2 });
    assert.deepEqual(await again.deliver(w.message({ retryAttempt: text })), ack('scheduled'), text);
    await again.clock.runToIdle();
    assert.equal(again.runs[1]?.attributes['retryAttempt'], '1');
  }
});

test('the delay that was applied does not come back, the ordering key does', async () => {
  const w = world([retry(busy, '1s')]);
  await w.deliver(w.message({ delay: '5', deliveredAfter: 'then' }, 'k1'));
  await w.clock.runToIdle();
  assert.equal(w.runs[1]?.attributes['delay'], undefined);
  assert.equal(w.runs[1]?.attributes['deliveredAfter'], 'then');
});

test('a member of a stream keeps its place: it is never rescheduled', async () => {
  const w = world([retry(busy, '10m')], { around: (next) => next });
  const message = w.message({ sequence: '1', sequenceKey: 's' });
  assert.deepEqual(await w.deliver(message), retry(busy, '10m'));
  assert.equal(w.queue.calls(), 0);
});

test('a message that another delivery is at work on is rescheduled where that is configured, and costs no attempt', async () => {
  let calls = 0;
  const around: Middleware = (next) => async (message, context) => {
    calls += 1;
    return calls <= 3 ? retry(inProgressElsewhere('busy elsewhere')) : next(message, context);
  };
  const w = world([], { around, inProgress: '30s', maxAttempts: 1 });
  assert.deepEqual(await w.deliver(w.message()), ack('scheduled'));
  await w.clock.runToIdle();
  assert.deepEqual([calls, w.runs.length, w.runs[0]?.atMs, w.nacks()], [4, 1, 90_000, 0]);
  assert.equal(w.runs[0]?.attributes['retryAttempt'], undefined);
  const plain = world([retry(inProgressElsewhere('busy'))]);
  assert.equal((await plain.deliver(plain.message())).kind, 'retry');
});

for (const code of ['TRANSACTION_CONTENTION', 'SAGA_STEP_BUSY']) {
  test(`a message that others were in the way of (${code}) is rescheduled where that is configured, and costs no attempt`, async () => {
    const contended = retry(new TransientError(code, 'others were in the way each time'));
    const w = world([contended, contended], { contention: '5s', inProgress: '30s', maxAttempts: 1 });
    assert.deepEqual(await w.deliver(w.message()), ack('scheduled'));
    await w.clock.runToIdle();
    assert.deepEqual(
      w.runs.map(({ atMs }) => atMs),
      [0, 5_000, 10_000],
    );
    assert.deepEqual([w.nacks(), w.dead.published.length], [0, 0]);
    const plain = world([contended], { inProgress: '30s' });
    assert.deepEqual(await plain.deliver(plain.message()), contended);
    assert.equal(plain.queue.calls(), 0);
  });
}

test('inside a claim it refuses, instead of having the message counted as done', async () => {
  const clock = virtualClock();
  const queue = memoryTasks({ clock });
  const inner = retryLater(queue, { clock, topic: TOPIC });
  const handler = compose(async () => retry(busy, '10m'), [dedup(memoryClaims({ clock }), { clock }), inner]);
  const w = world([], { around: (next) => next });
  const context = {
    consumer: 'c',
    source: 's',
    deadline: 60_000,
    signal: new AbortController().signal,
    log: silent,
  };
  const outcome = await handler(w.message(), { ...context, now: () => clock.now() });
  assert.equal(outcome.kind === 'retry' && outcome.error instanceof ConfigError, true);
  assert.equal(queue.calls(), 0);
});

test('a message without room for its name and count, or too large for a task, is delivered again as usual', async () => {
  const full = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`k${n}`, 'v']));
  const w = world([retry(busy, '10m'), retry(busy, '10m')]);
  assert.equal((await w.deliver(w.message(full))).kind, 'retry');
  const large = { ...w.message(), data: Buffer.alloc(200_000) };
  assert.equal((await w.deliver(large)).kind, 'retry');
  assert.deepEqual(
    w.warnings.map((text) => text.split(' ').at(-1)),
    ['LIMIT_EXCEEDED', 'TASK_TOO_LARGE'],
  );
  assert.equal(w.dead.published.length, 0);
});

test('a message at its limit of size goes on without its name written, so that no later stage finds it too large', async () => {
  const w = world([], { around: (next) => next });
  const message = { ...w.message({ a: 'b' }), data: Buffer.alloc(10_000_000 - 11) };
  assert.deepEqual(await w.deliver(message), ack());
  assert.deepEqual(w.runs[0]?.attributes, { a: 'b' });
});

test('a pause beyond ten years, or that is none, is a retry that says so', async () => {
  for (const after of ['3651d', 'soon'] as const) {
    const w = world([retry(busy, after as '1s')]);
    const outcome = await w.deliver(w.message());
    assert.equal(outcome.kind === 'retry' && outcome.error instanceof ConfigError, true);
  }
});

test('B22: a pause of 40 days goes in hops, and is not early', async () => {
  const w = world([retry(busy, '40d')]);
  await w.deliver(w.message());
  await w.clock.advance(40 * 86_400_000 - 1);
  assert.equal(w.runs.length, 1);
  await w.clock.advance(1);
  assert.equal(w.runs.length, 2);
});

test('options that are not valid are refused at the start', () => {
  const clock = virtualClock();
  const make = (change: object) => () =>
    retryLater(memoryTasks({ clock }), { clock, topic: TOPIC, ...change });
  for (const change of [
    { topic: 'in' },
    { maxAttempts: 0 },
    { maxTaskBytes: 0 },
    { inProgress: 'x' },
    { inProgress: '3651d' },
    { contention: 'x' },
    { contention: '3651d' },
  ]) {
    assert.throws(make(change), refusal(Object.keys(change)[0] ?? ''));
  }
});
