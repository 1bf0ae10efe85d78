import assert from 'node:assert/strict';
import test from 'node:test';
import { PermanentError, type TransientError } from '../errors.ts';
import { compose, type Context, type Handler } from '../handler.ts';
import { silent } from '../log.ts';
import { type Attributes, checkOutgoing, type Message, type OutgoingMessage } from '../message.ts';
import { ack, type Outcome, retry } from '../outcome.ts';
import { decodeMessage } from '../stored-message.ts';
import { type MemoryPublisher, memoryPublisher } from '../testing/index.ts';
import { cutText } from './cut-text.ts';
import { deadLettering } from './dead-lettering.ts';

const SOURCE = 'projects/p/subscriptions/s';
const TIME = '2026-01-02T03:04:05.678Z';
const message = (attributes: Attributes = {}, parts: Partial<Message> = {}): Message => ({
  id: '42',
  data: Buffer.from('AP/+gMMo', 'base64'),
  attributes,
  publishTime: new Date(TIME),
  ...parts,
});
const lines: string[] = [];
const write = (text: string, fields: unknown): unknown => lines.push(`${text} ${JSON.stringify(fields)}`);
const context: Context = {
  consumer: 'c',
  source: SOURCE,
  now: () => 0,
  deadline: Infinity,
  signal: new AbortController().signal,
  log: { ...silent, warn: write, error: write },
};
const failing: Handler = async () => Promise.reject(new PermanentError('NO', 'never'));
const run = (publisher: MemoryPublisher, received: Message, handler: Handler = failing): Promise<Outcome> =>
  compose(handler, [deadLettering(publisher, 'dead')])(received, context);
const letterOf = async (received: Message, handler?: Handler): Promise<OutgoingMessage> => {
  const publisher = memoryPublisher();
  const outcome = await run(publisher, received, handler);
  assert.ok(outcome.kind === 'deadLetter' && outcome.published, JSON.stringify(outcome));
  assert.equal(publisher.published.length, 1);
  const [letter] = publisher.published;
  assert.ok(letter);
  checkOutgoing(letter);
  return letter;
};
const many = (count: number): Attributes =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));

test('B25: a dead letter is the message as it was, with the reason and what it was called', async () => {
  const letter = await letterOf(message({ delay: '60', name: 'Łódź 日本 🚀' }, { orderingKey: 'k1' }));
  assert.deepEqual(letter, {
    topic: 'dead',
    data: Buffer.from('AP/+gMMo', 'base64'),
    orderingKey: 'k1',
    attributes: {
      delay: '60',
      name: 'Łódź 日本 🚀',
      dedupId: `${SOURCE}/42`,
      originPublishTime: TIME,
      deadLetterReason: 'NO',
      deadLetterError: 'never',
      deadLetterConsumer: 'c',
      deadLetterSource: SOURCE,
    },
  });
});

test('a dead letter says whose it is, and one of another consumer says it anew', async () => {
  const first = await letterOf(message());
  assert.deepEqual(
    [first.attributes['deadLetterConsumer'], first.attributes['deadLetterSource']],
    ['c', SOURCE],
  );
  const publisher = memoryPublisher();
  const other = { ...context, consumer: 'x'.repeat(2_000), source: 'projects/p/subscriptions/other' };
  await compose(failing, [deadLettering(publisher, 'dead')])(message(first.attributes), other);
  const [second] = publisher.published;
  assert.equal(second?.attributes['deadLetterConsumer'], 'x'.repeat(1_024));
  assert.equal(second.attributes['deadLetterSource'], 'projects/p/subscriptions/other');
});

test('other outcomes pass, and a dead letter that is published is not published again', async () => {
  const publisher = memoryPublisher();
  assert.deepEqual(await run(publisher, message(), async () => ack()), { kind: 'ack', reason: 'handled' });
  assert.equal((await run(publisher, message(), async () => retry(new Error('x')))).kind, 'retry');
  const twice = compose(failing, [deadLettering(publisher, 'dead'), deadLettering(publisher, 'dead')]);
  await twice(message(), context);
  assert.equal(publisher.published.length, 1);
});

test('an invalid delivery option never reaches the handler', async () => {
  let ran = false;
  const letter = await letterOf(message({ delay: 'soon' }), async () => {
    ran = true;
    return ack();
  });
  assert.equal(ran, false);
  assert.equal(letter.attributes['deadLetterReason'], 'INVALID_ATTRIBUTE');
  assert.match(letter.attributes['deadLetterError'] ?? '', /delay is "soon"/);
});

test('B18: a dead letter that is not published leaves the message where it is', async () => {
  for (const how of ['refused', 'reply lost'] as const) {
    const publisher = memoryPublisher();
    publisher.failOn(1, how);
    const outcome = await run(publisher, message());
    assert.equal(outcome.kind, 'retry');
    assert.equal(
      outcome.kind === 'retry' && (outcome.error as TransientError).code,
      'DEAD_LETTER_UNPUBLISHED',
    );
  }
  // A topic that is gone is permanent for the dead letter, and still not for the message.
  const gone = { publish: async () => Promise.reject(new PermanentError('PUBLISH_REFUSED', 'gone')) };
  const outcome = await compose(failing, [deadLettering(gone, 'dead')])(message(), context);
  assert.equal(outcome.kind, 'retry');
});

test('B01: reserved attributes stay behind', async () => {
  const letter = await letterOf(
    message({ googclient_deliveryattempt: '5', GOOG: 'x', '': 'x', tenant: 'a' }),
  );
  assert.deepEqual(Object.keys(letter.attributes).toSorted(), [
    'deadLetterConsumer',
    'deadLetterError',
    'deadLetterReason',
    'deadLetterSource',
    'dedupId',
    'originPublishTime',
    'tenant',
  ]);
});

test('B10: one’s own dedupId and the first hop’s time survive, an old reason does not', async () => {
  const first = await letterOf(message({ dedupId: 'mine', originPublishTime: '2020-01-01T00:00:00Z' }));
  assert.equal(first.attributes['dedupId'], 'mine');
  assert.equal(first.attributes['originPublishTime'], '2020-01-01T00:00:00Z');
  const second = await letterOf(message(first.attributes), async () =>
    Promise.reject(new PermanentError('OTHER', 'again')),
  );
  assert.deepEqual(second.attributes, {
    ...first.attributes,
    deadLetterReason: 'OTHER',
    deadLetterError: 'again',
  });
});

test('the error is cut to 1024 bytes between two characters', async () => {
  const text = `x${'🚀'.repeat(400)}`;
  const letter = await letterOf(message(), async () => Promise.reject(new PermanentError('NO', text)));
  const error = letter.attributes['deadLetterError'] ?? '';
  assert.equal(error, `x${'🚀'.repeat(255)}`);
  assert.equal(Buffer.byteLength(error), 1_021);
  const half = await letterOf(message(), async () => Promise.reject(new PermanentError('NO', 'a\ud800b')));
  assert.equal(half.attributes['deadLetterError'], 'a\ufffdb');
});

test('cutText cuts at every place without half a character', () => {
  const text = 'aé日🚀z';
  for (let bytes = 0; bytes <= 11; bytes += 1) {
    const cut = cutText(text, bytes);
    assert.ok(text.startsWith(cut) && Buffer.byteLength(cut) <= bytes, `${bytes}: ${cut}`);
  }
  assert.equal(cutText(text, 11), text);
  assert.equal(cutText(text, 9), 'aé日');
});

test('without room whose it is goes first, then the error text, the reason last, and the original never', async () => {
  const kept = async (count: number): Promise<string> => {
    const letter = await letterOf(message(many(count)));
    assert.ok(Object.keys(many(count)).every((key) => letter.attributes[key] === 'v'));
    return Object.keys(letter.attributes)
      .filter((key) => !key.startsWith('k'))
      .toSorted()
      .join(' ');
  };
  const whole =
    'deadLetterConsumer deadLetterError deadLetterReason deadLetterSource dedupId originPublishTime';
  assert.equal(await kept(94), whole);
  assert.equal(await kept(95), whole.replace('deadLetterConsumer ', ''));
  assert.equal(await kept(96), 'deadLetterError deadLetterReason dedupId originPublishTime');
  assert.equal(await kept(97), 'deadLetterReason dedupId originPublishTime');
  assert.equal(await kept(98), 'deadLetterReason dedupId');
  assert.equal(await kept(99), 'deadLetterReason');
  lines.length = 0;
  assert.equal(await kept(100), '');
  assert.match(lines.join('\n'), /no room.*"code":"NO","error":"never"/);
});

test('a message at the size limit goes through', async () => {
  const letter = await letterOf(message({}, { data: Buffer.alloc(10_000_000) }));
  assert.equal(letter.data.length, 10_000_000);
  assert.deepEqual(letter.attributes, {});
});

test('an empty message goes through', async () => {
  const letter = await letterOf(message({}, { data: Buffer.alloc(0) }));
  assert.equal(letter.attributes['deadLetterReason'], 'NO');
});

test('an original that breaks a limit travels whole inside the data', async () => {
  const proto = JSON.parse('{"half":"\\ud800"}') as Attributes;
  for (const received of [
    message({ long: 'x'.repeat(1_025) }),
    message({ ['k'.repeat(257)]: 'v' }),
    message(many(101)),
    message(proto),
    message({ a: 'b' }, { orderingKey: 'k'.repeat(1_025) }),
    message({ dedupId: 'x'.repeat(2_000) }),
  ]) {
    const letter = await letterOf(received);
    assert.equal(letter.attributes['deadLetterEncoding'], 'message-v1');
    assert.ok(letter.attributes['deadLetterReason']);
    assert.deepEqual(decodeMessage(letter.data), received);
  }
});

test('beyond the size limit the message stays, and the log says why', async () => {
  lines.length = 0;
  const publisher = memoryPublisher();
  const outcome = await run(publisher, message({}, { data: Buffer.alloc(10_000_001) }));
  assert.equal(outcome.kind, 'retry');
  assert.equal(publisher.published.length, 0);
  assert.match(lines.join('\n'), /the message stays.*LIMIT_EXCEEDED.*10000000 bytes/);
});

test('what was thrown need not be an Error', async () => {
  const letter = await letterOf(message(), async () => ({ kind: 'deadLetter', error: 'text' }));
  assert.deepEqual(
    [letter.attributes['deadLetterReason'], letter.attributes['deadLetterError']],
    ['string', 'text'],
  );
});

test('what was thrown need not have a text: it is dead-lettered all the same, not delivered for ever', async () => {
  const mute: unknown[] = [
    Object.create(null),
    { toString: () => assert.fail() },
    Object.assign(new Error('x'), { message: Symbol('s') }),
    Object.defineProperty(new Error('x'), 'message', { get: () => assert.fail() }),
    undefined,
    null,
    Symbol('s'),
  ];
  for (const error of mute) {
    const letter = await letterOf(message(), async () => ({ kind: 'deadLetter', error }));
    assert.ok(letter.attributes['deadLetterReason']);
    assert.ok(letter.attributes['deadLetterError']);
  }
});

test('a message at the size limit with an ordering key still becomes a dead letter, and is whole', async () => {
  const data = Buffer.alloc(10_000_000 - 'delay'.length - 'soon'.length, 1);
  const letter = await letterOf(message({ delay: 'soon' }, { data, orderingKey: 'k'.repeat(1_024) }));
  assert.deepEqual(letter.attributes, { delay: 'soon' });
  assert.equal(letter.data.length, data.length);
  assert.equal(letter.orderingKey, 'k'.repeat(1_024));
});
