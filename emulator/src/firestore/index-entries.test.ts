import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseDefinitions } from './index-definitions.ts';
import { distinctElements, hasComposites, indexUsage, indexUsageAtMost } from './index-entries.ts';
import { parseDocument } from './names.ts';
import { documentSize } from './size.ts';
import { arrayOf, type Fields, fieldsOf, type Value } from './values.ts';

const DATABASE = 'projects/p/databases/(default)';
const named = (path: string) => parseDocument(`${DATABASE}/documents/${path}`, DATABASE);
const text = (value: string): Value => ({ valueType: 'stringValue', stringValue: value });
const int = (value: number): Value => ({ valueType: 'integerValue', integerValue: String(value) });
const bool = (value: boolean): Value => ({ valueType: 'booleanValue', booleanValue: value });
const map = (fields: Fields): Value => ({ valueType: 'mapValue', mapValue: { fields } });
const vector = (dimensions: number): Value =>
  map({
    __type__: text('__vector__'),
    value: arrayOf(Array.from({ length: dimensions }, () => ({ valueType: 'doubleValue', doubleValue: 1 }))),
  });

const up = (fieldPath: string) => ({ fieldPath, order: 'ASCENDING' });
const down = (fieldPath: string) => ({ fieldPath, order: 'DESCENDING' });
const contains = (fieldPath: string) => ({ fieldPath, arrayConfig: 'CONTAINS' });
const composite = (collectionGroup: string, fields: readonly object[], queryScope = 'COLLECTION') => ({
  collectionGroup,
  queryScope,
  fields,
});
const exempt = (collectionGroup: string, fieldPath: string, indexes: readonly object[] = []) => ({
  collectionGroup,
  fieldPath,
  indexes,
});

function usage(path: string, fields: Fields, definitions: object = {}) {
  return indexUsage(parseDefinitions(definitions, 'definitions'), named(path), fields, distinctElements);
}
const count = (fields: Fields, definitions: object = {}): number => usage('c/a', fields, definitions).count;

const city: Fields = {
  city_name: text('San Francisco'),
  temperatures: map({ summer: int(67), winter: int(55) }),
  neighborhoods: arrayOf(['Mission', 'Downtown', 'Marina'].map(text)),
};
const task: Fields = {
  type: text('Personal'),
  done: bool(false),
  priority: int(1),
  description: text('Learn Cloud Firestore'),
};

describe('the index entries of a document', () => {
  test('are as many as in the documented example: 13 of single fields, 6 of two composite indexes', () => {
    assert.equal(usage('cities/SF', city).count, 13);
    const indexes = [
      composite('cities', [up('city_name'), contains('neighborhoods')]),
      composite('cities', [down('city_name'), contains('neighborhoods')]),
    ];
    assert.equal(usage('cities/SF', city, { indexes }).count, 19);
    assert.equal(usage('towns/SF', city, { indexes }).count, 13);
  });

  test('are as large as in the documented examples', () => {
    const size = (definitions: object): number =>
      usage('users/jeff/tasks/my_task_id', task, definitions).largest.bytes;
    const only = (...indexes: object[]) => [exempt('tasks', '*'), exempt('tasks', 'done', indexes)];
    assert.equal(size({ fieldOverrides: only({ order: 'ASCENDING' }) }), 109);
    const inGroup = only({ order: 'ASCENDING', queryScope: 'COLLECTION_GROUP' });
    assert.equal(size({ fieldOverrides: inGroup }), 98);
    const fieldOverrides = [exempt('tasks', '*')];
    const fields = [up('done'), up('priority')];
    assert.equal(size({ fieldOverrides, indexes: [composite('tasks', fields)] }), 112);
    assert.equal(size({ fieldOverrides, indexes: [composite('tasks', fields, 'COLLECTION_GROUP')] }), 85);
  });

  test('add up to their sum', () => {
    // The name tasks/a has 6 + 2 + 16 bytes, and each entry 32 more.
    const { bytes, largest } = usage('tasks/a', { done: bool(true), tags: arrayOf([text('x'), text('yz')]) });
    assert.equal(bytes, 2 * (56 + 5 + 1) + 2 * (56 + 5 + 5) + (56 + 5 + 2) + (56 + 5 + 3));
    assert.deepEqual(largest, { bytes: 66, fields: ['tags'] });
  });

  test('hold values up to 1,500 bytes: strings, arrays and maps alike', () => {
    const entry = (value: Value): number => usage('c/a', { f: value }).largest.bytes - (20 + 2 + 32);
    assert.equal(entry(text('x'.repeat(1_498))), 1_499);
    assert.equal(entry(text('x'.repeat(100_000))), 1_500);
    assert.equal(entry(arrayOf([text('x'.repeat(1_000)), text('y'.repeat(1_000))])), 1_500);
    assert.equal(entry({ valueType: 'bytesValue', bytesValue: Buffer.alloc(5_000) }), 1_500);
    const long = { fieldOverrides: [exempt('c', 'f.g')] };
    const { largest } = usage('c/a', { f: map({ g: text('x'.repeat(9_000)) }) }, long);
    assert.deepEqual(largest, { bytes: 20 + 2 + 32 + 1_500, fields: ['f'] });
  });

  test('are two for a map as a whole and two for each field in it, to any depth', () => {
    assert.equal(count({ m: map({}) }), 2);
    assert.equal(count({ m: map({ a: int(1), n: map({ b: int(1) }) }) }), 8);
    assert.equal(usage('c/a', { m: map({ n: map({ bc: bool(true) }) }) }).largest.fields[0], 'm');
    const deep = { fieldOverrides: [exempt('c', 'm'), exempt('c', 'm.n.bc', [{ order: 'ASCENDING' }])] };
    const { bytes } = usage('c/a', { m: map({ n: map({ bc: bool(true) }) }) }, deep);
    assert.equal(bytes, 20 + 7 + 1 + 32);
  });

  test('are one for each different element of an array, whose maps are not looked into', () => {
    assert.equal(count({ a: arrayOf([]) }), 2);
    assert.equal(count({ a: arrayOf([int(1), int(1), { valueType: 'doubleValue', doubleValue: 1 }]) }), 3);
    assert.equal(count({ a: arrayOf([map({ b: int(1) }), map({ b: int(2) })]) }), 4);
  });

  test('are two for a vector, of 8 bytes for each dimension', () => {
    const { count: entries, largest } = usage('c/a', { v: vector(3) });
    assert.deepEqual([entries, largest.bytes], [2, 20 + 2 + 24 + 32]);
  });

  test('are none of an exempt field, of the fields in it, or with * of any', () => {
    const fields = { a: int(1), m: map({ b: int(1) }) };
    assert.equal(count(fields), 6);
    assert.equal(count(fields, { fieldOverrides: [exempt('c', 'a')] }), 4);
    assert.equal(count(fields, { fieldOverrides: [exempt('c', 'm')] }), 2);
    assert.equal(count(fields, { fieldOverrides: [exempt('c', '*')] }), 0);
    assert.equal(count(fields, { fieldOverrides: [exempt('other', '*')] }), 6);
    const twice = [{ order: 'ASCENDING' }, { order: 'ASCENDING' }];
    assert.equal(count({ a: int(1) }, { fieldOverrides: [exempt('c', 'a', twice)] }), 1);
  });

  test('are in a composite index if the document has all its fields, exempt or not', () => {
    const indexes = [composite('c', [up('a'), up('m.b')]), composite('c', [up('a'), contains('t')])];
    const fieldOverrides = [exempt('c', '*')];
    const inIndexes = (fields: Fields): number => count(fields, { indexes, fieldOverrides });
    assert.equal(inIndexes({ a: int(1) }), 0);
    assert.equal(inIndexes({ a: int(1), m: map({ b: int(1) }) }), 1);
    assert.equal(inIndexes({ a: int(1), t: int(1) }), 0);
    assert.equal(inIndexes({ a: int(1), t: arrayOf([int(1), int(2)]) }), 2);
  });
});

test('the bounds are never below the usage', () => {
  const key = fc.constantFrom('a', 'b', 'é日', 'm', 't');
  const { value: anyValue } = fc.letrec<{ value: Value }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.boolean().map(bool),
      fc.integer().map(int),
      fc.string({ unit: 'binary', maxLength: 600 }).map(text),
      fc.constant(vector(2)),
      fc.constant<Value>({ valueType: 'bytesValue', bytesValue: Buffer.alloc(0) }),
      fc.array(tie('value'), { maxLength: 4 }).map(arrayOf),
      fc.dictionary(key, tie('value')).map((fields) => map(fieldsOf(Object.entries(fields)))),
    ),
  }));
  const both = [{ order: 'ASCENDING' }, { order: 'DESCENDING' }, { arrayConfig: 'CONTAINS' }].flatMap(
    (index) => ['COLLECTION', 'COLLECTION_GROUP'].map((queryScope) => ({ ...index, queryScope })),
  );
  const sets = [
    {},
    { fieldOverrides: [exempt('c', '*', both)] },
    { indexes: [composite('c', [up('a'), contains('t')]), composite('c', [up('m.a'), up('b')])] },
    { indexes: [composite('c', [up('a'), up('b'), up('m'), contains('t')], 'COLLECTION_GROUP')] },
  ].map((each) => parseDefinitions(each, 'definitions'));
  const name = named('parents/p/c/a');
  fc.assert(
    fc.property(fc.dictionary(key, anyValue), fc.constantFrom(...sets), (fields, definitions) => {
      const documentBytes = documentSize(name, fields);
      const atMost = indexUsageAtMost(definitions, name, fields, documentBytes);
      const counted = indexUsage(definitions, name, fields, (values) => values);
      const distinct = indexUsage(definitions, name, fields, distinctElements);
      assert.ok(atMost.count >= counted.count && counted.count >= distinct.count);
      assert.ok(atMost.bytes >= counted.bytes && counted.bytes >= distinct.bytes);
      assert.ok(atMost.largest.bytes >= counted.largest.bytes);
      // What the limits take small documents by.
      if (hasComposites(definitions, name)) return;
      assert.ok(distinct.count <= 3 * documentBytes && distinct.largest.bytes <= 3 * documentBytes + 48);
    }),
    { numRuns: 500 },
  );
});
