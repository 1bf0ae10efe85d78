import assert from 'node:assert/strict';
import { test } from 'node:test';
import { avro } from './avro.ts';
import type { Encoding } from './language.ts';

const record = (...fields: readonly object[]): string =>
  JSON.stringify({ type: 'record', name: 'R', namespace: 'ns', fields });

const ALL = record(
  { name: 'text', type: 'string' },
  { name: 'maybe', type: ['null', 'int', { type: 'record', name: 'In', fields: [] }], default: null },
  { name: 'big', type: 'long' },
  { name: 'kind', type: { type: 'enum', name: 'Kind', symbols: ['A', 'B'] } },
  { name: 'list', type: { type: 'array', items: 'double' } },
  { name: 'map', type: { type: 'map', values: 'boolean' } },
  { name: 'raw', type: 'bytes' },
  { name: 'two', type: { type: 'fixed', name: 'Two', size: 2 } },
);
const GOOD = {
  text: 'x',
  maybe: { int: 1 },
  big: 1,
  kind: 'A',
  list: [1, 1.5],
  map: { a: true },
  raw: '\u00ff',
  two: 'ab',
};

const judge = (definition: string, encoding: Encoding, data: string | Buffer): string | undefined =>
  avro.parse(definition).violation(encoding, Buffer.from(data as string));
const json = (changes: object): string | undefined =>
  judge(ALL, 'JSON', JSON.stringify({ ...GOOD, ...changes }));

test('takes the JSON encoding of every kind of value', () => {
  assert.equal(json({}), undefined);
  assert.equal(json({ maybe: null }), undefined);
  assert.equal(json({ maybe: { 'ns.In': {} } }), undefined);
  assert.equal(json({ more: 1 }), undefined, 'what the schema does not have is passed over');
});

test('says in the words of the service what does not fit, where those are known', () => {
  const { text: _, ...rest } = GOOD;
  assert.equal(judge(ALL, 'JSON', JSON.stringify(rest)), 'Field was not found in JSON object: text');
  const { maybe: __, ...undecided } = GOOD;
  assert.equal(
    judge(ALL, 'JSON', JSON.stringify(undecided)),
    'Field was not found in JSON object: maybe',
    'a default is for readers',
  );
  assert.equal(
    json({ big: 'x' }),
    'JSON object with type string does not match schema which expected number_integer',
  );
  assert.equal(
    json({ list: ['x'] }),
    'JSON object with type string does not match schema which expected number_float',
  );
  assert.equal(json({ kind: 'C' }), 'Invalid enum index without default value: ns.Kind');
});

test('refuses JSON of another kind', () => {
  for (const changes of [
    { text: 1 },
    { text: null },
    { maybe: 1 },
    { maybe: { string: 'x' } },
    { maybe: { int: 1, 'ns.In': {} } },
    { big: 1.5 },
    { list: {} },
    { map: [] },
    { map: { a: 1 } },
    { raw: [1] },
    { two: 'abc' },
    { kind: 0 },
  ]) {
    assert.notEqual(json(changes), undefined, JSON.stringify(changes));
  }
  assert.match(judge(ALL, 'JSON', '{') ?? '', /not JSON/);
  assert.notEqual(judge(ALL, 'JSON', '[]'), undefined);
});

test('takes binary data to the last byte and no further', () => {
  const small = record({ name: 'a', type: 'string' });
  assert.equal(judge(small, 'BINARY', Buffer.from([2, 0x78])), undefined);
  assert.equal(judge(small, 'BINARY', Buffer.from([2, 0x78, 0])), 'Too much data to parse for schema.');
  assert.notEqual(judge(small, 'BINARY', Buffer.from([4, 0x78])), undefined);
  assert.notEqual(judge(small, 'BINARY', ''), undefined);
});

test('reads longs of 64 bits', () => {
  const long = record({ name: 'a', type: 'long' });
  assert.equal(judge(long, 'BINARY', Buffer.from('feffffffffffffffff01', 'hex')), undefined);
});

test('refuses definitions that are not one type', () => {
  for (const definition of [
    '',
    '{',
    '"string"',
    '["null","string"]',
    '{"type":"nope"}',
    '{"type":"record"}',
  ]) {
    assert.throws(() => avro.parse(definition), Error, definition);
  }
});

test('lets a revision follow that reads, and is read by, the one before', () => {
  const before = record({ name: 'a', type: 'string' });
  const more = (field: object): string => record({ name: 'a', type: 'string' }, { name: 'b', ...field });
  assert.equal(avro.conflict(before, before), undefined);
  assert.equal(avro.conflict(more({ type: 'int', default: 0 }), before), undefined);
  assert.equal(avro.conflict(before, more({ type: 'int', default: 0 })), undefined);
  assert.match(avro.conflict(more({ type: 'int' }), before) ?? '', /b/);
  assert.match(avro.conflict(before, more({ type: 'int' })) ?? '', /b/);
  assert.notEqual(avro.conflict(record({ name: 'a', type: 'int' }), before), undefined);
  // An int is read as a long, and no long as an int.
  assert.notEqual(
    avro.conflict(record({ name: 'a', type: 'long' }), record({ name: 'a', type: 'int' })),
    undefined,
  );
});
