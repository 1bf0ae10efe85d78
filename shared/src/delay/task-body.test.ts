import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PermanentError } from '../errors.ts';
import { type Delayed, decodeDelayed, encodeDelayed, taskFor } from './task-body.ts';

const delayed: Delayed = {
  key: 'k',
  topic: 'projects/p/topics/t',
  instantMs: 1_900_000_000_123,
  scheduleTimeMs: 1_900_000_000_000,
  attempt: 0,
  hop: 3,
  message: {
    id: '17',
    data: Buffer.from([0x00, 0xff, 0xfe, 0x80, 0xc3, 0x28]),
    attributes: { name: 'Łódź 日本 🚀', 'quote"\n': '\u0000' },
    orderingKey: 'k1',
    publishTime: new Date(1_800_000_000_000),
    subscription: 'projects/p/subscriptions/s',
  },
};

test('B25: every byte and every attribute comes back, whatever they are', () => {
  for (const data of [
    Buffer.from([0x00, 0xff, 0xfe, 0x80, 0xc3, 0x28]),
    Buffer.from('{"name":"Łódź 日本 🚀"}'),
    Buffer.from('{"tweet":1524831183200260097}'),
    Buffer.alloc(0),
    Buffer.from([0x1f, 0x8b, 0x08, 0x00]),
  ]) {
    const given = { ...delayed, message: { ...delayed.message, data } };
    assert.deepEqual(decodeDelayed(encodeDelayed(given)), given);
  }
});

test('a view into a larger buffer is read as the view', () => {
  const bytes = encodeDelayed(delayed);
  const padded = Buffer.concat([Buffer.alloc(7, 9), bytes]);
  assert.deepEqual(
    decodeDelayed(new Uint8Array(padded.buffer, padded.byteOffset + 7, bytes.length)),
    delayed,
  );
});

test('B39: bytes of another form are a permanent error', () => {
  const good = encodeDelayed(delayed);
  const withHeader = (header: string): Buffer => {
    const json = Buffer.from(header);
    const prefix = Buffer.from([1, 0, 0, 0, json.length]);
    return Buffer.concat([prefix, json, good.subarray(5 + good.readUInt32BE(1))]);
  };
  const { message: _message, ...header } = delayed;
  const bad: Record<string, Buffer> = {
    'a brace': Buffer.from('{'),
    nothing: Buffer.alloc(0),
    'another version': Buffer.concat([Buffer.from([2]), good.subarray(1)]),
    'cut in the header': good.subarray(0, 20),
    'cut in the message': good.subarray(0, 5 + good.readUInt32BE(1) + 3),
    'no JSON': withHeader('{'),
    null: withHeader('null'),
    'no topic': withHeader(JSON.stringify({ ...header, topic: undefined })),
    'topic of another type': withHeader(JSON.stringify({ ...header, topic: 7 })),
    'no instant': withHeader(JSON.stringify({ ...header, instantMs: null })),
    'an instant as text': withHeader(JSON.stringify({ ...header, instantMs: '5' })),
  };
  for (const [name, bytes] of Object.entries(bad)) {
    assert.throws(() => decodeDelayed(bytes), PermanentError, name);
  }
});

test('a stored message without an ID, attributes or a publish time is a permanent error', () => {
  for (const change of [
    { id: undefined },
    { attributes: null },
    { attributes: [] },
    { orderingKey: 7 },
    { attributes: { dedupId: 7 } },
    { publishTime: new Date(NaN) },
  ]) {
    const message = { ...delayed.message, ...change } as unknown as Delayed['message'];
    assert.throws(
      () => decodeDelayed(encodeDelayed({ ...delayed, message })),
      PermanentError,
      JSON.stringify(change),
    );
  }
});

test('B20: a name is legal, the same for a repeat, and another for every other key, topic, instant, attempt and hop', () => {
  const { name } = taskFor(delayed);
  assert.match(name, /^[A-Za-z0-9_-]{1,500}$/);
  assert.equal(taskFor({ ...delayed, scheduleTimeMs: 1 }).name, name);
  const others = [
    { key: 'orders/42 ü' },
    { topic: 'projects/p/topics/u' },
    { instantMs: delayed.instantMs + 1 },
    { attempt: 1 },
    { hop: 4 },
  ].map((change) => taskFor({ ...delayed, ...change }).name);
  assert.equal(new Set([name, ...others]).size, others.length + 1);
  for (const other of others) assert.match(other, /^[A-Za-z0-9_-]{1,500}$/);
});

test('B20: names of messages that follow each other have spread beginnings', () => {
  const beginnings = Array.from({ length: 64 }, (_, n) => taskFor({ ...delayed, key: String(n) }).name[0]);
  assert.ok(new Set(beginnings).size > 20);
});
