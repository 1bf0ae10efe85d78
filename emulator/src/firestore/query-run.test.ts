import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Doc } from './doc.ts';
import { documents } from './documents.ts';
import { parseDocument } from './names.ts';
import { parseQuery, type WireQuery } from './query.ts';
import { overlap, rangeOf, runQuery } from './query-run.ts';
import { fieldsOf } from './values.ts';

const root = 'projects/p/databases/d';
const integer = (n: number) => ({ valueType: 'integerValue' as const, integerValue: String(n) });
const nameOf = (i: number) => parseDocument(`${root}/documents/c/d${i}`, root);

const everything: WireQuery = {
  select: null,
  from: [{ collectionId: 'c', allDescendants: false }],
  where: null,
  orderBy: [],
  startAt: null,
  endAt: null,
  offset: 0,
  limit: null,
};
const field = (fieldPath: string, op: string, n: number) => ({
  filterType: 'fieldFilter',
  fieldFilter: { field: { fieldPath }, op, value: integer(n) },
});
const parse = (wire: Partial<WireQuery>) => parseQuery({ ...everything, ...wire }, `${root}/documents`, root);

const order = fc.record({
  field: fc.record({ fieldPath: fc.constantFrom('n', 'm') }),
  direction: fc.constantFrom('ASCENDING', 'DESCENDING'),
});
const cursor = fc.option(fc.record({ values: fc.tuple(fc.nat(9).map(integer)), before: fc.boolean() }));
const query = fc.record({
  where: fc.option(fc.nat(9).map((n) => field('n', 'GREATER_THAN_OR_EQUAL', n))),
  orderBy: fc.uniqueArray(order, { minLength: 1, maxLength: 2, selector: (each) => each.field.fieldPath }),
  startAt: cursor,
  endAt: cursor,
  offset: fc.nat(5),
  limit: fc.record({ value: fc.nat(20) }),
});
const change = fc.record({ i: fc.nat(260), n: fc.option(fc.nat(9)), m: fc.option(fc.nat(3)) });

describe('a query', () => {
  test('finds the same by a kept order as by a scan, whatever changed since the order was first kept', () => {
    fc.assert(
      fc.property(
        fc.array(query, { minLength: 1, maxLength: 4 }),
        fc.array(change, { maxLength: 60 }),
        (queries, changes) => {
          const store = documents();
          const put = (i: number, n: number | null, m: number | null): void => {
            const name = nameOf(i);
            const fields = fieldsOf([
              ...(n === null ? [] : [['n', integer(n)] as const]),
              ...(m === null ? [] : [['m', integer(m)] as const]),
            ]);
            // Without either field the document is deleted.
            const after: Doc | undefined =
              n === null && m === null ? undefined : { name, fields, createTime: 1, updateTime: 1 };
            store.apply([{ name, before: store.get(name), after }]);
          };
          for (let i = 0; i < 250; i++) put(i, (i * 7) % 10, i % 4);
          const parsed = queries.map(parse);
          const check = (): void => {
            for (const each of parsed) {
              const scan = { ...store, ordered: () => undefined };
              const ids = (view: typeof scan) => runQuery(view, each).docs.map(({ name }) => name.full);
              assert.deepEqual(ids(store as typeof scan), ids(scan));
            }
          };
          check();
          for (const { i, n, m } of changes) put(i, n, m);
          check();
        },
      ),
      { numRuns: 60 },
    );
  });

  test('shares no document with one that wants another value of the same field', () => {
    const range = (wire: Partial<WireQuery>) => rangeOf(parse(wire));
    const [one, two] = [field('key', 'EQUAL', 1), field('key', 'EQUAL', 2)];
    const both = {
      filterType: 'compositeFilter',
      compositeFilter: { op: 'AND', filters: [two, field('n', 'GREATER_THAN', 0)] },
    };
    assert.equal(overlap(range({ where: one }), range({ where: two })), false);
    assert.equal(overlap(range({ where: one }), range({ where: both })), false);
    assert.equal(overlap(range({ where: two }), range({ where: both })), true);
    assert.equal(overlap(range({ where: one }), range({})), true);
    const elsewhere = [{ collectionId: 'other', allDescendants: false }];
    assert.equal(overlap(range({}), range({ from: elsewhere })), false);
    assert.equal(overlap(range({}), range({ from: [{ collectionId: 'c', allDescendants: true }] })), true);
    assert.equal(
      overlap(range({ from: elsewhere }), range({ from: [{ collectionId: '', allDescendants: true }] })),
      true,
    );
  });
});
