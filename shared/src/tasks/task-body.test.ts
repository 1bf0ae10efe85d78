import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PermanentError } from '../errors.ts';
import { type Delayed, decodeDelayed, deliveryOf, encodeDelayed, taskFor } from './task-body.ts';

const delayed: Delayed = {
  key: 'k',
  topic: 'projects/p/topics/t',
  dueTimeMs: 1_900_000_000_123,
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
    'another version': Buffer.concat([Buffer.from([3]), good.subarray(1)]),
    'cut in the header': good.subarray(0, 20),
    'cut in the message': good.subarray(0, 5 + good.readUInt32BE(1) + 3),
    'no JSON': withHeader('{'),
    null: withHeader('null'),
    'no topic': withHeader(JSON.stringify({ ...header, topic: undefined })),
    'topic of another type': withHeader(JSON.stringify({ ...header, topic: 7 })),
    'no due time': withHeader(JSON.stringify({ ...header, dueTimeMs: null })),
    'a due time as text': withHeader(JSON.stringify({ ...header, dueTimeMs: '5' })),
  };
  for (const [name, bytes] of Object.entries(bad)) {
    assert.throws(() => decodeDelayed(bytes), PermanentError, name);
  }
});

test('a task says which ledger entry decides about it, and which payload holds its message', () => {
  const entry = { id: 'e', generation: 'g' };
  assert.deepEqual(decodeDelayed(encodeDelayed({ ...delayed, entry })), { ...delayed, entry });
  const payload = { id: 'i', bytes: 7, digest: 'd' };
  const envelope = { ...delayed.message, data: Buffer.alloc(0) };
  assert.deepEqual(decodeDelayed(encodeDelayed({ ...delayed, entry, payload })), {
    ...delayed,
    entry,
    payload,
    message: envelope,
  });
});

test('a message without an entry or a payload is written as before, for a republisher of before', () => {
  const { message: _message, ...header } = delayed;
  const json = Buffer.from(JSON.stringify(header));
  const bytes = encodeDelayed(delayed);
  assert.equal(bytes[0], 1);
  assert.deepEqual(bytes.subarray(5, 5 + json.length), json);
  assert.equal(encodeDelayed({ ...delayed, entry: { id: 'e', generation: 'g' } })[0], 2);
});

test('an envelope leaves out attributes that are many, and keeps those that say what the message is', () => {
  const attributes = { dedupId: 'd', deliveredAfter: 't', traceparent: 'p', large: 'é'.repeat(4_100) };
  const payload = { id: 'i', bytes: 7, digest: 'd' };
  const body = encodeDelayed({ ...delayed, payload, message: { ...delayed.message, attributes } });
  const { large: _large, ...kept } = attributes;
  assert.deepEqual(decodeDelayed(body).message.attributes, kept);
  assert.deepEqual(encodeDelayed(decodeDelayed(body)), body);
});

test('a hash that begins with underscores or ends with a hyphen is a name', () => {
  const id = `__${'x'.repeat(40)}-`;
  const named = { ...delayed, entry: { id, generation: 'g' }, payload: { id, bytes: 7, digest: 'd' } };
  const { entry, payload } = decodeDelayed(encodeDelayed(named));
  assert.deepEqual([entry?.id, payload?.id], [id, id]);
});

test('B39: an entry or a payload that is none is a permanent error', () => {
  const payload = { id: 'i', bytes: 7, digest: 'd' };
  const entry = { id: 'e', generation: 'g' };
  for (const change of [
    { entry: null },
    { entry: 'e' },
    { entry: { ...entry, id: '' } },
    { entry: { id: 'e' } },
    // A name that the store would not take is no name of ours, and would be tried again for ever.
    ...['a/b', '.', '..', '__e__', 'x'.repeat(501)].map((id) => ({ entry: { ...entry, id } })),
    ...['a/b', '..', '__p__'].map((id) => ({ payload: { ...payload, id } })),
    { payload: 7 },
    { payload: { ...payload, bytes: -1 } },
    { payload: { ...payload, bytes: 1.5 } },
    { payload: { ...payload, digest: undefined } },
  ]) {
    const body = encodeDelayed({ ...delayed, ...change } as unknown as Delayed);
    assert.throws(() => decodeDelayed(body), { code: 'UNREADABLE_TASK' }, JSON.stringify(change));
  }
});

test('a delivery is the same at every hop and due time, and another for every key, topic, attempt and generation', () => {
  const delivery = deliveryOf(delayed);
  assert.equal(deliveryOf({ ...delayed, hop: 9, dueTimeMs: 1, scheduleTimeMs: 2 }), delivery);
  const others = [
    { key: 'l' },
    { topic: 'projects/p/topics/u' },
    { attempt: 1 },
    { entry: { id: 'e', generation: 'g' } },
    { entry: { id: 'e', generation: 'h' } },
  ].map((change) => deliveryOf({ ...delayed, ...change }));
  assert.equal(new Set([delivery, ...others]).size, others.length + 1);
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

test('B20: a name is legal, the same for a repeat, and another for every other key, topic, due time, attempt and hop', () => {
  const { name } = taskFor(delayed);
  assert.match(name, /^[A-Za-z0-9_-]{1,500}$/);
  assert.equal(taskFor({ ...delayed, scheduleTimeMs: 1 }).name, name);
  const others = [
    { key: 'orders/42 ü' },
    { topic: 'projects/p/topics/u' },
    { dueTimeMs: delayed.dueTimeMs + 1 },
    { attempt: 1 },
    { hop: 4 },
    { entry: { id: 'e', generation: 'g' } },
    { entry: { id: 'e', generation: 'h' } },
  ].map((change) => taskFor({ ...delayed, ...change }).name);
  assert.equal(new Set([name, ...others]).size, others.length + 1);
  for (const other of others) assert.match(other, /^[A-Za-z0-9_-]{1,500}$/);
});

test('B20: names of messages that follow each other have spread beginnings', () => {
  const beginnings = Array.from({ length: 64 }, (_, n) => taskFor({ ...delayed, key: String(n) }).name[0]);
  assert.ok(new Set(beginnings).size > 20);
});
