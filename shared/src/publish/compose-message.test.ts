import assert from 'node:assert/strict';
import test from 'node:test';
import type { Attributes } from '../message.ts';
import { type MessageParts, outgoing } from './compose-message.ts';
import { refusal } from '../testing/refusal.ts';

const NOW = Date.UTC(2026, 0, 2);
const compose = (parts: MessageParts | Record<string, unknown>, maxBytes?: number) =>
  outgoing('t', parts as MessageParts, {
    clock: { now: () => NOW },
    ...(maxBytes !== undefined && { maxBytes }),
  });
const refuses = (parts: Record<string, unknown>, text: RegExp): void =>
  assert.throws(
    () => compose({ data: 'x', ...parts }),
    (error: Error) => {
      assert.equal(error.name, 'PermanentError', error.stack);
      assert.match(error.message, text);
      return true;
    },
  );
const attributeOf = (parts: MessageParts, name: string): string | undefined =>
  compose({ data: 'x', ...parts }).attributes[name];
const many = (count: number): Attributes =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));

test('text is sent as UTF-8, bytes as they are', () => {
  assert.deepEqual(compose({ data: 'Łódź' }), {
    topic: 't',
    data: Buffer.from('Łódź', 'utf8'),
    attributes: {},
  });
  const bytes = Buffer.from('AP/+gMMo', 'base64');
  assert.equal(compose({ data: bytes }).data, bytes);
  assert.deepEqual(compose({ data: new Uint8Array([1]) }).data, new Uint8Array([1]));
});

test('B50: refuses data that is neither, and says what to do with an object', () => {
  refuses({ data: { a: 1 } }, /^data is of type object; accepted: .*JSON.stringify/);
  refuses({ data: 7 }, /^data is of type number/);
  refuses({ data: null }, /^data is of type null/);
  refuses({ data: '\ud800' }, /^data is text with half a surrogate pair/);
});

test('B50: refuses attributes that are not text, and an empty message', () => {
  refuses({ attributes: { n: 1 } }, /"n" is of type number/);
  refuses({ attributes: { n: undefined } }, /"n" is of type undefined/);
  refuses({ attributes: { '': 'x' } }, /empty key/);
  refuses({ attributes: 'abc' }, /^attributes is of type string/);
  refuses({ attributes: ['a'] }, /^attributes is of type object/);
  refuses({ data: '' }, /neither data nor attributes/);
  refuses({ data: undefined, orderingKey: 'k' }, /neither data nor attributes/);
  assert.equal(compose({ attributes: { type: 'ping' } }).data.length, 0);
});

test('B01: refuses reserved keys, naming the key', () => {
  refuses({ attributes: { GoogFoo: 'x' } }, /"GoogFoo" begins with "goog"/);
});

test('ignores what is undefined, and an empty ordering key', () => {
  const parts: MessageParts = {
    data: 'x',
    attributes: undefined,
    orderingKey: undefined,
    dedupId: undefined,
    delay: undefined,
    deliverAt: undefined,
    scheduleKey: undefined,
    cancel: undefined,
    sequence: undefined,
    sequenceKey: undefined,
    sequenceEpoch: undefined,
  };
  assert.deepEqual(compose(parts), { topic: 't', data: Buffer.from('x'), attributes: {} });
  assert.ok(!('orderingKey' in compose({ data: 'x', orderingKey: '' })));
  assert.equal(compose({ data: 'x', orderingKey: 'k1' }).orderingKey, 'k1');
});

test('B41: a delay becomes whole seconds, rounded up', () => {
  const delays: [MessageParts['delay'], string][] = [
    ['15m', '900'],
    ['1500ms', '2'],
    ['1ms', '1'],
    ['0s', '0'],
    ['3650d', '315360000'],
    [90, '90'],
    [0.25, '1'],
    [0, '0'],
    [-0, '0'],
  ];
  for (const [delay, seconds] of delays)
    assert.equal(attributeOf({ delay }, 'delay'), seconds, String(delay));
});

test('B41: refuses every other delay', () => {
  for (const delay of [
    '60',
    '-1s',
    '1.5h',
    'soon',
    '',
    null,
    {},
    NaN,
    Infinity,
    -1,
    -0.5,
    2 ** 60,
    315_360_001,
    '3651d',
    1774661400000,
  ]) {
    refuses({ delay }, /delay is /);
  }
});

test('B41: a due time is a Date or RFC 3339 with a zone, at most ten years ahead', () => {
  assert.equal(attributeOf({ deliverAt: new Date(NOW + 1_500) }, 'deliverAt'), '2026-01-02T00:00:01.500Z');
  assert.equal(
    attributeOf({ deliverAt: '2026-03-29T02:30:00+01:00' }, 'deliverAt'),
    '2026-03-29T02:30:00+01:00',
  );
  refuses({ deliverAt: new Date('nonsense') }, /^deliverAt is an invalid Date/);
  refuses({ deliverAt: '2026-03-29T02:30:00' }, /deliverAt is .*RFC 3339/);
  refuses({ deliverAt: new Date(8.64e15) }, /deliverAt is /);
  refuses({ deliverAt: new Date(NOW + 315_360_000_001) }, /deliverAt is .*ten years/);
  refuses({ deliverAt: new Date(NOW), delay: '1s' }, /deliverAt is .*not together with delay/);
  refuses({ deliverAt: 1_774_661_400_000 }, /deliverAt/);
});

test('every option stands for its attribute', () => {
  const composed = compose({ data: 'x', dedupId: 'd', sequence: 7, sequenceKey: 's', sequenceEpoch: 'e' });
  assert.deepEqual(composed.attributes, {
    dedupId: 'd',
    sequence: '7',
    sequenceKey: 's',
    sequenceEpoch: 'e',
  });
});

test('B29: the contract is checked as a whole before anything leaves', () => {
  refuses({ sequence: 1 }, /only with a sequenceKey/);
  refuses({ sequence: 0, sequenceKey: 'k' }, /attribute sequence is "0"/);
  refuses({ sequence: 1.5, sequenceKey: 'k' }, /attribute sequence is "1.5"/);
  refuses({ sequence: 2 ** 53, sequenceKey: 'k' }, /attribute sequence is /);
  refuses({ sequence: 1, sequenceKey: 'k', delay: '1s' }, /attribute sequence is .*without delay/);
  refuses({ cancel: true }, /only together with scheduleKey/);
  refuses({ cancel: false, scheduleKey: 'k' }, /attribute cancel is "false"/);
  refuses({ dedupId: '' }, /attribute dedupId is ""/);
  refuses({ dedupId: 'é'.repeat(513) }, /1026 bytes/);
  refuses({ attributes: { delay: 'soon' } }, /attribute delay is "soon"/);
  refuses({ attributes: { delay: '60' }, delay: '60s' }, /^delay is given twice/);
});

test('leaves room for the attributes that the toolkit adds on the way', () => {
  assert.equal(Object.keys(compose({ data: 'x', attributes: many(94) }).attributes).length, 94);
  refuses({ attributes: many(95) }, /^attributes is 95 of them; accepted: at most 94/);
  // A dedupId of one's own needs no room any more.
  assert.equal(Object.keys(compose({ data: 'x', attributes: many(94), dedupId: 'd' }).attributes).length, 95);
  compose({ data: Buffer.alloc(9_997_952) });
  refuses({ data: Buffer.alloc(9_997_953) }, /9997953 bytes; accepted: at most 9997952 bytes/);
  assert.throws(() => compose({ data: Buffer.alloc(8_000) }, 10_000), /accepted: at most 7952 bytes/);
});

test('a limit that leaves no room beside what the toolkit adds is refused', () => {
  assert.throws(() => compose({ data: 'x' }, 2_048), refusal('maxBytes', /a whole number from 2049$/));
});

test('B10: the caller’s attributes are not written to', () => {
  const attributes = Object.freeze({ a: 'b' });
  assert.deepEqual(compose({ data: 'x', attributes, dedupId: 'd' }).attributes, { a: 'b', dedupId: 'd' });
  assert.deepEqual(attributes, { a: 'b' });
});

test('what is no part of a message is refused, not left out', () => {
  for (const nothing of [undefined, null, 'text', 7, []]) {
    assert.throws(() => compose(nothing as unknown as MessageParts), {
      name: 'PermanentError',
      message: /^the message is of type .*; accepted: an object of data, attributes/,
    });
  }
  refuses({ dedupID: 'typo' }, /^"dedupID" is no part of a message; accepted: .*dedupId/);
  refuses({ attributes: new Map([['a', 'b']]) }, /^attributes is of type object; accepted: .*no Map/);
  refuses({ delay: 1n }, /^delay is 1n; accepted: /);
});

test('a schedule key and a cancel leave as attributes, checked together', () => {
  const replaced = outgoing('t', { data: 'x', scheduleKey: 'k', delay: '15m' });
  assert.deepEqual(replaced.attributes, { scheduleKey: 'k', delay: '900' });
  const cancelled = outgoing('t', { scheduleKey: 'k', cancel: true });
  assert.deepEqual(cancelled.attributes, { scheduleKey: 'k', cancel: 'true' });
  refuses({ data: 'x', scheduleKey: 'k', cancel: true, delay: '1s' }, /attribute cancel is "true"/);
  refuses({ data: 'x', scheduleKey: '' }, /attribute scheduleKey/);
});
