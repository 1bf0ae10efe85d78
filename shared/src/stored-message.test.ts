import assert from 'node:assert/strict';
import test from 'node:test';
import type { Message } from './message.ts';
import { decodeMessage, encodeMessage } from './stored-message.ts';

const BIN = Buffer.from('00fffe80c328', 'hex');
const message: Message = {
  id: '42',
  data: BIN,
  attributes: { name: 'Łódź 日本 🚀', empty: '' },
  orderingKey: 'k1',
  publishTime: new Date(Date.UTC(2026, 0, 2, 3, 4, 5, 678)),
  subscription: 'projects/p/subscriptions/s',
};
const plain: Message = { id: '7', data: Buffer.alloc(0), attributes: {}, publishTime: new Date(0) };

test('B25: a message comes back with every byte and every field', () => {
  const decoded = decodeMessage(encodeMessage(message));
  assert.deepEqual(decoded, message);
  assert.equal(decoded.data.toString('base64'), 'AP/+gMMo');
});

test('absent fields stay absent, and data may be empty', () => {
  const decoded = decodeMessage(encodeMessage(plain));
  assert.deepEqual(decoded, plain);
  assert.deepEqual(Object.keys(decoded).toSorted(), ['attributes', 'data', 'id', 'publishTime']);
});

test('leaves the delivery attempt out: it belongs to a delivery', () => {
  assert.deepEqual(decodeMessage(encodeMessage({ ...message, deliveryAttempt: 3 })), message);
});

test('reads from the middle of a larger buffer, as a store may answer', () => {
  const encoded = encodeMessage(message);
  const padded = Buffer.concat([Buffer.from('xx'), encoded, Buffer.from('yy')]);
  assert.deepEqual(decodeMessage(new Uint8Array(padded).subarray(2, 2 + encoded.length)), message);
});

test('keeps an attribute called __proto__, and half a surrogate pair', () => {
  const attributes = JSON.parse('{"__proto__":"x","half":"\\ud800"}') as Record<string, string>;
  const decoded = decodeMessage(encodeMessage({ ...plain, attributes }));
  assert.deepEqual(Object.entries(decoded.attributes), [
    ['__proto__', 'x'],
    ['half', '\ud800'],
  ]);
});

test('bytes of another format are a permanent error, never a crash', () => {
  const wrap = (json: string): Buffer => {
    const encoded = encodeMessage(plain);
    encoded.writeUInt32BE(json.length, 1);
    return Buffer.concat([encoded.subarray(0, 5), Buffer.from(json)]);
  };
  const encoded = encodeMessage(message);
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.from([1]),
    Buffer.from('{"id":"42"}'),
    encoded.subarray(0, 20),
    wrap('{'),
    wrap('null'),
    wrap('[]'),
    wrap('{"id":"1","attributes":{}}'),
    wrap('{"id":1,"publishTimeMs":0,"attributes":{}}'),
    wrap('{"id":"1","publishTimeMs":0,"attributes":null}'),
  ]) {
    assert.throws(() => decodeMessage(bytes), { name: 'PermanentError', code: 'UNREADABLE_MESSAGE' });
  }
});
