import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Doc } from './doc.ts';
import { compareEntries, type Entry, entryIn, type Order } from './entries.ts';
import { NAME } from './field-path.ts';
import { parseDocument } from './names.ts';
import { sortedEntries } from './sorted-entries.ts';
import { fieldsOf } from './values.ts';

const ROOT = 'projects/p/databases/d';
const ORDERS: readonly Order[] = [
  { path: ['n'], sign: 1 },
  { path: [NAME], sign: 1 },
];

function docOf(id: number, n: number): Doc {
  const name = parseDocument(`${ROOT}/documents/c/d${id}`, ROOT);
  const fields = fieldsOf([['n', { valueType: 'integerValue', integerValue: String(n) }]]);
  return { name, fields, createTime: 1, updateTime: 1 };
}

function entryOf(id: number, n: number): Entry {
  const entry = entryIn(ORDERS, docOf(id, n));
  assert.ok(entry !== undefined);
  return entry;
}

const compare = (a: Entry, b: Entry): number => compareEntries(a, b, ORDERS);

describe('sorted entries', () => {
  test('are those of one sorted array, from any place, whatever was inserted and removed', () => {
    const ids = fc.uniqueArray(fc.nat(60), { maxLength: 60 });
    // In turn: an identifier that is there is removed, any other is inserted.
    const turns = fc.array(fc.nat(60), { maxLength: 200 });
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 6 }), ids, turns, fc.nat(10), (longest, first, turns, from) => {
        const expected = new Map(first.map((id) => [id, entryOf(id, id % 9)]));
        const inOrder = (): readonly Entry[] => [...expected.values()].sort(compare);
        const entries = sortedEntries(ORDERS, inOrder(), longest);
        const bound = entryOf(30, from);
        const isBefore = (entry: Entry): boolean => compare(entry, bound) < 0;
        for (const id of turns) {
          const known = expected.get(id);
          const entry = known ?? entryOf(id, id % 9);
          if (known === undefined) entries.insert(entry);
          else entries.remove(entryOf(id, id % 9));
          if (known === undefined) expected.set(id, entry);
          else expected.delete(id);
        }
        assert.deepEqual([...entries.from(() => false)], inOrder());
        assert.deepEqual(
          [...entries.from(isBefore)],
          inOrder().filter((entry) => !isBefore(entry)),
        );
        assert.deepEqual([...entries.from(() => true)], []);
      }),
    );
  });

  test('are moved by a few places for each write, however many there are', () => {
    const count = 20_000;
    const numbered = Array.from({ length: count }, (_, i) => entryOf(i, i));
    const stored = sortedEntries(ORDERS, numbered);
    const inserted = sortedEntries(ORDERS, []);
    for (const [i, entry] of numbered.entries()) {
      inserted.insert(entry);
      if (i % 1_000 === 0) assert.ok(inserted.movedAtMost() <= 512);
    }
    // A queue: what comes goes behind the others, and what is done with is at the front.
    for (const entries of [stored, inserted]) {
      for (const [i, entry] of numbered.entries()) {
        entries.insert(entryOf(count + i, count + i));
        entries.remove(entry);
        if (i % 1_000 === 0) assert.ok(entries.movedAtMost() <= 512);
      }
      assert.equal([...entries.from(() => false)].length, count);
    }
  });
});
