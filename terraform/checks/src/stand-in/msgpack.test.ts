/**
 * The values of Terraform's protocol, written and read again, and as other writers write them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode, encode, UNKNOWN, type Value } from './msgpack.ts';

test('what is written is read as it was', () => {
  const value: Value = { a: [null, true, false, -1, 3.5, 70_000, 'ü'.repeat(300)], b: { c: UNKNOWN }, d: [] };
  assert.deepEqual(decode(encode(value)), value);
});

test('the short forms of other writers are read', () => {
  const map = Buffer.from([0x82, 0xa1, 0x61, 0x7f, 0xa1, 0x62, 0x93, 0xff, 0xcd, 0x01, 0x00, 0xd0, 0x80]);
  assert.deepEqual(decode(map), { a: 127, b: [-1, 256, -128] });
  assert.deepEqual(decode(Buffer.from([0xc7, 0x02, 0x0c, 0x81, 0x00])), UNKNOWN);
});

test('bytes that end early, and kinds that Terraform does not send, are errors', () => {
  assert.throws(() => decode(Buffer.from([0xd9, 0x05, 0x61])), RangeError);
  assert.throws(() => decode(Buffer.from([0xc1])), /0xc1/);
});
