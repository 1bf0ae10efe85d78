import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { manualClock } from '../manual-clock.ts';
import { startFirestore } from './index.ts';
import { identicalFields } from './identical.ts';
import { fields as readFields, saveFields } from './saved-values.ts';
import { checkFields, type Value, type WireValue } from './values.ts';

const double = fc.oneof(fc.double(), fc.constantFrom(-0, Number.NaN, Infinity, -Infinity));
const micros = fc.nat(999_999).map((count) => count * 1_000);
const timestamp = fc
  .record({ seconds: fc.integer({ min: -62_135_596_800, max: 253_402_300_799 }), nanos: micros })
  .map(({ seconds, nanos }) => ({ seconds: String(seconds), nanos }));
const name = fc
  .oneof(fc.string({ unit: 'binary', minLength: 1 }), fc.constantFrom('constructor', 'toString', '__proto'))
  .filter((each) => !/^__.*__$/s.test(each));
const scalars: readonly fc.Arbitrary<Value>[] = [
  fc.constant<Value>({ valueType: 'nullValue', nullValue: 'NULL_VALUE' }),
  fc.boolean().map((booleanValue) => ({ valueType: 'booleanValue', booleanValue })),
  fc
    .bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
    .map((value) => ({ valueType: 'integerValue', integerValue: String(value) })),
  double.map((doubleValue) => ({ valueType: 'doubleValue', doubleValue })),
  timestamp.map((timestampValue) => ({ valueType: 'timestampValue', timestampValue })),
  fc.string({ unit: 'binary' }).map((stringValue) => ({ valueType: 'stringValue', stringValue })),
  fc.uint8Array().map((bytes) => ({ valueType: 'bytesValue', bytesValue: Buffer.from(bytes) })),
  fc
    .constantFrom('projects/p/databases/(default)/documents/a/b', 'projects/p/databases/d/documents/a/b/c/ü')
    .map((referenceValue) => ({ valueType: 'referenceValue', referenceValue })),
  fc
    .record({
      latitude: fc.double({ min: -90, max: 90, noNaN: true }),
      longitude: fc.double({ min: -180, max: 180, noNaN: true }),
    })
    .map((geoPointValue) => ({ valueType: 'geoPointValue', geoPointValue })),
  fc.array(fc.double(), { minLength: 1, maxLength: 5 }).map((numbers) => ({
    valueType: 'mapValue',
    mapValue: {
      fields: {
        __type__: { valueType: 'stringValue', stringValue: '__vector__' },
        value: {
          valueType: 'arrayValue',
          arrayValue: {
            values: numbers.map((doubleValue) => ({ valueType: 'doubleValue', doubleValue })),
          },
        },
      },
    },
  })),
];
const { fields } = fc.letrec<{ value: Value; fields: Record<string, Value>; element: Value }>((tie) => ({
  element: fc.oneof(
    ...scalars,
    tie('fields').map((of): Value => ({ valueType: 'mapValue', mapValue: { fields: of } })),
  ),
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    ...scalars,
    fc
      .array(tie('element'), { maxLength: 4 })
      .map((values): Value => ({ valueType: 'arrayValue', arrayValue: { values } })),
    tie('fields').map((of): Value => ({ valueType: 'mapValue', mapValue: { fields: of } })),
  ),
  fields: fc
    .array(fc.tuple(name, tie('value')), { maxLength: 4 })
    .map((entries) => Object.fromEntries(entries)),
}));

test('fields of every type come back from JSON the same to the bit', () => {
  fc.assert(
    fc.property(fields, (given) => {
      const kept = checkFields(given as Record<string, WireValue>, 'fields');
      const json: unknown = JSON.parse(JSON.stringify(saveFields(kept)));
      assert.ok(identicalFields(readFields(json, 'fields'), kept));
    }),
    { numRuns: 300 },
  );
});

const DATABASE = 'projects/p/databases/(default)';
const NAME = `${DATABASE}/documents/rooms/one`;
const [EARLY, LATE] = ['2030-01-01T00:00:00.000001Z', '2030-01-01T00:00:00.000002Z'];
const document = (change: object = {}) => ({
  databases: [
    { name: DATABASE, documents: [{ name: NAME, createTime: EARLY, updateTime: LATE, ...change }] },
  ],
});
const value = (json: unknown) => document({ fields: { a: json } });
const PLACE = 'firestore.databases[0].documents[0]';

const REFUSED: readonly (readonly [saved: unknown, says: string])[] = [
  [null, 'firestore is null; accepted: an object'],
  [{ documents: [] }, 'firestore.documents is not known; accepted: databases'],
  [
    { databases: [{ name: 'p' }] },
    'firestore.databases[0].name is refused: "p" is not a database: want projects/PROJECT/databases/DATABASE',
  ],
  [
    { databases: [{ name: DATABASE }, { name: DATABASE }] },
    `firestore.databases[1].name is "${DATABASE}"; accepted: each one once`,
  ],
  [
    document({ name: 'projects/p/databases/d/documents/a/b' }),
    `${PLACE}.name is refused: "projects/p/databases/d/documents/a/b" is not below "${DATABASE}/documents/"`,
  ],
  [
    document({ updateTime: undefined }),
    `${PLACE}.updateTime is missing; accepted: a time as in 2030-01-31T23:59:59.123Z`,
  ],
  [
    document({ createTime: '2030-01-01T00:00:00.000003Z' }),
    `${PLACE}.createTime is "2030-01-01T00:00:00.000003Z"; accepted: a time not after updateTime`,
  ],
  [
    document({ updateTime: '2030-01-01T00:00:00.000000001Z' }),
    `${PLACE}.updateTime is refused: the time: 1 ns is finer than a microsecond`,
  ],
  [
    document({ updateTime: '2300-01-01T00:00:00Z' }),
    `${PLACE}.updateTime is "2300-01-01T00:00:00Z"; accepted: a time from 1970 to the year 2255`,
  ],
  [document({ fields: [] }), `${PLACE}.fields is []; accepted: an object`],
  [
    document({ fields: { __x__: { nullValue: null } } }),
    `${PLACE}.fields is refused: fields: the field name "__x__" matches the reserved pattern __.*__`,
  ],
  [
    value({ integerValue: 7 }),
    `${PLACE}.fields.a.integerValue is 7; accepted: a string with a whole number of 64 bits`,
  ],
  [
    value({ integerValue: '9223372036854775808' }),
    `${PLACE}.fields.a.integerValue is "9223372036854775808"; accepted: a string with a whole number of 64 bits`,
  ],
  [
    value({ doubleValue: '1.5' }),
    `${PLACE}.fields.a.doubleValue is "1.5"; accepted: a number, "NaN", "Infinity", "-Infinity", "-0"`,
  ],
  [
    value({ timestampValue: '2030-02-30T00:00:00Z' }),
    `${PLACE}.fields.a.timestampValue is "2030-02-30T00:00:00Z"; accepted: a time as in 2030-01-31T23:59:59.123Z`,
  ],
  [
    value({ geoPointValue: { latitude: 91, longitude: 0 } }),
    `${PLACE}.fields.a.geoPointValue is refused: the value: latitude 91 is not within ±90`,
  ],
  [
    value({ arrayValue: { values: [{ arrayValue: { values: [] } }] } }),
    `${PLACE}.fields.a.arrayValue.values[0] is an array; accepted: any value but an array`,
  ],
  [
    value({ nullValue: null, booleanValue: true }),
    `${PLACE}.fields.a is {"nullValue":null,"booleanValue":true}; accepted: an object with one of nullValue, booleanValue, integerValue, doubleValue, timestampValue, stringValue, bytesValue, referenceValue, geoPointValue, arrayValue, mapValue`,
  ],
  [
    value({ mapValue: { fields: { 'b c': { stringValue: 1 } } } }),
    `${PLACE}.fields.a.mapValue.fields["b c"].stringValue is 1; accepted: a string`,
  ],
];

test('refuses with one line that names the place what it could not have saved, and changes nothing', async (t) => {
  const server = await startFirestore({ clock: manualClock() });
  t.after(server.close);
  server.load(document({ fields: { n: { integerValue: '1' } } }));
  const before = server.save();
  for (const [saved, says] of REFUSED) {
    assert.throws(() => server.load(saved), { name: 'SavedError', message: says });
    assert.deepEqual(server.save(), before);
  }
});

test('refuses what is nested without end, and does not run out of stack', async (t) => {
  const server = await startFirestore({ clock: manualClock() });
  t.after(server.close);
  let nested: object = { nullValue: null };
  for (let depth = 0; depth < 2_000; depth += 1) nested = { mapValue: { fields: { a: nested } } };
  assert.throws(() => server.load(value(nested)), {
    name: 'SavedError',
    message: /is nested more than 500 deep$/,
  });
});
