import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PermanentError } from '../errors.ts';
import { compose, type Context, type Handler } from '../handler.ts';
import { silent } from '../log.ts';
import type { Message } from '../message.ts';
import { ack, type Outcome } from '../outcome.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { delay } from './delay.ts';
import { MAX_TASK_BYTES } from '../tasks/task-options.ts';
import { type MemoryTasks, memoryTasks } from '../tasks/memory.ts';
import { decodeDelayed } from '../tasks/task-body.ts';
import { refusal } from '../testing/refusal.ts';

const TOPIC = 'projects/p/topics/out';
const SOURCE = 'projects/p/subscriptions/in';

function stage(options: { maxTaskBytes?: number; skewMs?: number } = {}) {
  const { skewMs = 0, ...rest } = options;
  const clock = virtualClock();
  const queue = memoryTasks({ clock });
  const passed: Message[] = [];
  const warnings: string[] = [];
  const next: Handler = async (message) => {
    passed.push(message);
    return ack();
  };
  const ownClock = { ...clock, now: () => clock.now() + skewMs };
  const handler = compose(next, [delay(queue, { clock: ownClock, topic: TOPIC, ...rest })]);
  const context: Context = {
    consumer: 'delay',
    source: SOURCE,
    now: () => ownClock.now(),
    deadline: 60_000,
    signal: new AbortController().signal,
    log: { ...silent, warn: (text) => void warnings.push(text) },
  };
  const message = (attributes: Record<string, string>, change: Partial<Message> = {}): Message => ({
    id: '7',
    data: Buffer.from('hello'),
    attributes,
    publishTime: new Date(clock.now()),
    ...change,
  });
  return { clock, queue, passed, warnings, message, deliver: (m: Message) => handler(m, context) };
}

const carried = (queue: MemoryTasks, index = 0) => decodeDelayed(queue.created[index]!.body);
const codeOf = (outcome: Outcome): unknown =>
  outcome.kind === 'ack' ? outcome.reason : (outcome.error as { code?: unknown }).code;

test('a message without a delay goes on at once, with its identity written', async () => {
  const { deliver, message, passed, queue } = stage();
  assert.deepEqual(await deliver(message({ tenant: 'a' })), ack());
  assert.deepEqual(await deliver(message({ delay: '0', dedupId: 'mine' })), ack());
  assert.deepEqual(
    passed.map(({ attributes }) => attributes),
    [{ tenant: 'a', dedupId: `${SOURCE}/7` }, { dedupId: 'mine' }],
  );
  assert.equal(queue.calls(), 0);
});

test('a delay makes one task that carries the message, and the message is acknowledged as scheduled', async () => {
  const { clock, deliver, message, passed, queue } = stage();
  const outcome = await deliver(message({ delay: '60', tenant: 'a' }, { orderingKey: 'k1' }));
  assert.deepEqual(outcome, ack('scheduled'));
  assert.equal(passed.length, 0);
  const { topic, dueTimeMs, scheduleTimeMs, hop, attempt, message: kept } = carried(queue);
  assert.deepEqual({ topic, hop, attempt }, { topic: TOPIC, hop: 0, attempt: 0 });
  assert.equal(dueTimeMs, clock.now() + 60_000);
  assert.equal(scheduleTimeMs, dueTimeMs);
  assert.equal(queue.created[0]?.scheduleTimeMs, dueTimeMs);
  assert.equal(kept.orderingKey, 'k1');
  assert.equal(kept.data.toString(), 'hello');
  assert.deepEqual(kept.attributes, {
    tenant: 'a',
    dedupId: `${SOURCE}/7`,
    deliveredAfter: '2030-01-01T00:01:00.000Z',
    originPublishTime: '2030-01-01T00:00:00.000Z',
  });
});

test('the delay counts from the publish time, so a message that was slow to come waits the rest', async () => {
  const { clock, deliver, message, queue } = stage();
  const given = message({ delay: '60' });
  await clock.advance(45_000);
  await deliver(given);
  assert.equal(queue.created[0]?.scheduleTimeMs, given.publishTime.getTime() + 60_000);
});

test('what was due before it was published goes on directly, without the mark of a delayed message', async () => {
  const { clock, deliver, message, passed, queue } = stage();
  await deliver(message({ deliverAt: new Date(clock.now() - 1).toISOString(), a: 'b' }));
  assert.deepEqual(passed[0]?.attributes, { a: 'b', dedupId: `${SOURCE}/7` });
  assert.equal(queue.calls(), 0);
});

test('L9 (a): a stage whose clock is 20 s fast still makes a task, for the very due time', async () => {
  const { clock, deliver, message, passed, queue } = stage({ skewMs: 20_000 });
  await deliver(message({ delay: '10' }));
  assert.equal(passed.length, 0);
  assert.equal(queue.created[0]?.scheduleTimeMs, clock.now() + 10_000);
});

test('a stage whose clock is far ahead forwards nothing before its time: the queue decides', async () => {
  for (const skewMs of [31_000, 600_000, 86_400_000, 40 * 86_400_000]) {
    const { clock, deliver, message, passed, queue } = stage({ skewMs });
    const deliverAt = new Date(clock.now() + 10_000).toISOString();
    for (const attributes of [{ delay: '10' }, { deliverAt }])
      await deliver(message(attributes, { id: deliverAt }));
    assert.equal(passed.length, 0, `early with a clock ${skewMs} ms ahead`);
    assert.deepEqual(
      queue.created.map(({ scheduleTimeMs }) => scheduleTimeMs - clock.now()),
      [10_000],
    );
  }
});

test('what is overdue by the stage’s clock alone becomes a task, and by Pub/Sub’s too it goes on at once', async () => {
  const { clock, deliver, message, passed, queue } = stage();
  const waited = message({ delay: '10' });
  await clock.advance(3_600_000);
  assert.deepEqual(await deliver(waited), ack('scheduled'));
  assert.equal(queue.created[0]?.scheduleTimeMs, waited.publishTime.getTime() + 10_000);
  await deliver(message({ dedupId: 'another' }));
  assert.deepEqual(await deliver(message({ delay: '10' }, { ...waited, id: '8' })), ack());
  assert.deepEqual([passed.length, queue.created.length], [2, 1]);
});

test('the arrival of a message without a publish time is no word of Pub/Sub’s', async () => {
  const { clock, deliver, message, passed, queue } = stage({ skewMs: 3_600_000 });
  const aheadOfTime = new Date(clock.now() + 3_600_000);
  await deliver(message({ dedupId: 'x' }, { publishTime: aheadOfTime, assumedPublishTime: 'not set' }));
  await deliver(message({ delay: '60' }));
  assert.deepEqual([passed.length, queue.created.length], [1, 1]);
});

test('L2: the identity is the same on both ways, when the source message comes again after its due time', async () => {
  const { clock, deliver, message, passed, queue } = stage();
  for (const attributes of [{ delay: '10' }, { delay: '10', dedupId: 'mine' }]) {
    const given = message(attributes);
    await deliver(given);
    await clock.advance(60_000);
    // Pub/Sub's clock has come as far.
    await deliver(message({ dedupId: 'another' }));
    await deliver(given);
  }
  const delayedIds = queue.created.map((_, index) => carried(queue, index).message.attributes['dedupId']);
  assert.deepEqual(delayedIds, [`${SOURCE}/7`, 'mine']);
  assert.deepEqual(
    passed.map(({ attributes }) => attributes['dedupId']).filter((dedupId) => dedupId !== 'another'),
    delayedIds,
  );
});

test('L2: a message with all 100 attributes taken keeps the identity, and ours of less weight are dropped', async () => {
  const { deliver, message, queue, warnings } = stage();
  const theirs = Object.fromEntries(Array.from({ length: 99 }, (_, n) => [`a${n}`, 'x']));
  await deliver(message({ ...theirs, delay: '60', googclient_deliveryattempt: '3' }));
  assert.deepEqual(carried(queue).message.attributes, { ...theirs, dedupId: `${SOURCE}/7` });
  assert.equal(warnings.length, 1);
});

test('a message due now with 100 attributes goes on unchanged, with a warning', async () => {
  const { deliver, message, passed, warnings } = stage();
  const theirs = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`a${n}`, 'x']));
  await deliver(message(theirs));
  assert.deepEqual(passed[0]?.attributes, theirs);
  assert.equal(warnings.length, 1);
});

test('B01: keys of the service are not carried, near misses are, and the given object stays as it was', async () => {
  const { deliver, message, queue } = stage();
  const given = Object.freeze({
    delay: '60',
    tenant: 'a',
    googclient_deliveryattempt: '3',
    GoogFoo: 'x',
    googclient_traceparent: '00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01',
    '': 'nameless',
    xgoog: '1',
    'go-og': '2',
  });
  await deliver(message(given));
  const { attributes } = carried(queue).message;
  const { dedupId, deliveredAfter, originPublishTime, ...rest } = attributes;
  // The trace goes on under its standard name.
  const { traceparent, ...theirs } = rest;
  assert.equal(traceparent, given.googclient_traceparent);
  assert.deepEqual(theirs, { tenant: 'a', xgoog: '1', 'go-og': '2' });
  assert.ok(dedupId && deliveredAfter && originPublishTime);
});

test('the first publish time is kept when a delayed message asks for a delay again', async () => {
  const { deliver, message, queue } = stage();
  await deliver(message({ delay: '60', originPublishTime: '2029-12-31T00:00:00Z', deliveredAfter: 'old' }));
  const { attributes } = carried(queue).message;
  assert.equal(attributes['originPublishTime'], '2029-12-31T00:00:00Z');
  assert.equal(attributes['deliveredAfter'], '2030-01-01T00:01:00.000Z');
});

test('a scheduleKey is refused, with and without a time or cancel, and never ignored', async () => {
  const { deliver, message, passed, queue } = stage();
  for (const attributes of [
    { scheduleKey: 'k' },
    { scheduleKey: 'k', delay: '60' },
    { scheduleKey: 'k', cancel: 'true' },
  ]) {
    const outcome = await deliver(message(attributes));
    assert.equal(outcome.kind, 'deadLetter');
    assert.equal(codeOf(outcome), 'SCHEDULE_KEY_UNSUPPORTED');
  }
  assert.equal(passed.length + queue.calls(), 0);
});

test('delay together with sequence is refused', async () => {
  const { deliver, message, passed, queue } = stage();
  const outcome = await deliver(message({ delay: '10', sequence: '1', sequenceKey: 'k' }));
  assert.equal(outcome.kind, 'deadLetter');
  assert.equal(passed.length + queue.calls(), 0);
});

test('B20 (a), B21: the task is stored and the reply lost: the message is retried and there is still one task', async () => {
  const { deliver, message, queue } = stage();
  queue.failOn(1, 'reply lost');
  assert.equal((await deliver(message({ delay: '60' }))).kind, 'retry');
  assert.deepEqual(await deliver(message({ delay: '60' })), ack('scheduled'));
  assert.equal(queue.created.length, 1);
});

test('a queue that is down is a retry, never an acknowledgement', async () => {
  const { deliver, message, queue } = stage();
  queue.failOn(1, 'refused');
  assert.equal((await deliver(message({ delay: '60' }))).kind, 'retry');
  assert.equal(queue.created.length, 0);
});

test('B20 (b): a redelivery whose task has run already is acknowledged and makes no second task', async () => {
  const { clock, deliver, message, queue } = stage();
  queue.dispatchTo(async () => ({ status: 204 }));
  const given = message({ delay: '60' });
  await deliver(given);
  await clock.advance(61_000);
  assert.equal(queue.pending(), 0);
  assert.deepEqual(await deliver(given), ack('scheduled'));
  assert.equal(queue.created.length, 1);
});

test('B20 (c), (d): the same business message delayed anew, and equal payloads in one second, are all scheduled', async () => {
  const { deliver, message, queue } = stage();
  const attributes = { deliverAt: '2030-01-01T01:00:00Z', dedupId: 'order-42' };
  for (const id of ['1', '2', '3']) await deliver(message(attributes, { id }));
  assert.equal(queue.created.length, 3);
});

test('B24: 80,000 bytes fit the default cap, and the cap counts what surrounds the data', async () => {
  for (const [size, kind] of [
    [76_799, 'ack'],
    [76_801, 'ack'],
    [80_000, 'ack'],
    [MAX_TASK_BYTES - 100, 'deadLetter'],
    [750_000, 'deadLetter'],
    [5_000_000, 'deadLetter'],
  ] as const) {
    const { deliver, message, queue } = stage();
    const data = Buffer.alloc(size, 0xff);
    const outcome = await deliver(message({ delay: '60' }, { data }));
    assert.equal(outcome.kind, kind, String(size));
    if (outcome.kind === 'ack') {
      assert.ok(carried(queue).message.data.equals(data));
      continue;
    }
    assert.ok(outcome.kind === 'deadLetter' && outcome.error instanceof PermanentError);
    assert.equal(outcome.error.code, 'TASK_TOO_LARGE');
    assert.match(outcome.error.message, /task of [0-9]+ bytes; accepted: at most 102400 bytes/);
    assert.equal(queue.calls(), 0);
  }
});

test('B24: with the cap of 1 MB, 750,000 and 786,432 bytes fit', async () => {
  for (const size of [750_000, 786_432]) {
    const { deliver, message } = stage({ maxTaskBytes: 1_048_576 });
    assert.deepEqual(await deliver(message({ delay: '60' }, { data: Buffer.alloc(size) })), ack('scheduled'));
  }
});

test('B24: what the queue adds to a body counts toward the cap', async () => {
  const { clock, queue } = stage();
  const tight = delay({ ...queue, overheadBytes: MAX_TASK_BYTES - 1 }, { clock, topic: TOPIC });
  const { message } = stage();
  const context = { consumer: 'c', source: SOURCE, log: silent } as unknown as Context;
  await assert.rejects(tight(async () => ack())(message({ delay: '60' }), context), {
    code: 'TASK_TOO_LARGE',
  });
});

test('B29: an empty ordering key is none', async () => {
  const { deliver, message, queue } = stage();
  await deliver(message({ delay: '10' }));
  assert.equal('orderingKey' in carried(queue).message, false);
});

test('a cap below what the queue adds to each task, and ledgerFor without a ledger, are refused at the start', () => {
  const { clock, queue } = stage();
  const full = { ...queue, overheadBytes: 600 };
  const make = (maxTaskBytes: number) => () => delay(full, { clock, topic: TOPIC, maxTaskBytes });
  assert.throws(make(600), refusal('maxTaskBytes', /maxTaskBytes is 600; .* \(600 bytes\)$/));
  make(601)();
  assert.throws(
    () => delay(queue, { clock, topic: TOPIC, ledgerFor: 'all' }),
    refusal('ledgerFor', /only together with ledger/),
  );
});

test('a topic that is not a full name, and a cap that no queue takes, are refused at the start', () => {
  const { clock, queue } = stage();
  assert.throws(() => delay(queue, { clock, topic: 'out' }), refusal('topic'));
  for (const maxTaskBytes of [0, -1, 1.5, NaN, 2_000_000]) {
    assert.throws(() => delay(queue, { clock, topic: TOPIC, maxTaskBytes }), refusal('maxTaskBytes'));
  }
});
