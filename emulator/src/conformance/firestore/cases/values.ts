/** The types of values, and those that may not be written. */
import assert from 'node:assert/strict';
import { double, type FirestoreCase, int, list, map, of, refused, text } from '../expect.ts';
import { limit, write } from '../limit.ts';
import { TYPES, VECTORS } from '../sources.ts';

const value = of('Values');
const one = (what: object): readonly [string, object] => ['c/a', { f: what }];
const vector = (dimensions: number): object =>
  map({
    __type__: text('__vector__'),
    value: list(...Array.from({ length: dimensions }, () => double(0.5))),
  });
const badValue = (what: string, given: object, source = TYPES): FirestoreCase =>
  value(`${what} answers INVALID_ARGUMENT`, source, async (world) => {
    await refused(write(world, 'c/a', { f: given }), 'INVALID_ARGUMENT', what);
  });

export const valueCases: readonly FirestoreCase[] = [
  value('Every type of value is kept as it is', TYPES, async ({ commit, one: first, doc }) => {
    const fields = {
      array: list(int(1), map({ k: list(int(2)) })),
      boolean: { booleanValue: true },
      bytes: { bytesValue: Buffer.from([0, 255]) },
      double: double(1),
      geo: { geoPointValue: { latitude: -90, longitude: 180 } },
      integer: int('-9223372036854775808'),
      map: map({}),
      nan: double(Number.NaN),
      null: { nullValue: 'NULL_VALUE' },
      reference: { referenceValue: doc('d/x') },
      string: text('\u0000 ü 🙂'),
      timestamp: { timestampValue: { seconds: '-62135596800', nanos: 0 } },
    };
    await commit({ update: { name: doc('c/a'), fields } });
    const seen = (await first('GetDocument', { name: doc('c/a') }))['fields'] as Record<
      string,
      Record<string, unknown>
    >;
    assert.deepEqual(Object.keys(seen).sort(), Object.keys(fields));
    for (const [key, want] of Object.entries(fields)) {
      const [type = ''] = Object.keys(want);
      assert.equal(seen[key]?.['valueType'], type, `${key} is ${JSON.stringify(seen[key])}`);
    }
    assert.equal(seen['integer']?.['integerValue'], '-9223372036854775808');
    assert.equal(seen['string']?.['stringValue'], '\u0000 ü 🙂');
    assert.equal(seen['double']?.['doubleValue'], 1);
  }),
  value(
    'A timestamp is kept to the microsecond, rounded down',
    TYPES,
    async ({ commit, one: first, doc }) => {
      const at = { timestampValue: { seconds: '1700000000', nanos: 123_456_789 } };
      await commit({ update: { name: doc('c/a'), fields: { at } } });
      const seen = (await first('GetDocument', { name: doc('c/a') }))['fields'] as Record<
        string,
        { timestampValue: { nanos: number } }
      >;
      assert.equal(seen['at']?.timestampValue.nanos, 123_456_000);
    },
  ),
  badValue('An array in an array', list(list(int(1)))),
  badValue('A value without a type', {}),
  badValue('A latitude of 90.1', { geoPointValue: { latitude: 90.1, longitude: 0 } }),
  badValue('A longitude of -180.1', { geoPointValue: { latitude: 0, longitude: -180.1 } }),
  badValue('A reference that is no document', { referenceValue: 'c/a' }),
  badValue('A timestamp after the year 9999', { timestampValue: { seconds: '253402300800', nanos: 0 } }),
  badValue('A timestamp with negative nanoseconds', { timestampValue: { seconds: '0', nanos: -1 } }),
  ...limit(
    value,
    'A vector',
    VECTORS,
    ['2,048 dimensions', one(vector(2_048))],
    ['2,049 dimensions', one(vector(2_049))],
  ),
];
