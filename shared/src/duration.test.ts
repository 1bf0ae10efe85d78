import assert from 'node:assert/strict';
import test from 'node:test';
import { type Duration, toMilliseconds } from './duration.ts';
import { refusal } from './testing/refusal.ts';

test('reads a whole number of each unit', () => {
  const read = ['0s', '1500ms', '30s', '15m', '2h', '8d'].map((text) => toMilliseconds(text as Duration));
  assert.deepEqual(read, [0, 1_500, 30_000, 900_000, 7_200_000, 691_200_000]);
});

test('refuses everything else, naming the option, the value and what is accepted', () => {
  for (const text of [
    '',
    '30',
    's',
    '1.5s',
    '-1s',
    '+1s',
    '1e3s',
    '01s',
    ' 1s',
    '1s ',
    '1S',
    '1 s',
    '1w',
    'PT1H',
    '0x1s',
  ]) {
    assert.throws(
      () => toMilliseconds(text as Duration, 'lease'),
      (error: Error) => {
        refusal('lease')(error);
        assert.ok(error.message.includes(JSON.stringify(text)) && error.message.includes('"30s"'));
        return true;
      },
      text,
    );
  }
});

test('refuses a duration that has no exact number of milliseconds', () => {
  assert.equal(toMilliseconds('100000000d'), 8_640_000_000_000_000);
  assert.throws(() => toMilliseconds('999999999999d'), refusal('duration'));
});

test('refuses a number from JavaScript, whose unit is not known', () => {
  assert.throws(() => toMilliseconds(30 as unknown as Duration), refusal('duration'));
});
