import assert from 'node:assert/strict';
import test from 'node:test';
import { leaseLost } from '../errors.ts';
import { compose, type Context, type Handler } from '../handler.ts';
import { silent } from '../log.ts';
import type { Attributes, Message, OutgoingMessage } from '../message.ts';
import { ack, type Outcome, retry } from '../outcome.ts';
import { memoryPublisher } from '../testing/index.ts';
import type { Publisher } from './publisher.ts';
import { publishing } from './publishing.ts';

const context = (parts: Partial<Context> = {}): Context => ({
  consumer: 'c',
  source: 's',
  now: () => 0,
  deadline: Infinity,
  signal: new AbortController().signal,
  log: silent,
  ...parts,
});
const message: Message = { id: '42', data: Buffer.alloc(0), attributes: {}, publishTime: new Date(0) };
const out = (text: string, attributes: Attributes = {}): OutgoingMessage => ({
  topic: 't',
  data: Buffer.from(text),
  attributes,
});
const run = (
  publisher: Publisher,
  handler: Handler,
  parts: Partial<Context> = {},
  input = message,
): Promise<Outcome> => compose(handler, [publishing(publisher)])(input, context(parts));

test('publishes in order, then answers without anything left to publish', async () => {
  const publisher = memoryPublisher();
  const outcome = await run(publisher, async () => ack('handled', [out('a'), out('b'), out('c')]));
  assert.deepEqual(outcome, { kind: 'ack', reason: 'handled' });
  assert.deepEqual(
    publisher.published.map(({ data }) => Buffer.from(data).toString()),
    ['a', 'b', 'c'],
  );
});

test('other outcomes pass, and publish nothing', async () => {
  const publisher = memoryPublisher();
  assert.deepEqual(await run(publisher, async () => ack('duplicate')), { kind: 'ack', reason: 'duplicate' });
  assert.equal((await run(publisher, async () => retry(new Error('x')))).kind, 'retry');
  assert.equal(publisher.published.length, 0);
});

test('B52: waits for every publish before it answers', async () => {
  let confirm = (): void => {};
  const publisher: Publisher = { publish: () => new Promise((resolve) => (confirm = () => resolve('1'))) };
  let answered = false;
  const answer = run(publisher, async () => ack('handled', [out('a')])).then(() => (answered = true));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(answered, false);
  confirm();
  await answer;
});

test('a publish that may succeed later is a retry, and what follows is not published', async () => {
  const publisher = memoryPublisher();
  publisher.failOn(2, 'refused');
  const outcome = await run(publisher, async () => ack('handled', [out('a'), out('b'), out('c')]));
  assert.equal(outcome.kind, 'retry');
  assert.equal(publisher.published.length, 1);
});

test('a publish that can never succeed is a dead letter', async () => {
  const outcome = await run(memoryPublisher(), async () => ack('handled', [out('a', { goog: 'x' })]));
  assert.equal(outcome.kind, 'deadLetter');
});

test('B10: a rerun makes the same messages under the same names', async () => {
  const publisher = memoryPublisher();
  publisher.failOn(2, 'reply lost');
  const handler: Handler = async () => ack('handled', [out('a'), out('b')]);
  await run(publisher, handler);
  await run(publisher, handler);
  const ids = publisher.published.map(({ attributes }) => attributes['dedupId']);
  assert.equal(ids.length, 4);
  assert.equal(new Set(ids).size, 2);
  assert.equal(ids[0], ids[2]);
  assert.match(ids[0] ?? '', /^[A-Za-z0-9_-]{43}$/);
});

test('B08: names differ by consumer, source, input and position', async () => {
  const publisher = memoryPublisher();
  const handler: Handler = async () => ack('handled', [out('a'), out('a')]);
  const own = (dedupId: string): Message => ({ ...message, attributes: { dedupId } });
  await run(publisher, handler);
  await run(publisher, handler, { consumer: 'other' });
  await run(publisher, handler, { source: 'other' });
  await run(publisher, handler, {}, { ...message, id: '43' });
  await run(publisher, handler, {}, own('d'));
  await run(publisher, handler, {}, own('s/42'));
  assert.equal(new Set(publisher.published.map(({ attributes }) => attributes['dedupId'])).size, 12);
});

test('a dedupId counts for the input whatever message ID brings it', async () => {
  const publisher = memoryPublisher();
  const handler: Handler = async () => ack('handled', [out('a')]);
  for (const id of ['1', '2'])
    await run(publisher, handler, {}, { ...message, id, attributes: { dedupId: 'd' } });
  const [first, second] = publisher.published;
  assert.equal(first?.attributes['dedupId'], second?.attributes['dedupId']);
});

test('a name that the handler gave stays, and its objects are not written to', async () => {
  const publisher = memoryPublisher();
  const given = out('a', { dedupId: 'mine' });
  const plain = out('b');
  await run(publisher, async () => ack('handled', [given, plain]));
  assert.equal(publisher.published[0]?.attributes['dedupId'], 'mine');
  assert.deepEqual(plain.attributes, {});
});

test('without room the message goes unnamed, with a warning', async () => {
  const publisher = memoryPublisher();
  const lines: string[] = [];
  const log = { ...silent, warn: (text: string) => lines.push(text) };
  const full = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`k${index}`, 'v']));
  await run(publisher, async () => ack('handled', [out('a', full)]), { log });
  assert.deepEqual(publisher.published[0]?.attributes, full);
  assert.equal(lines.length, 1);
});

test('nothing is published once the lease is lost', async () => {
  const publisher = memoryPublisher();
  const controller = new AbortController();
  const lost = leaseLost('gone');
  const outcome = await run(
    publisher,
    async () => {
      controller.abort(lost);
      return ack('handled', [out('a')]);
    },
    { signal: controller.signal },
  );
  assert.equal(publisher.published.length, 0);
  assert.deepEqual(outcome, { kind: 'retry', error: lost });
});

test('an invalid message is a permanent error that names the field: another try would not help', async () => {
  const bad: [unknown, RegExp][] = [
    [undefined, /the message is of type undefined/],
    [{ topic: 't', data: Buffer.from('x') }, /attributes is of type undefined/],
    [{ topic: 't', data: 'text', attributes: {} }, /data is of type string/],
    [{ topic: 't', data: Buffer.from('x'), attributes: { n: 1 } }, /"n" is of type number/],
    [{ data: Buffer.from('x'), attributes: {} }, /topic is undefined/],
  ];
  for (const [outgoing, text] of bad) {
    const publisher = memoryPublisher();
    const outcome = await run(publisher, async () => ack('handled', [outgoing as OutgoingMessage]));
    assert.ok(outcome.kind === 'deadLetter', JSON.stringify(outgoing));
    assert.match(String(outcome.error), text);
    assert.equal(publisher.published.length, 0);
  }
});
