import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DocumentEvent, readCreatedDocument } from './document-event.ts';

const NAME = 'projects/shop/databases/(default)/documents/rows/r1';
const HEADERS = {
  'Ce-Type': 'google.cloud.firestore.document.v1.created',
  'Content-Type': 'application/protobuf',
} as const;

/** A field with bytes, as protobuf writes it. */
function field(number: number, content: Uint8Array | string): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

const documentOf = (name: string): Buffer =>
  // With what stands around the name: a map of fields, and times.
  Buffer.concat([field(2, field(1, 'state')), field(1, name), field(3, Buffer.from([8, 200, 1]))]);
const bodyOf = (name: string): Buffer => Buffer.concat([field(1, documentOf(name)), field(3, '')]);
const eventOf = (rawBody: Uint8Array, headers: DocumentEvent['headers'] = HEADERS): DocumentEvent => ({
  headers,
  rawBody,
});

test('the document of an event is found by the body, whatever else the body has', () => {
  const expected = { project: 'shop', database: '(default)', collection: 'rows', id: 'r1' };
  assert.deepEqual(readCreatedDocument(eventOf(bodyOf(NAME))), expected);
  const long = Buffer.concat([field(99, Buffer.alloc(70_000, 1)), bodyOf(NAME)]);
  assert.deepEqual(readCreatedDocument(eventOf(long)), expected);
  // A number, and both lengths that are fixed: fields that a later version may have.
  const others = Buffer.concat([
    Buffer.from([4 * 8 + 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
    Buffer.from([5 * 8 + 1, 1, 2, 3, 4, 5, 6, 7, 8]),
    Buffer.from([6 * 8 + 5, 1, 2, 3, 4]),
    bodyOf(NAME),
  ]);
  assert.deepEqual(readCreatedDocument(eventOf(others)), expected);
  const withAuth = { ...HEADERS, 'Ce-Type': `${HEADERS['Ce-Type']}.withAuthContext` };
  assert.deepEqual(readCreatedDocument(eventOf(bodyOf(NAME), withAuth)), expected);
});

test('names of documents below documents, in other databases and in any script, are read as they are', () => {
  const name = 'projects/p/databases/second/documents/shops/Łódź/rows/a b';
  assert.deepEqual(readCreatedDocument(eventOf(bodyOf(name))), {
    project: 'p',
    database: 'second',
    collection: 'shops/Łódź/rows',
    id: 'a b',
  });
});

test('what is no event of a created document is refused with what is accepted', () => {
  const wrong: readonly (readonly [DocumentEvent, RegExp])[] = [
    [eventOf(bodyOf(NAME), {}), /^header ce-type is missing; accepted: google\.cloud\.firestore/],
    [
      eventOf(bodyOf(NAME), { ...HEADERS, 'Ce-Type': 'google.cloud.firestore.document.v1.deleted' }),
      /^header ce-type is "google.*deleted"; accepted: /,
    ],
    [
      eventOf(Buffer.from('{}'), { ...HEADERS, 'Content-Type': 'application/json' }),
      /^header content-type is "application\/json"; accepted: application\/protobuf/,
    ],
    [eventOf(Buffer.alloc(0)), /^the body has no document/],
    [eventOf(field(2, documentOf(NAME))), /^the body has no document/],
    [eventOf(field(1, field(2, 'x'))), /^the name of the document is ""; accepted: projects\//],
    [eventOf(bodyOf('rows/r1')), /^the name of the document is "rows\/r1"; accepted: projects\//],
    [eventOf(bodyOf(`${NAME}/rows`)), /^the name of the document is /],
    [eventOf(bodyOf('projects/p/databases/d/documents/rows//x/y')), /^the name of the document is /],
    [eventOf(field(1, field(1, Buffer.from([0xff, 0xfe])))), /^the name of the document is not UTF-8/],
  ];
  for (const [event, message] of wrong) {
    assert.throws(() => readCreatedDocument(event), {
      name: 'PermanentError',
      code: 'EVENT_REFUSED',
      message,
    });
  }
});

test('a body that is cut off, or is no protobuf, is refused at whatever byte it ends', () => {
  const whole = bodyOf(NAME);
  // Up to the end of field 1: behind it stands a field that nothing needs.
  const needed = field(1, documentOf(NAME)).length;
  for (let length = 1; length < needed; length += 1) {
    assert.throws(() => readCreatedDocument(eventOf(whole.subarray(0, length))), { code: 'EVENT_REFUSED' });
  }
  for (const body of [
    '{"value":{}}',
    '\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff',
    '\x0b\x0c',
    '\x00\x00',
  ]) {
    assert.throws(() => readCreatedDocument(eventOf(Buffer.from(body, 'latin1'))), { code: 'EVENT_REFUSED' });
  }
});

test('any bytes are read or refused, and nothing else', () => {
  // Each body once, from a generator of its own: the same in each run.
  let seed = 7;
  const next = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % 256;
  for (let round = 0; round < 2_000; round += 1) {
    const noise = Buffer.from(Array.from({ length: 1 + (round % 40) }, next));
    const body = round % 2 === 0 ? noise : Buffer.concat([field(1, noise), noise]);
    try {
      assert.equal(typeof readCreatedDocument(eventOf(body)).id, 'string');
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'EVENT_REFUSED', body.toString('hex'));
    }
  }
});
