import assert from 'node:assert/strict';
import test from 'node:test';
import { ATTRIBUTE, parseDeliveryOptions, type DeliveryOptions, without } from './attributes.ts';

const PUBLISHED = Date.UTC(2026, 0, 2);
const deliveryOptions = (attributes: Record<string, string>, orderingKey?: string): DeliveryOptions =>
  parseDeliveryOptions({
    attributes,
    publishTime: new Date(PUBLISHED),
    ...(orderingKey !== undefined && { orderingKey }),
  });
const refuses = (attributes: Record<string, string>, name: string, orderingKey?: string): void =>
  assert.throws(
    () => deliveryOptions(attributes, orderingKey),
    (error: Error & { code?: string }) => {
      assert.equal(error.name, 'PermanentError');
      assert.equal(error.code, 'INVALID_ATTRIBUTE');
      assert.match(
        error.message,
        new RegExp(`^attribute ${name} is .*; accepted: `),
        JSON.stringify(attributes),
      );
      return true;
    },
    JSON.stringify(attributes),
  );

test('a message without attributes of the contract asks for nothing', () => {
  assert.deepEqual(deliveryOptions({}), {});
  assert.deepEqual(deliveryOptions({ tenant: 'a', DELAY: 'x', dedupid: '' }, 'k1'), {});
});

test('B41: a delay is whole seconds in digits, counted from the publish time', () => {
  assert.deepEqual(deliveryOptions({ delay: '60' }), { deliverAtMs: PUBLISHED + 60_000 });
  assert.deepEqual(deliveryOptions({ delay: '0' }), {});
  assert.deepEqual(deliveryOptions({ delay: '60000' }), { deliverAtMs: PUBLISHED + 60_000_000 });
  assert.deepEqual(deliveryOptions({ delay: '315360000' }), { deliverAtMs: PUBLISHED + 315_360_000_000 });
});

test('B41: every other delay is refused, and its meaning not guessed at', () => {
  for (const delay of [
    '-1',
    '-0',
    '-1767225600001',
    '1.5',
    '1e3',
    '0x10',
    ' 60 ',
    '60 ',
    '60\n',
    '',
    'NaN',
    'Infinity',
    '60s',
    'PT1H',
    '+5',
    '00',
    '01',
    '1_000',
    '１',
    '315360001',
    '999999999',
    '1774661400000',
    '9'.repeat(40),
  ]) {
    refuses({ delay }, 'delay');
  }
});

test('B41: a due time has a zone, and may be past or ten years ahead', () => {
  const at = (text: string): number | undefined => deliveryOptions({ deliverAt: text }).deliverAtMs;
  assert.equal(at('2026-03-29T02:30:00+01:00'), Date.UTC(2026, 2, 29, 1, 30));
  assert.equal(at('2026-10-25T02:30:00Z'), Date.UTC(2026, 9, 25, 2, 30));
  assert.equal(at('1969-07-20T20:17:40Z'), Date.UTC(1969, 6, 20, 20, 17, 40));
  assert.equal(at('2026-01-02T00:00:01.0000001Z'), PUBLISHED + 1_001);
  assert.equal(at(new Date(PUBLISHED + 315_360_000_000).toISOString()), PUBLISHED + 315_360_000_000);
  refuses({ deliverAt: new Date(PUBLISHED + 315_360_000_001).toISOString() }, 'deliverAt');
  refuses({ deliverAt: '9999-12-31T23:59:59Z' }, 'deliverAt');
  for (const text of ['2026-03-29T02:30:00', '1774661400', 'tomorrow', '', '2026-02-30T00:00:00Z']) {
    refuses({ deliverAt: text }, 'deliverAt');
  }
});

test('B41: gives the same time in every zone of the machine', () => {
  const before = process.env['TZ'];
  try {
    const times = ['UTC', 'America/New_York', 'Asia/Kolkata'].map((zone) => {
      process.env['TZ'] = zone;
      return deliveryOptions({ deliverAt: '2026-03-29T02:30:00+01:00' }).deliverAtMs;
    });
    assert.equal(new Set(times).size, 1);
  } finally {
    if (before === undefined) delete process.env['TZ'];
    else process.env['TZ'] = before;
  }
});

test('one time, not two', () => {
  refuses({ delay: '60', deliverAt: '2026-01-02T00:01:00Z' }, 'deliverAt');
  refuses({ delay: '0', deliverAt: '2026-01-02T00:01:00Z' }, 'deliverAt');
});

test('keys are 1 to 1024 bytes', () => {
  const longest = 'é'.repeat(512);
  assert.deepEqual(deliveryOptions({ dedupId: longest, scheduleKey: 'k' }), {
    dedupId: longest,
    scheduleKey: 'k',
  });
  for (const name of ['dedupId', 'scheduleKey']) {
    refuses({ [name]: '' }, name);
    refuses({ [name]: `${longest}x` }, name);
  }
  refuses({ sequence: '1', sequenceKey: '' }, 'sequenceKey');
  refuses({ sequence: '1', sequenceKey: 'k', sequenceEpoch: '' }, 'sequenceEpoch');
});

test('a cancellation names what it cancels, and says nothing else', () => {
  assert.deepEqual(deliveryOptions({ cancel: 'true', scheduleKey: 'k' }), { cancel: true, scheduleKey: 'k' });
  for (const cancel of ['false', 'True', '1', '']) refuses({ cancel, scheduleKey: 'k' }, 'cancel');
  refuses({ cancel: 'true' }, 'cancel');
  refuses({ cancel: 'true', scheduleKey: 'k', delay: '0' }, 'cancel');
  refuses({ cancel: 'true', scheduleKey: 'k', deliverAt: '2026-01-02T00:01:00Z' }, 'cancel');
});

test('a sequence number counts from 1 up to 2^53 - 1', () => {
  const number = (text: string): number | undefined =>
    deliveryOptions({ sequence: text, sequenceKey: 'k' }).sequence?.number;
  assert.equal(number('1'), 1);
  assert.equal(number('9007199254740991'), Number.MAX_SAFE_INTEGER);
  for (const sequence of ['0', '-1', '01', '1.0', '1e3', '', ' 1', '9007199254740992', '9'.repeat(17)]) {
    refuses({ sequence, sequenceKey: 'k' }, 'sequence');
  }
});

test('a sequence belongs to a key: the named one, else the ordering key', () => {
  assert.deepEqual(
    deliveryOptions({ sequence: '2', sequenceKey: 'k', sequenceEpoch: 'e' }, 'other').sequence,
    {
      number: 2,
      key: 'k',
      epoch: 'e',
    },
  );
  assert.deepEqual(deliveryOptions({ sequence: '2' }, 'k1').sequence, { number: 2, key: 'k1' });
  refuses({ sequence: '2' }, 'sequence');
  refuses({ sequence: '2' }, 'sequence', '');
  refuses({ sequenceKey: 'k' }, 'sequenceKey');
  refuses({ sequenceEpoch: 'e' }, 'sequenceEpoch', 'k1');
});

test('B29: a member of a stream cannot be delayed', () => {
  for (const added of [
    { delay: '10' },
    { delay: '0' },
    { deliverAt: '2026-01-02T00:01:00Z' },
    { scheduleKey: 's' },
  ]) {
    refuses({ sequence: '1', sequenceKey: 'k', ...added }, 'sequence');
  }
});

test('an error stays short, whatever the value is', () => {
  assert.throws(
    () => deliveryOptions({ delay: '🚀'.repeat(500) }),
    (error: Error) => error.message.length < 400 && error.message.isWellFormed(),
  );
});

test('without() leaves the rest as it is, a key named __proto__ too', () => {
  const attributes = JSON.parse('{"__proto__":"x","delay":"60","a":"b"}') as Record<string, string>;
  assert.deepEqual(Object.entries(without(attributes, [ATTRIBUTE.delay])), [
    ['__proto__', 'x'],
    ['a', 'b'],
  ]);
});
