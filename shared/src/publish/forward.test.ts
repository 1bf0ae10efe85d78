import assert from 'node:assert/strict';
import test from 'node:test';
import { PermanentError } from '../errors.ts';
import type { Context } from '../handler.ts';
import { type Log, silent } from '../log.ts';
import type { Attributes, Message, OutgoingMessage } from '../message.ts';
import { forward } from './forward.ts';

const BIN = Buffer.from('AP/+gMMo', 'base64');
const SOURCE = 'projects/p/subscriptions/s';
const TIME = '2026-01-02T03:04:05.678Z';
const context = (parts: Partial<Context> = {}): Context => ({
  consumer: 'c',
  source: SOURCE,
  now: () => 0,
  deadline: Infinity,
  signal: new AbortController().signal,
  log: silent,
  ...parts,
});
const message = (attributes: Attributes = {}, parts: Partial<Message> = {}): Message => ({
  id: '42',
  data: BIN,
  attributes,
  publishTime: new Date(TIME),
  ...parts,
});
const forwarded = async (
  received: Message,
  parts: Partial<Context> = {},
  maxBytes?: number,
): Promise<OutgoingMessage> => {
  const options = maxBytes === undefined ? {} : { maxBytes };
  const outcome = await forward('out', options)(received, context(parts));
  assert.ok(outcome.kind === 'ack' && outcome.publish?.length === 1 && outcome.publish[0] !== undefined);
  return outcome.publish[0];
};
const many = (count: number): Attributes =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));
const warnings = (): { log: Log; lines: string[] } => {
  const lines: string[] = [];
  return {
    lines,
    log: { ...silent, warn: (text, fields) => lines.push(`${text} ${JSON.stringify(fields)}`) },
  };
};

test('B25: sends the data on as it is, with what names the message', async () => {
  const outgoing = await forwarded(message({ name: 'Łódź 日本 🚀' }));
  assert.equal(Buffer.from(outgoing.data).toString('base64'), 'AP/+gMMo');
  assert.deepEqual(outgoing, {
    topic: 'out',
    data: BIN,
    attributes: { name: 'Łódź 日本 🚀', dedupId: `${SOURCE}/42`, originPublishTime: TIME },
  });
});

test('how often a message was rescheduled goes no further', async () => {
  const { attributes } = await forwarded(message({ retryAttempt: '3', tenant: 'a' }));
  assert.deepEqual(Object.keys(attributes).sort(), ['dedupId', 'originPublishTime', 'tenant']);
});

test('B10: the publisher’s own dedupId wins, and the time of a first hop stays', async () => {
  const first = await forwarded(message({ dedupId: 'mine' }));
  assert.equal(first.attributes['dedupId'], 'mine');
  const second = await forwarded(message(first.attributes, { id: '77', publishTime: new Date(0) }));
  assert.deepEqual(second.attributes, first.attributes);
  const unreadable = await forwarded(message({ originPublishTime: 'yesterday' }));
  assert.equal(unreadable.attributes['originPublishTime'], TIME);
});

test('B08: equal message IDs of two sources stay apart', async () => {
  const a = await forwarded(message(), { source: 'a' });
  const b = await forwarded(message(), { source: 'b' });
  assert.deepEqual([a.attributes['dedupId'], b.attributes['dedupId']], ['a/42', 'b/42']);
});

test('B01: keys that begin with goog, and the empty key, are left out', async () => {
  const outgoing = await forwarded(
    message({
      tenant: 'a',
      googclient_deliveryattempt: '3',
      GoogFoo: 'x',
      googclient_traceparent: '00',
      '': 'x',
      xgoog: '1',
      'go-og': '2',
    }),
  );
  assert.deepEqual(Object.keys(outgoing.attributes).toSorted(), [
    'dedupId',
    'go-og',
    'originPublishTime',
    'tenant',
    'xgoog',
  ]);
});

test('B01: reserved keys do not count toward the hundred', async () => {
  const outgoing = await forwarded(message({ ...many(98), googclient_deliveryattempt: '3', GoogFoo: 'x' }));
  assert.equal(Object.keys(outgoing.attributes).length, 100);
  assert.equal(outgoing.attributes['dedupId'], `${SOURCE}/42`);
});

test('B56: the received message is not changed', async () => {
  const received = message({ tenant: 'a', googclient_traceparent: '00' });
  const before = structuredClone({ ...received.attributes });
  await forwarded(received);
  assert.deepEqual(received.attributes, before);
});

test('B29: the ordering key goes along, and an empty one is none', async () => {
  assert.equal((await forwarded(message({}, { orderingKey: 'k1' }))).orderingKey, 'k1');
  assert.ok(!('orderingKey' in (await forwarded(message()))));
});

test('behind in-order a message gets its stream as ordering key, and the fencing token', async () => {
  const stream = { sequence: '7', sequenceKey: 's1' };
  const outgoing = await forwarded(message(stream), { fencingToken: '99' });
  assert.equal(outgoing.orderingKey, 's1');
  assert.equal(outgoing.attributes['fencingToken'], '99');
  assert.equal(outgoing.attributes['sequence'], '7');
  const own = await forwarded(message(stream, { orderingKey: 'k1' }));
  assert.equal(own.orderingKey, 'k1');
  assert.ok(!('fencingToken' in own.attributes));
  assert.ok(!('fencingToken' in (await forwarded(message(), { fencingToken: '99' })).attributes));
});

test('options that are applied elsewhere are not removed here', async () => {
  const { attributes } = await forwarded(message({ delay: '60' }));
  assert.equal(attributes['delay'], '60');
  const dated = await forwarded(message({ deliverAt: '2030-01-31T08:00:00Z' }));
  assert.equal(dated.attributes['deliverAt'], '2030-01-31T08:00:00Z');
});

test('B02: a message of attributes alone stays one', async () => {
  const outgoing = await forwarded(message({ type: 'ping' }, { data: Buffer.alloc(0) }));
  assert.equal(outgoing.data.length, 0);
});

test('without room the toolkit’s own attributes are left out in their order, with a warning', async () => {
  const stream = { sequence: '1', sequenceKey: 's', deliveredAfter: '5' };
  const lost = async (count: number): Promise<string> => {
    const { log, lines } = warnings();
    const theirs = many(count - 2);
    const outgoing = await forwarded(message({ ...theirs, ...stream }), { fencingToken: '9', log });
    for (const key of [...Object.keys(theirs), 'sequence', 'sequenceKey'])
      assert.ok(key in outgoing.attributes);
    assert.ok(Object.keys(outgoing.attributes).length <= 100);
    assert.equal(lines.length, count === 96 ? 0 : 1);
    return ['originPublishTime', 'deliveredAfter', 'fencingToken', 'dedupId']
      .filter((name) => !(name in outgoing.attributes))
      .join(' ');
  };
  assert.equal(await lost(96), '');
  assert.equal(await lost(97), 'originPublishTime');
  assert.equal(await lost(98), 'originPublishTime deliveredAfter');
  assert.equal(await lost(99), 'originPublishTime deliveredAfter fencingToken');
  assert.equal(await lost(100), 'originPublishTime deliveredAfter fencingToken dedupId');
});

test('a dedupId that the publisher wrote is never left out', async () => {
  const outgoing = await forwarded(message({ ...many(99), dedupId: 'mine' }));
  assert.equal(outgoing.attributes['dedupId'], 'mine');
  assert.equal(Object.keys(outgoing.attributes).length, 100);
  await assert.rejects(forwarded(message({ dedupId: 'mine' }), {}, 15), { code: 'LIMIT_EXCEEDED' });
});

test('bytes are counted as well as attributes', async () => {
  const full = await forwarded(message({ a: 'b' }, { data: Buffer.alloc(9_999_998) }));
  assert.deepEqual(full.attributes, { a: 'b' });
  const nearly = await forwarded(message({ a: 'b' }, { data: Buffer.alloc(9_999_950) }));
  assert.deepEqual(Object.keys(nearly.attributes), ['a', 'dedupId']);
  const setting = await forwarded(message({ a: 'b' }, { data: Buffer.alloc(100) }), {}, 102);
  assert.deepEqual(setting.attributes, { a: 'b' });
});

test('B27: what no topic would take is a permanent error before anything is published', async () => {
  const bad: [Message, RegExp][] = [
    [message({}, { data: Buffer.alloc(10_000_001) }), /10000001 bytes/],
    [message({ a: 'é'.repeat(513) }), /"a" has 1026 bytes/],
    [message({}, { orderingKey: 'k'.repeat(1_025) }), /orderingKey has 1025 bytes/],
  ];
  for (const [received, text] of bad) {
    await assert.rejects(forward('out')(received, context()), (error: Error) => {
      assert.equal(error.name, 'PermanentError');
      return text.test(error.message);
    });
  }
  await assert.rejects(forward('out')(message({ delay: 'soon' }), context()), { code: 'INVALID_ATTRIBUTE' });
});

test('a stream’s key that does not fit is left out: the message carries its sequence', async () => {
  const stream = { sequence: '1', sequenceKey: 's' };
  const outgoing = await forwarded(message(stream, { data: Buffer.alloc(9_999_979) }));
  assert.deepEqual(outgoing.attributes, stream);
  assert.ok(!('orderingKey' in outgoing));
});

test('a schedule key is refused and not passed on: no record of schedules is kept', async () => {
  const scheduled: Attributes[] = [{ scheduleKey: 'a' }, { scheduleKey: 'a', cancel: 'true' }];
  for (const attributes of scheduled) {
    await assert.rejects(
      async () => forward('t')(message(attributes), context()),
      (error) => error instanceof PermanentError && error.code === 'SCHEDULE_KEY_UNSUPPORTED',
    );
  }
});
