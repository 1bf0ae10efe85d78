import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { formatFieldPath, getField, parseFieldPath, projectFields, setField } from './field-path.ts';
import { compareStrings, compareValues } from './order.ts';
import { arrayOf, fieldsOf, NULL, type Value } from './values.ts';

const integer = (n: bigint | number | string): Value => ({
  valueType: 'integerValue',
  integerValue: String(n),
});
const double = (n: number): Value => ({ valueType: 'doubleValue', doubleValue: n });
const text = (s: string): Value => ({ valueType: 'stringValue', stringValue: s });

const { value: anyValue } = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 2 },
    fc.constant(NULL),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(integer),
    fc.integer({ min: -3, max: 3 }).map(integer),
    fc.double().map(double),
    fc.constantFrom(0, -0, 1, 2 ** 53, -(2 ** 63)).map(double),
    fc.string({ unit: 'binary', maxLength: 3 }).map(text),
    fc.array(tie('value'), { maxLength: 3 }).map(arrayOf),
    fc
      .dictionary(fc.constantFrom('a', 'b', 'é'), tie('value'))
      .map((map): Value => ({ valueType: 'mapValue', mapValue: { fields: fieldsOf(Object.entries(map)) } })),
  ),
}));

describe('the order of values', () => {
  test('is total: it has no contradictions', () => {
    fc.assert(
      fc.property(anyValue, anyValue, anyValue, (a, b, c) => {
        assert.equal(compareValues(a, a), 0);
        assert.equal(Math.sign(compareValues(a, b)), 0 - Math.sign(compareValues(b, a)));
        if (compareValues(a, b) <= 0 && compareValues(b, c) <= 0) assert.ok(compareValues(a, c) <= 0);
      }),
      { numRuns: 2_000 },
    );
  });

  test('compares integers and doubles exactly, where a double cannot hold the integer', () => {
    assert.ok(compareValues(integer('9007199254740993'), double(9007199254740992)) > 0);
    assert.ok(compareValues(integer('9223372036854775807'), double(2 ** 63)) < 0);
    assert.equal(compareValues(integer(3), double(3)), 0);
    assert.equal(compareValues(double(-0), integer(0)), 0);
    assert.ok(compareValues(double(Number.NaN), double(Number.NEGATIVE_INFINITY)) < 0);
    assert.equal(compareValues(double(Number.NaN), double(Number.NaN)), 0);
  });

  test('compares strings as their UTF-8 bytes compare', () => {
    const unit = fc.constantFrom('a', 'b', 'é', '\uffee', '\ud7ff', '🐘', '\u{10ffff}');
    const string = fc.string({ unit, maxLength: 4 });
    fc.assert(
      fc.property(string, string, (a, b) => {
        assert.equal(Math.sign(compareStrings(a, b)), Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
    );
  });
});

describe('a field path', () => {
  const segment = fc.string({
    unit: fc.constantFrom('a', 'B', '0', '_', '.', '`', '\\', 'é'),
    minLength: 1,
    maxLength: 4,
  });
  const path = fc.array(segment, { minLength: 1, maxLength: 3 });

  test('is read back as it was written, whatever its names are', () => {
    fc.assert(
      fc.property(path, (segments) => assert.deepEqual(parseFieldPath(formatFieldPath(segments)), segments)),
    );
  });

  test('sets, finds, projects and deletes a nested field, and leaves the original as it was', () => {
    fc.assert(
      fc.property(path, path, (one, other) => {
        const before = setField(fieldsOf([]), other, integer(1));
        const after = setField(before, one, integer(2));
        assert.deepEqual(getField(after, one), integer(2));
        assert.deepEqual(getField(before, other), integer(1));
        assert.deepEqual(projectFields(after, [one]), setField(fieldsOf([]), one, integer(2)));
        assert.equal(getField(setField(after, one, undefined), one), undefined);
      }),
    );
  });

  test('is refused when it is not well formed', () => {
    for (const bad of ['', '.', 'a.', '.a', 'a..b', '1a', 'a b', '`a', '``', '`a`b', 'a-b']) {
      assert.throws(() => parseFieldPath(bad), /is not a field path/, bad);
    }
  });
});
