import assert from 'node:assert/strict';
import test from 'node:test';
import { PermanentError } from './errors.ts';
import { type Attributes, checkOutgoing, checkTypes, messageBytes, type OutgoingMessage } from './message.ts';

const with_ = (parts: Record<string, unknown>): OutgoingMessage =>
  ({ topic: 't', data: Buffer.from('x'), attributes: {}, ...parts }) as OutgoingMessage;
const refuses = (parts: Record<string, unknown>, code: string, text: RegExp): void =>
  assert.throws(
    () => checkOutgoing(with_(parts)),
    (error: Error & { code?: string }) => {
      assert.equal(error.name, 'PermanentError');
      assert.equal(error.code, code, error.message);
      assert.match(error.message, text);
      return true;
    },
  );
const many = (count: number): Attributes =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));

test('B27: limits are bytes and not characters', () => {
  checkOutgoing(with_({ attributes: { a: 'é'.repeat(512) } }));
  refuses({ attributes: { a: 'é'.repeat(513) } }, 'LIMIT_EXCEEDED', /"a" has 1026 bytes.*1024 bytes/);
  refuses({ attributes: { a: '日'.repeat(342) } }, 'LIMIT_EXCEEDED', /"a" has 1026 bytes.*1024 bytes/);
  checkOutgoing(with_({ attributes: { ['k'.repeat(256)]: 'v' } }));
  refuses({ attributes: { ['k'.repeat(257)]: 'v' } }, 'LIMIT_EXCEEDED', /257 bytes.*256 bytes/);
  refuses({ attributes: { ['é'.repeat(129)]: 'v' } }, 'LIMIT_EXCEEDED', /258 bytes.*256 bytes/);
  checkOutgoing(with_({ orderingKey: 'k'.repeat(1_024) }));
  refuses({ orderingKey: 'k'.repeat(1_025) }, 'LIMIT_EXCEEDED', /orderingKey has 1025 bytes.*1024 bytes/);
});

test('B27: data and attributes count together', () => {
  checkOutgoing(with_({ data: Buffer.alloc(10_000_000) }));
  checkOutgoing(with_({ data: Buffer.alloc(9_999_998), attributes: { a: 'b' } }));
  refuses(
    { data: Buffer.alloc(9_999_999), attributes: { a: 'b' } },
    'LIMIT_EXCEEDED',
    /10000001 bytes.*10000000 bytes/,
  );
  refuses({ data: Buffer.alloc(10_485_760), attributes: { a: 'b' } }, 'LIMIT_EXCEEDED', /10485762 bytes/);
  checkOutgoing(with_({ data: Buffer.alloc(10_485_760) }), 10_485_760);
  assert.equal(messageBytes({ data: Buffer.from('日'), attributes: { ü: 'é' }, orderingKey: 'ł' }), 9);
});

test('takes a hundred attributes and not one more', () => {
  checkOutgoing(with_({ attributes: many(100) }));
  refuses({ attributes: many(101) }, 'LIMIT_EXCEEDED', /101 attributes.*100/);
});

test('B50: names the key and the type of a value that is no string', () => {
  const values: [unknown, string][] = [
    [1, 'number'],
    [undefined, 'undefined'],
    [null, 'null'],
    [{}, 'object'],
    [true, 'boolean'],
  ];
  for (const [value, type] of values) {
    refuses({ attributes: { n: value } }, 'INVALID_ATTRIBUTE', new RegExp(`"n" is of type ${type}`));
  }
  refuses({ attributes: { '': 'x' } }, 'INVALID_ATTRIBUTE', /empty key/);
  refuses({ attributes: { half: '\ud800' } }, 'INVALID_ATTRIBUTE', /"half" holds half a surrogate pair/);
  refuses({ attributes: { '\udc00': 'x' } }, 'INVALID_ATTRIBUTE', /half a surrogate pair/);
  refuses({ attributes: null }, 'INVALID_ATTRIBUTE', /attributes is of type null/);
  refuses({ attributes: undefined }, 'INVALID_ATTRIBUTE', /attributes is of type undefined/);
});

test('B50: takes any bytes as data, and nothing else', () => {
  checkOutgoing(with_({ data: new Uint8Array([1]) }));
  checkOutgoing(with_({ data: Buffer.from([1]) }));
  const values: [unknown, string][] = [
    ['text', 'string'],
    [{}, 'object'],
    [null, 'null'],
    [undefined, 'undefined'],
  ];
  for (const [data, type] of values) {
    refuses({ data }, 'INVALID_MESSAGE', new RegExp(`data is of type ${type}`));
  }
});

test('B50: an empty message is refused, one of attributes alone is not', () => {
  const data = Buffer.alloc(0);
  refuses({ data }, 'EMPTY_MESSAGE', /neither data nor attributes/);
  refuses({ data, orderingKey: 'k' }, 'EMPTY_MESSAGE', /neither data nor attributes/);
  checkOutgoing(with_({ data, attributes: { type: 'ping' } }));
});

test('B01: reserved keys are refused in any case, and near misses are not', () => {
  for (const key of ['goog', 'googclient_x', 'GoogFoo', 'GOOGX']) {
    refuses({ attributes: { [key]: 'x' } }, 'RESERVED_ATTRIBUTE', new RegExp(key));
  }
  checkOutgoing(with_({ attributes: { xgoog: 'x', 'go-og': 'x' } }));
});

test('an ordering key is text', () => {
  refuses({ orderingKey: 7 }, 'INVALID_MESSAGE', /orderingKey/);
  refuses({ orderingKey: '\ud800' }, 'INVALID_MESSAGE', /orderingKey/);
  checkOutgoing(with_({ orderingKey: '' }));
});

test('a topic has a name', () => {
  for (const topic of ['', undefined, 7]) refuses({ topic }, 'INVALID_MESSAGE', /topic is/);
});

test('the ordering key does not count toward the size limit', () => {
  checkOutgoing(
    with_({ data: Buffer.alloc(9_999_998), attributes: { a: 'b' }, orderingKey: 'k'.repeat(1_024) }),
  );
});

test('what is no message at all is refused by its type', () => {
  for (const nothing of [undefined, null, 'text', 7]) {
    assert.throws(
      () => checkTypes(nothing as unknown as OutgoingMessage),
      (error) => error instanceof PermanentError && error.code === 'INVALID_MESSAGE',
    );
  }
});
