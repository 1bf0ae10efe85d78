/** What filters find: every operator, what null, NaN and missing fields do, and how filters go together. */
import { FieldPath, Filter, type Query, Timestamp } from '@google-cloud/firestore';
import { type FirestoreCase, fill, found, int, of } from '../expect.ts';
import { QUERIES, RANGES } from '../sources.ts';

const make = of('Filters');
const NAN = Number.NaN;

const MIXED = {
  a1: { f: 1 },
  b2: { f: 2 },
  c2: { f: 2.5 },
  d3: { f: 3 },
  nan: { f: NAN },
  null: { f: null },
  other: { g: 1 },
  str: { f: '2' },
  true: { f: true },
};

const simple: readonly [string, (c: Query) => Query, string][] = [
  ['== finds what is equal, of the same type', (c) => c.where('f', '==', 2), 'b2'],
  ['== finds an integer by a double of the same number', (c) => c.where('f', '==', 2.0), 'b2'],
  ['== null finds null only', (c) => c.where('f', '==', null), 'null'],
  ['== NaN finds NaN only', (c) => c.where('f', '==', NAN), 'nan'],
  [
    '!= finds all others that have the field, but not null',
    (c) => c.where('f', '!=', 2),
    'true,nan,a1,c2,d3,str',
  ],
  ['!= null finds what has another value', (c) => c.where('f', '!=', null), 'true,nan,a1,b2,c2,d3,str'],
  ['!= NaN finds no null', (c) => c.where('f', '!=', NAN), 'true,a1,b2,c2,d3,str'],
  ['> finds numbers above, and no other type', (c) => c.where('f', '>', 2), 'c2,d3'],
  ['>= finds the number itself, too', (c) => c.where('f', '>=', 2), 'b2,c2,d3'],
  ['< finds numbers below, and no other type', (c) => c.where('f', '<', 2.5).where('f', '>', -1), 'a1,b2'],
  ['<= finds the number itself, too', (c) => c.where('f', '<=', 1).where('f', '>', -1), 'a1'],
  ['Two ranges on one field go together', (c) => c.where('f', '>', 1).where('f', '<', 3), 'b2,c2'],
  ['A range of strings finds strings only', (c) => c.where('f', '>=', ''), 'str'],
  ['in finds what equals one of the values', (c) => c.where('f', 'in', [2, '2', 7]), 'b2,str'],
  [
    'not-in finds all others that have the field, but not null',
    (c) => c.where('f', 'not-in', [1, '2']),
    'true,nan,b2,c2,d3',
  ],
  ['not-in with null among the values finds nothing', (c) => c.where('f', 'not-in', [1, null]), ''],
];

const ARRAYS = {
  a: { t: ['x', 'y'] },
  b: { t: ['y', 'z'] },
  c: { t: [1, { k: 1 }] },
  d: { t: 'x' },
  e: { t: [] },
};
const arrays: readonly [string, (c: Query) => Query, string][] = [
  [
    'array-contains finds arrays with the element, and no plain value',
    (c) => c.where('t', 'array-contains', 'x'),
    'a',
  ],
  ['array-contains finds a map that is equal', (c) => c.where('t', 'array-contains', { k: 1 }), 'c'],
  [
    'array-contains-any finds arrays with one of the elements, once',
    (c) => c.where('t', 'array-contains-any', ['x', 'y', 1]),
    'a,b,c',
  ],
  ['== compares whole arrays, in their order', (c) => c.where('t', '==', ['x', 'y']), 'a'],
  ['in compares whole arrays', (c) => c.where('t', 'in', [['y', 'z'], []]), 'b,e'],
];

const MAPS = {
  a: { m: { x: 1, y: 2 }, n: 1 },
  b: { m: { x: 1 }, n: 2 },
  c: { m: { x: 2 }, n: 1 },
  d: { n: 3 },
};
const composed: readonly [string, (c: Query) => Query, string][] = [
  ['A nested field is found by its path', (c) => c.where('m.x', '==', 1), 'a,b'],
  ['== compares whole maps', (c) => c.where('m', '==', { x: 1 }), 'b'],
  ['Several equalities go together', (c) => c.where('m.x', '==', 1).where('n', '==', 1), 'a'],
  [
    'OR finds what fits one of its filters, once',
    (c) => c.where(Filter.or(Filter.where('n', '==', 1), Filter.where('m.x', '==', 1))),
    'a,b,c',
  ],
  [
    'AND and OR nest',
    (c) =>
      c.where(
        Filter.and(
          Filter.where('n', '<', 3),
          Filter.or(
            Filter.where('m.x', '==', 2),
            Filter.and(Filter.where('m.x', '==', 1), Filter.where('m.y', '==', 2)),
          ),
        ),
      ),
    'a,c',
  ],
  ['Ranges on several fields go together', (c) => c.where('n', '>', 0).where('m.x', '<', 2), 'a,b'],
];

const id = FieldPath.documentId();
const NAMES = { a: {}, b: {}, c: {}, d: {} };
const names: readonly [string, (c: Query) => Query, string][] = [
  [
    'A range of document IDs finds them in their order',
    (c) => c.where(id, '>', 'a').where(id, '<=', 'c'),
    'b,c',
  ],
  ['A document ID is found by ==', (c) => c.where(id, '==', 'b'), 'b'],
  ['Document IDs are found by in', (c) => c.where(id, 'in', ['d', 'a', 'zz']), 'a,d'],
  ['Document IDs are excluded by not-in', (c) => c.where(id, 'not-in', ['d', 'a']), 'b,c'],
];

const cases = (data: Readonly<Record<string, object>>, all: typeof simple): readonly FirestoreCase[] =>
  all.map(([title, query, want]) =>
    make(title, QUERIES, async (world) => found(query(await fill(world, data)), want)),
  );

export const filterCases: readonly FirestoreCase[] = [
  ...cases(MIXED, simple),
  ...cases(ARRAYS, arrays),
  ...cases(MAPS, composed),
  ...cases(NAMES, names),
  make('A range of timestamps is exact to the microsecond', QUERIES, async (world) => {
    const at = (micros: number): Timestamp => new Timestamp(1_700_000_000, micros * 1_000);
    const c = await fill(world, { a: { at: at(1) }, b: { at: at(2) }, c: { at: at(3) } });
    await found(c.where('at', '>', at(1)).where('at', '<', at(3)), 'b');
  }),
  make('Integers beyond 2^53 are compared exactly', QUERIES, async ({ db, commit, doc }) => {
    const big = 9_007_199_254_740_993n;
    await commit(
      { update: { name: doc('c/a'), fields: { n: int(String(big)) } } },
      { update: { name: doc('c/b'), fields: { n: int(String(big - 1n)) } } },
    );
    await found(db.collection('c').where('n', '>', Number(big - 1n)), 'a');
  }),
  make(
    'With filters on several fields a document lacking one of them is not found',
    RANGES,
    async (world) => {
      const c = await fill(world, { a: { n: 1, k: 1 }, b: { n: 1 }, c: { k: 1 } });
      await found(c.where('n', '>', 0).where('k', '>', 0), 'a');
    },
  ),
];
