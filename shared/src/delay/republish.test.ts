import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PermanentError, TransientError } from '../errors.ts';
import { deadLettering } from '../dead-letter/dead-lettering.ts';
import type { OutgoingMessage } from '../message.ts';
import type { Publisher } from '../publish/publisher.ts';
import { memoryPublisher } from '../testing/memory-publisher.ts';
import { virtualClock } from '../testing/virtual-clock.ts';
import { memoryTasks } from '../tasks/memory.ts';
import { republish, type RepublishOptions } from './republish.ts';
import { type Delayed, decodeDelayed, encodeDelayed, taskFor } from '../tasks/task-body.ts';
import { refusal } from '../testing/refusal.ts';

const TOPIC = 'projects/p/topics/out';
const START = Date.UTC(2030, 0, 1);

function republisher(options: Partial<RepublishOptions> = {}) {
  const clock = virtualClock(START);
  const queue = memoryTasks({ clock });
  const target = memoryPublisher();
  const dead = memoryPublisher();
  let fail: ((message: OutgoingMessage) => Promise<string>) | undefined;
  const publisher: Publisher = { publish: (message) => (fail ?? target.publish)(message) };
  const lines: string[] = [];
  const write = (text: string, fields?: object): void => void lines.push(text + JSON.stringify(fields));
  const ports = {
    publisher,
    queue,
    deadLetters: deadLettering(dead, 'dead'),
  };
  const log = { info: write, warn: write, error: write };
  const run = republish(ports, { allowedTopics: [TOPIC], clock, log, ...options });
  const delayed = (change: Partial<Delayed> = {}): Delayed => ({
    key: 'k',
    topic: TOPIC,
    dueTimeMs: START,
    scheduleTimeMs: change.dueTimeMs ?? START,
    attempt: 0,
    hop: 0,
    message: {
      id: '7',
      data: Buffer.from([0x00, 0xff, 0xfe, 0x80, 0xc3, 0x28]),
      attributes: { dedupId: 'd', name: 'Łódź 日本 🚀' },
      publishTime: new Date(START - 60_000),
    },
    ...change,
  });
  return {
    clock,
    queue,
    published: target.published,
    target,
    dead,
    lines,
    delayed,
    run,
    publishWith: (with_: typeof fail) => void (fail = with_),
    answer: (task: Delayed, headers: { etaMs?: number; retryCount?: number } = {}) =>
      clock.until(run({ body: encodeDelayed(task), ...headers })),
  };
}

test('a final task is published at its due time, byte for byte, and answered 204', async () => {
  const { answer, delayed, published } = republisher();
  assert.deepEqual(await answer(delayed(), { etaMs: START }), { status: 204 });
  assert.deepEqual(published, [
    {
      topic: TOPIC,
      data: Buffer.from([0x00, 0xff, 0xfe, 0x80, 0xc3, 0x28]),
      attributes: { dedupId: 'd', name: 'Łódź 日本 🚀' },
    },
  ]);
});

test('B29: the ordering key is published with the message, an empty one is none', async () => {
  const { answer, delayed, published } = republisher();
  const { message } = delayed();
  await answer(delayed({ message: { ...message, orderingKey: 'k1' } }));
  await answer(delayed({ message: { ...message, orderingKey: '' } }));
  assert.equal(published[0]?.orderingKey, 'k1');
  assert.equal('orderingKey' in published[1]!, false);
});

test('B01: keys of the service that are in a task are not published', async () => {
  const { answer, delayed, published } = republisher();
  const attributes = {
    dedupId: 'd',
    GoogFoo: 'x',
    googclient_deliveryattempt: '3',
    xgoog: '1',
    'go-og': '2',
  };
  await answer(delayed({ message: { ...delayed().message, attributes } }));
  assert.deepEqual(published[0]?.attributes, { dedupId: 'd', xgoog: '1', 'go-og': '2' });
});

test('B21: the same task run twice publishes the same dedupId', async () => {
  const { answer, delayed, published } = republisher();
  await answer(delayed());
  await answer(delayed(), { retryCount: 1 });
  assert.deepEqual(
    published.map(({ attributes }) => attributes['dedupId']),
    ['d', 'd'],
  );
});

test('a final task that wakes up to 5 s early waits in the process and is not early', async () => {
  const { answer, clock, delayed, published, queue } = republisher();
  const dueTimeMs = START + 4_999;
  assert.deepEqual(await answer(delayed({ dueTimeMs }), { etaMs: dueTimeMs }), { status: 204 });
  assert.equal(clock.now(), dueTimeMs);
  assert.equal(published.length, 1);
  assert.equal(queue.calls(), 0);
});

test('L9 (b): a final task that seems earlier rests for 5 s and makes the next hop', async () => {
  const { answer, clock, delayed, published, queue } = republisher();
  const dueTimeMs = START + 20_000;
  const task = delayed({ dueTimeMs, hop: 3 });
  assert.deepEqual(await answer(task, { etaMs: dueTimeMs }), { status: 204 });
  assert.equal(clock.now(), START + 5_000);
  assert.equal(published.length, 0);
  const next = decodeDelayed(queue.created[0]!.body);
  assert.deepEqual(next, { ...task, hop: 4 });
  assert.notEqual(queue.created[0]!.name, taskFor(task).name);
});

test('L9 (b): a hop that wakes within 30 s of the due time makes the final task and does not fire', async () => {
  for (const untilDueMs of [22_000, 2_000, 0, -10_000, -86_400_000]) {
    const { answer, delayed, published, queue } = republisher();
    const dueTimeMs = START + untilDueMs;
    assert.deepEqual(await answer(delayed({ dueTimeMs, scheduleTimeMs: START - 1 })), { status: 204 });
    assert.equal(published.length, 0);
    assert.equal(queue.created[0]?.scheduleTimeMs, dueTimeMs);
    assert.equal(decodeDelayed(queue.created[0]!.body).hop, 1);
  }
});

test('B22: a hop far from the due time makes the next one 29.5 days ahead, once for two runs', async () => {
  const { answer, clock, delayed, queue } = republisher();
  const task = delayed({ dueTimeMs: START + 90 * 86_400_000, scheduleTimeMs: START });
  await answer(task);
  await clock.advance(2_000);
  assert.deepEqual(await answer(task, { retryCount: 1 }), { status: 204 });
  assert.equal(queue.created.length, 1);
  assert.equal(queue.created[0]?.scheduleTimeMs, START + 29.5 * 86_400_000);
});

test('B39: what can never succeed goes to the dead letters and is answered 200', async () => {
  const { delayed, run, published, dead, answer, publishWith } = republisher();
  const { message } = delayed();
  assert.deepEqual(await run({ body: Buffer.from('{') }), { status: 200 });
  assert.deepEqual(await run({ body: Buffer.alloc(0) }), { status: 200 });
  // One that checks nothing, as an emulator would.
  publishWith(async () => 'taken');
  const tooLong = { ...message, attributes: { a: 'é'.repeat(513) } };
  assert.deepEqual(await answer(delayed({ message: tooLong })), { status: 200 });
  const wrongType = { ...message, attributes: { a: 7 } } as unknown as Delayed['message'];
  assert.deepEqual(await answer(delayed({ message: wrongType })), { status: 200 });
  publishWith(() => Promise.reject(new PermanentError('PUBLISH_REFUSED', 'deleted')));
  assert.deepEqual(await answer(delayed()), { status: 200 });
  assert.equal(published.length, 0);
  const reasons = dead.published.map(({ attributes }) => attributes['deadLetterReason']);
  assert.deepEqual(reasons.slice(0, 2), ['UNREADABLE_TASK', 'UNREADABLE_TASK']);
  assert.deepEqual(dead.published[0]?.data, Buffer.from('{'));
  assert.deepEqual(reasons.slice(2), ['LIMIT_EXCEEDED', 'UNREADABLE_TASK', 'PUBLISH_REFUSED']);
  const ids = dead.published.map(({ attributes }) => attributes['dedupId']);
  assert.equal(ids[4], 'd');
  assert.notEqual(ids[0], ids[1]);
});

test('a dead letter of the republisher names the subscription that its message came through', async () => {
  const { delayed, dead, answer, publishWith } = republisher();
  publishWith(() => Promise.reject(new PermanentError('TOPIC_NOT_FOUND', 'deleted')));
  const { message } = delayed();
  await answer(delayed({ message: { ...message, subscription: 'projects/p/subscriptions/in' } }));
  const { deadLetterConsumer, deadLetterSource } = dead.published[0]?.attributes ?? {};
  assert.deepEqual([deadLetterConsumer, deadLetterSource], ['republisher', 'projects/p/subscriptions/in']);
});

test('a topic that is not on the list is answered 403, and nothing is published anywhere', async () => {
  const { answer, delayed, published, dead, lines } = republisher();
  for (const topic of ['projects/p/topics/other', 'out', `${TOPIC}/`, TOPIC.toUpperCase()]) {
    assert.deepEqual(await answer(delayed({ topic })), { status: 403 }, topic);
  }
  assert.deepEqual([published.length, dead.published.length], [0, 0]);
  assert.match(
    lines[0] ?? '',
    /^for a topic that is not on the list.*"event":"topic_not_allowed","code":"TOPIC_NOT_ALLOWED"/,
  );
});

test('a topic that is not on the list does not lose a message to a queue that limits its attempts', async () => {
  const { answer, delayed, dead, queue } = republisher({ maxAttempts: 5 });
  const stray = delayed({ topic: 'projects/p/topics/other' });
  assert.deepEqual(await answer(stray, { retryCount: 2 }), { status: 403 });
  assert.deepEqual(await answer(stray, { retryCount: 3 }), { status: 204 });
  assert.deepEqual([dead.published.length, queue.created.length], [0, 1]);
});

test('a dead letter that cannot be published is answered 503, and the task stays', async () => {
  const { run, dead } = republisher();
  dead.failOn(1, 'refused');
  assert.deepEqual(await run({ body: Buffer.from('{') }), { status: 503 });
  assert.deepEqual(await run({ body: Buffer.from('{') }), { status: 200 });
});

test('a publish that fails, or whose reply is lost, is answered 503', async () => {
  const { answer, delayed, target, dead } = republisher();
  target.failOn(1, 'refused');
  target.failOn(2, 'reply lost');
  assert.deepEqual(await answer(delayed()), { status: 503 });
  assert.deepEqual(await answer(delayed()), { status: 503 });
  assert.deepEqual(await answer(delayed()), { status: 204 });
  assert.equal(dead.published.length, 0);
});

test('a publish that hangs is answered 503 after its time limit', async () => {
  const { answer, clock, delayed, publishWith } = republisher();
  publishWith(() => new Promise(() => {}));
  assert.deepEqual(await answer(delayed()), { status: 503 });
  assert.equal(clock.now(), START + 30_000);
});

test('a next task that cannot be stored is answered 503, or goes to the dead letters when it never can', async () => {
  const { answer, delayed, queue } = republisher();
  queue.failOn(1, 'refused');
  const hop = delayed({ dueTimeMs: START + 40 * 86_400_000, scheduleTimeMs: START });
  assert.deepEqual(await answer(hop), { status: 503 });
  assert.deepEqual(await answer(hop), { status: 204 });
});

test('near the end of a queue that limits its attempts, a message that fails goes to the dead letters', async () => {
  const { answer, delayed, dead, publishWith } = republisher({ maxAttempts: 5 });
  publishWith(() => Promise.reject(new TransientError('MINE', 'of the message')));
  assert.deepEqual(await answer(delayed(), { retryCount: 2 }), { status: 503 });
  assert.equal(dead.published.length, 0);
  dead.failOn(1, 'refused');
  assert.deepEqual(await answer(delayed(), { retryCount: 3 }), { status: 503 });
  assert.deepEqual(await answer(delayed(), { retryCount: 4 }), { status: 200 });
});

test('near the end of a queue that limits its attempts, a topic that is away gives the message another task', async () => {
  const { answer, clock, delayed, dead, publishWith, published, queue } = republisher({ maxAttempts: 5 });
  publishWith(() => Promise.reject(new TransientError('PUBSUB_UNAVAILABLE', 'down')));
  assert.deepEqual(await answer(delayed(), { retryCount: 2 }), { status: 503 });
  assert.deepEqual(await answer(delayed(), { retryCount: 3 }), { status: 204 });
  assert.deepEqual([dead.published.length, queue.created.length], [0, 1]);
  publishWith(undefined);
  // The task that took its place, and the last one on the way, whose schedule time is the due time.
  for (let index = 0; index < queue.created.length; index += 1) {
    await clock.advance(60_000);
    const { body } = queue.created[index]!;
    assert.deepEqual(await answer(decodeDelayed(body)), { status: 204 });
  }
  assert.deepEqual([published.length, queue.created.length, dead.published.length], [1, 2, 0]);
});

test('near the end of a queue that takes no other task, what is in the way is a dead letter, not a loss', async () => {
  const { answer, delayed, dead, publishWith, queue } = republisher({ maxAttempts: 5 });
  publishWith(() => Promise.reject(new TransientError('PUBSUB_UNAVAILABLE', 'down')));
  queue.failOn(1, 'refused');
  assert.deepEqual(await answer(delayed(), { retryCount: 3 }), { status: 200 });
  assert.equal(dead.published[0]?.attributes['deadLetterReason'], 'PUBSUB_UNAVAILABLE');
});

test('a task that waits when the process stops is answered 503 at once', async () => {
  const stop = new AbortController();
  const { clock, delayed, run, published } = republisher({ stop: stop.signal });
  const waiting = run({ body: encodeDelayed(delayed({ dueTimeMs: START + 4_000 })) });
  await clock.advance(1_000);
  stop.abort();
  assert.deepEqual(await waiting, { status: 503 });
  assert.equal(published.length, 0);
});

test('no line of the log holds a payload or an attribute value', async () => {
  const { answer, delayed, lines, run, publishWith } = republisher();
  const secret = { ...delayed().message, data: Buffer.from('PAYLOAD'), attributes: { a: 'SECRET' } };
  await answer(delayed({ message: secret }));
  await answer(delayed({ message: secret, topic: 'projects/p/topics/other' }));
  await answer(delayed({ message: secret, dueTimeMs: START + 86_400_000 }));
  // What cannot be read or published goes to the dead letters, and is not quoted.
  const long = { ...secret, attributes: { a: 'SECRET'.repeat(200) } };
  await answer(delayed({ message: long }));
  const cut = encodeDelayed(delayed({ message: secret })).toString('latin1');
  const bodies = [
    'PAYLOAD',
    cut.replace('{"key"', '{SECRET'),
    cut.replace('{"id"', 'SECRET'),
    cut.slice(0, -9),
  ];
  for (const body of bodies) await run({ body: Buffer.from(body, 'latin1') });
  publishWith(() => Promise.reject(new Error('the topic’s schema')));
  await answer(delayed({ message: secret }));
  assert.equal(lines.length, 9);
  assert.doesNotMatch(lines.join('\n'), /SECRET|PAYLOAD/);
});

test('lateness is counted from the publish of a message whose due time was over by then', async () => {
  const { answer, delayed, lines } = republisher();
  await answer(delayed({ dueTimeMs: 0 }));
  assert.match(lines[0]!, /"lateMs":60000\b/);
});

test('no allowed topic, and a limit that is not positive, are refused at the start', () => {
  const { queue, target } = republisher();
  const ports = { publisher: target, queue, deadLetters: deadLettering(target, 'dead') };
  assert.throws(() => republish(ports, { allowedTopics: [] }), refusal('allowedTopics'));
  // A task names its topic whole: a short name would allow nothing.
  assert.throws(() => republish(ports, { allowedTopics: [TOPIC, 'out'] }), refusal('allowedTopics[1]'));
  assert.throws(() => republish(ports, { allowedTopics: [TOPIC], maxAttempts: 0 }), refusal('maxAttempts'));
});
