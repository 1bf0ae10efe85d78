import assert from 'node:assert/strict';
import { test } from 'node:test';
import protobuf from 'protobufjs';
import type { Encoding } from './language.ts';
import { protocolBuffer } from './protocol-buffer.ts';

const ALL = `syntax = "proto3";
message Order {
  string id = 1;
  int32 count = 2;
  repeated uint64 parts = 3;
  Kind kind = 4;
  map<string, Line> lines = 5;
  oneof by { string name = 6; bytes token = 7; }
  double price = 8;
  bool gift = 9;
  optional fixed32 crc = 10;
  Order before = 11;
  repeated string two_words = 12;
  enum Kind { NONE = 0; SALE = 1; }
  message Line { int64 cents = 1; }
}`;

const judge = (definition: string, encoding: Encoding, data: string | Uint8Array): string | undefined =>
  protocolBuffer.parse(definition).violation(encoding, Buffer.from(data as string));

const encoded = (definition: string, name: string, message: object): Uint8Array => {
  const type = protobuf.parse(definition, { keepCase: true }).root.lookupType(name);
  return type.encode(type.fromObject(message)).finish();
};

const ORDER = {
  id: 'ä1',
  count: -1,
  parts: ['1', '18446744073709551615'],
  kind: 'SALE',
  lines: { a: { cents: '5' } },
  token: 'AQI=',
  price: 1.5,
  gift: true,
  crc: 7,
  before: { id: 'b' },
  two_words: ['x'],
};

test('takes every kind of field in both encodings', () => {
  assert.equal(judge(ALL, 'BINARY', encoded(ALL, 'Order', ORDER)), undefined);
  assert.equal(judge(ALL, 'JSON', JSON.stringify(ORDER)), undefined);
  assert.equal(judge(ALL, 'BINARY', ''), undefined);
  assert.equal(judge(ALL, 'JSON', '{}'), undefined);
  assert.equal(
    judge(ALL, 'JSON', '{"twoWords":["x"],"count":"12","kind":1,"price":"NaN","before":null}'),
    undefined,
  );
});

test('takes lists of numbers packed and one by one', () => {
  assert.equal(judge(ALL, 'BINARY', Buffer.from('18011802', 'hex')), undefined);
  assert.equal(judge(ALL, 'BINARY', Buffer.from('1a020102', 'hex')), undefined);
});

test('refuses bytes that a reader of Protocol Buffers would pass over', () => {
  const cases: readonly (readonly [hex: string, words: RegExp])[] = [
    ['980601', /unknown field, number 99/],
    ['0801', /field id, number 1, has the wire type 0/],
    ['5a039a0601', /ends behind|unknown/],
    ['2a050a016112029801', /./],
    ['0a0161ff', /./],
    ['0a0561', /ends behind/],
    ['0a01ff', /./],
    ['1a0180', /./],
    ['0b', /wire type 3/],
    ['00', /unknown field, number 0/],
  ];
  for (const [hex, words] of cases) {
    assert.match(judge(ALL, 'BINARY', Buffer.from(hex, 'hex')) ?? 'it fits', words, hex);
    assert.notEqual(judge(ALL, 'BINARY', Buffer.from(hex, 'hex')), undefined, hex);
  }
});

test('refuses JSON that is not of the message', () => {
  const cases = [
    ['{"nope":1}', /no field nope/],
    ['[]', /not an object/],
    ['x', /not JSON/],
    ['{"id":1}', /id is not string/],
    ['{"count":1.5}', /count is not int32/],
    ['{"count":2147483648}', /count is not int32/],
    ['{"parts":[-1]}', /parts\[0\] is not uint64/],
    ['{"parts":1}', /parts is not an array/],
    ['{"kind":"OTHER"}', /not a value of Kind/],
    ['{"lines":{"a":{"cents":true}}}', /cents is not int64/],
    ['{"name":"a","token":"AQ=="}', /two fields of by/],
    ['{"twoWords":[],"two_words":[]}', /twice/],
    ['{"token":"*"}', /token is not bytes/],
    ['{"gift":"true"}', /gift is not bool/],
    ['{"price":"much"}', /price is not double/],
  ] as const;
  for (const [json, words] of cases) assert.match(judge(ALL, 'JSON', json) ?? 'it fits', words, json);
});

test('knows required fields and groups of proto2', () => {
  const definition =
    'syntax = "proto2"; message R { required string a = 1; optional group G = 2 { optional int32 b = 1; } }';
  assert.equal(judge(definition, 'BINARY', Buffer.from('0a0178', 'hex')), undefined);
  assert.equal(judge(definition, 'BINARY', Buffer.from('0a017813080114', 'hex')), undefined);
  assert.match(judge(definition, 'BINARY', Buffer.from('0a0178130801', 'hex')) ?? '', /no end/);
  assert.match(
    judge(definition, 'BINARY', Buffer.from('0a017813100114', 'hex')) ?? '',
    /unknown field, number 2/,
  );
  assert.match(judge(definition, 'BINARY', '') ?? '', /a/);
  assert.match(judge(definition, 'JSON', '{}') ?? '', /required field a/);
});

test('reads an edition, and a package around the one message', () => {
  assert.equal(judge('edition = "2023"; message R { string a = 1; }', 'JSON', '{"a":"x"}'), undefined);
  assert.equal(
    judge('syntax = "proto3"; package a.b; message R { string a = 1; }', 'JSON', '{"a":"x"}'),
    undefined,
  );
});

test('refuses definitions that are not one message', () => {
  for (const [definition, words] of [
    ['', /one type/],
    ['syntax = "proto3";', /one type/],
    ['syntax = "proto3"; message A {} message B {}', /one type/],
    ['syntax = "proto3"; message A {} enum B { C = 0; }', /one type/],
    ['syntax = "proto3"; enum B { C = 0; }', /one type/],
    ['syntax = "proto3"; import "google/protobuf/timestamp.proto"; message A {}', /imports/],
    ['syntax = "proto3"; message A { B b = 1; }', /B/],
    ['syntax = "proto3"; message A { string a = 1; string b = 1; }', /duplicate/],
    ['message {', /./],
  ] as const) {
    assert.throws(() => protocolBuffer.parse(definition), words, definition);
  }
});

test('lets a revision add and remove fields, and change none', () => {
  const r = (fields: string): string => `syntax = "proto2"; message R { ${fields} }`;
  const before = r('optional string a = 1; optional M m = 2; message M { optional int32 x = 1; }');
  const nested = (type: string): string => r(`optional M m = 2; message M { optional ${type} x = 1; }`);
  assert.equal(protocolBuffer.conflict(before, before), undefined);
  assert.equal(protocolBuffer.conflict(r('optional string a = 1; repeated int32 b = 3;'), before), undefined);
  assert.equal(protocolBuffer.conflict(nested('int32'), before), undefined);
  assert.equal(
    protocolBuffer.conflict(r('optional int64 a = 1;'), before),
    'a of type int64 is not compatible with a of type string.',
  );
  assert.match(protocolBuffer.conflict(r('optional string b = 1;'), before) ?? '', /b of type string/);
  assert.match(protocolBuffer.conflict(r('repeated string a = 1;'), before) ?? '', /repeated string/);
  assert.match(protocolBuffer.conflict(r('required string c = 4;'), before) ?? '', /c is required/);
  assert.match(protocolBuffer.conflict(before, r('required string c = 4;')) ?? '', /c is required/);
  assert.match(protocolBuffer.conflict(nested('string'), before) ?? '', /x of type string/);
});
