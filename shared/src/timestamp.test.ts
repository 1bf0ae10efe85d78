import assert from 'node:assert/strict';
import test from 'node:test';
import { parseTimestamp } from './timestamp.ts';

test('reads Z and offsets as the same time', () => {
  const instant = Date.UTC(2026, 0, 2, 3, 4, 5);
  for (const text of ['2026-01-02T03:04:05Z', '2026-01-02t03:04:05z', '2026-01-02T05:34:05+02:30']) {
    assert.equal(parseTimestamp(text), instant, text);
  }
  assert.equal(parseTimestamp('2026-01-01T22:04:05-05:00'), instant);
});

test('rounds what is finer than a millisecond up, never early', () => {
  const second = Date.UTC(2026, 0, 2, 3, 4, 5);
  for (const [fraction, milliseconds] of [
    ['.6', 600],
    ['.678', 678],
    ['.678000000', 678],
    ['.678000001', 679],
    ['.000000001', 1],
    ['.999999999', 1_000],
  ] as const) {
    assert.equal(parseTimestamp(`2026-01-02T03:04:05${fraction}Z`), second + milliseconds, fraction);
  }
});

test('B41: an hour that a zone skips exists with its offset, and is refused without one', () => {
  assert.equal(parseTimestamp('2026-03-29T02:30:00'), undefined);
  assert.equal(parseTimestamp('2026-03-29T02:30:00+01:00'), Date.UTC(2026, 2, 29, 1, 30));
  assert.equal(parseTimestamp('2026-10-25T02:30:00Z'), Date.UTC(2026, 9, 25, 2, 30));
});

test('a leap second is the start of the next minute', () => {
  assert.equal(parseTimestamp('2016-12-31T23:59:60Z'), Date.UTC(2017, 0, 1));
});

test('reads the first and the last year that RFC 3339 can write', () => {
  assert.equal(parseTimestamp('9999-12-31T23:59:59Z'), Date.UTC(9999, 11, 31, 23, 59, 59));
  assert.equal(
    new Date(parseTimestamp('0001-01-01T00:00:00Z') ?? 0).toISOString(),
    '0001-01-01T00:00:00.000Z',
  );
});

test('refuses what is not RFC 3339, and days that do not exist', () => {
  for (const text of [
    '',
    'now',
    '1774661400000',
    '2026-01-02',
    '2026-01-02 03:04:05Z',
    '2026-01-02T03:04Z',
    '2026-1-2T03:04:05Z',
    '2026-01-02T03:04:05.Z',
    '2026-01-02T03:04:05,5Z',
    '2026-01-02T03:04:05+0100',
    '2026-01-02T03:04:05+24:00',
    '2026-01-02T24:00:00Z',
    '2026-01-02T03:60:00Z',
    '2026-01-02T03:04:61Z',
    '2026-02-29T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-13-10T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-04-31T00:00:00Z',
    ' 2026-01-02T03:04:05Z',
    '2026-01-02T03:04:05Z\n',
    '+002026-01-02T03:04:05Z',
  ]) {
    assert.equal(parseTimestamp(text), undefined, JSON.stringify(text));
  }
});
