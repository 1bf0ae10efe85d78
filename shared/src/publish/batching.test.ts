import assert from 'node:assert/strict';
import test from 'node:test';
import { PermanentError, TransientError } from '../errors.ts';
import type { OutgoingMessage } from '../message.ts';
import { virtualClock } from '../testing/index.ts';
import { batching, type BatchingOptions } from './batching.ts';
import { REFUSED } from './send-all.ts';

type Request = Readonly<{
  texts: readonly string[];
  succeed(ids?: readonly string[]): Promise<void>;
  fail(error: unknown): Promise<void>;
}>;
const out = (text: string, orderingKey?: string, topic = 't'): OutgoingMessage => ({
  topic,
  data: Buffer.from(text),
  attributes: {},
  ...(orderingKey !== undefined && { orderingKey }),
});
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const refused = new PermanentError(REFUSED, 'refused');

/** A server whose answers the test gives. */
function setUp(parts: Partial<BatchingOptions> = {}) {
  const clock = virtualClock();
  const requests: Request[] = [];
  const batches = batching(
    (messages) =>
      new Promise((resolve, reject) => {
        const texts = messages.map(({ data }) => Buffer.from(data).toString());
        requests.push({
          texts,
          succeed: (ids = texts.map((text) => `id-${text}`)) => (resolve(ids), turn()),
          fail: (error) => (reject(error as Error), turn()),
        });
      }),
    { clock, timeoutMs: 10_000, delayMs: 5, maxMessages: 3, maxBytes: 100, ...parts },
  );
  const publish = (...args: Parameters<typeof out>): Promise<string> => {
    const answer = batches.publish(out(...args));
    answer.catch(() => {});
    return answer;
  };
  const sent = (): string[] => requests.map(({ texts }) => texts.join(' '));
  return { clock, requests, batches, publish, sent };
}

test('messages that come together go together, after the delay', async () => {
  const { clock, requests, publish, sent } = setUp();
  const answers = [publish('a'), publish('b')];
  await clock.advance(4);
  assert.deepEqual(sent(), []);
  await clock.advance(1);
  assert.deepEqual(sent(), ['a b']);
  await requests[0]?.succeed();
  assert.deepEqual(await Promise.all(answers), ['id-a', 'id-b']);
  assert.equal(clock.pending(), 0);
});

test('a full request goes at once, by number and by bytes', async () => {
  const { publish, sent } = setUp();
  for (const text of ['a', 'b', 'c', 'd']) void publish(text);
  assert.deepEqual(sent(), ['a b c']);
  const large = setUp();
  void large.publish('x'.repeat(60));
  void large.publish('y'.repeat(60));
  assert.deepEqual(large.sent(), ['x'.repeat(60), 'y'.repeat(60)]);
  void large.publish('z'.repeat(1_000));
  assert.equal(large.sent()[2], 'z'.repeat(1_000));
});

test('topics and ordering keys never share a request', async () => {
  const { clock, publish, sent } = setUp();
  void publish('a');
  void publish('b', 'k1');
  void publish('c', 'k2');
  void publish('d', undefined, 'other');
  await clock.advance(5);
  assert.deepEqual(sent(), ['a', 'b', 'c', 'd']);
});

test('messages of one ordering key wait for the request before them; others do not', async () => {
  const { clock, requests, publish, sent } = setUp();
  void publish('1', 'k');
  await clock.advance(5);
  const second = publish('2', 'k');
  void publish('3', 'k');
  void publish('x');
  await clock.advance(1_000);
  assert.deepEqual(sent(), ['1', 'x']);
  await requests[0]?.succeed();
  assert.deepEqual(sent(), ['1', 'x', '2 3']);
  await requests[2]?.succeed();
  assert.equal(await second, 'id-2');
});

test('a request of one ordering key never grows beyond its limits while another is on its way', async () => {
  const { clock, requests, publish, sent } = setUp();
  void publish('1', 'k');
  await clock.advance(5);
  for (const text of ['2', '3', '4', '5']) void publish(text, 'k');
  await requests[0]?.succeed();
  assert.deepEqual(sent(), ['1', '2 3 4']);
});

test('after a failure what waits behind it under its key is rejected, and the key is free at once', async () => {
  const { clock, requests, publish, sent } = setUp();
  const first = publish('1', 'k');
  await clock.advance(5);
  const second = publish('2', 'k');
  const other = publish('x', 'other');
  await clock.advance(5);
  const down = new TransientError('PUBSUB_UNAVAILABLE', 'down');
  await requests[0]?.fail(down);
  await assert.rejects(first, down);
  await assert.rejects(second, { name: 'TransientError', cause: down });
  await requests[1]?.succeed();
  assert.equal(await other, 'id-x');
  const third = publish('3', 'k');
  await clock.advance(5);
  assert.deepEqual(sent(), ['1', 'x', '3']);
  await requests[2]?.succeed();
  assert.equal(await third, 'id-3');
});

test('a message is not refused for the fault of another in its request', async () => {
  for (const key of [undefined, 'k']) {
    const { clock, requests, publish, sent } = setUp();
    const answers = [publish('a', key), publish('bad', key), publish('c', key)];
    await clock.advance(5);
    await requests[0]?.fail(refused);
    await requests[1]?.succeed();
    await requests[2]?.fail(refused);
    await requests[3]?.succeed();
    assert.deepEqual(sent(), ['a bad c', 'a', 'bad', 'c']);
    const [a, bad, c] = await Promise.allSettled(answers);
    assert.deepEqual(a, { status: 'fulfilled', value: 'id-a' });
    assert.deepEqual(bad, { status: 'rejected', reason: refused });
    assert.deepEqual(c, { status: 'fulfilled', value: 'id-c' });
  }
});

test('one by one, a failure stops what is behind it too', async () => {
  const { clock, requests, publish, sent } = setUp();
  const answers = [publish('a', 'k'), publish('b', 'k'), publish('c', 'k')];
  await clock.advance(5);
  await requests[0]?.fail(refused);
  await requests[1]?.fail(new TransientError('X', 'down'));
  const results = await Promise.allSettled(answers);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'rejected', 'rejected'],
  );
  assert.deepEqual(sent(), ['a b c', 'a']);
});

test('what concerns the topic is not tried one by one', async () => {
  const { clock, requests, publish, sent } = setUp();
  const answers = [publish('a'), publish('b')];
  await clock.advance(5);
  await requests[0]?.fail(new PermanentError('TOPIC_NOT_FOUND', 'no'));
  for (const answer of answers) await assert.rejects(answer, { code: 'TOPIC_NOT_FOUND' });
  assert.equal(sent().length, 1);
});

test('a publish is answered in time even if the server never answers', async () => {
  const { clock, requests, publish } = setUp();
  const first = publish('1', 'k');
  const second = publish('2', 'other');
  await clock.advance(10_000);
  for (const answer of [first, second])
    await assert.rejects(answer, { name: 'TransientError', code: 'PUBLISH_TIMEOUT' });
  assert.equal(clock.pending(), 0);
  await requests[0]?.succeed();
});

test('what has been answered is not sent any more', async () => {
  const { clock, requests, publish, sent } = setUp();
  void publish('1', 'k');
  await clock.advance(5);
  const late = publish('2', 'k');
  await clock.advance(10_000);
  await assert.rejects(late, { code: 'PUBLISH_FAILED', message: 'a publish before it failed' });
  const third = publish('3', 'k');
  await requests[0]?.succeed();
  assert.deepEqual(sent(), ['1', '3']);
  await requests[1]?.succeed();
  assert.equal(await third, 'id-3');
});

test('an answer without an ID confirms nothing', async () => {
  const { clock, requests, publish } = setUp();
  const answers = [publish('a'), publish('b'), publish('c')];
  await clock.advance(5);
  await requests[0]?.succeed(['1', '']);
  assert.equal(await answers[0], '1');
  for (const answer of answers.slice(1)) await assert.rejects(answer, { code: 'PUBLISH_UNCONFIRMED' });
});

test('B52: idle() waits for every publish, also those that fail', async () => {
  const { clock, requests, publish, batches } = setUp();
  void publish('a');
  void publish('b', 'k');
  let idle = false;
  const done = batches.idle().then(() => (idle = true));
  await clock.advance(5);
  await requests[0]?.succeed();
  assert.equal(idle, false);
  await requests[1]?.fail(new Error('down'));
  await done;
  await batches.idle();
});

test('an ordering key that looks like a part of a name is still its own lane', async () => {
  const { clock, publish, sent } = setUp();
  void publish('1', 'k', 't/x');
  void publish('2', 'x/k', 't');
  void publish('3', '', 't');
  await clock.advance(5);
  assert.equal(sent().length, 3);
});
