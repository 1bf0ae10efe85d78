/** Names and paths of fields, and how deep they nest. */
import assert from 'node:assert/strict';
import { FieldPath } from '@google-cloud/firestore';
import { accepted, type FirestoreCase, int, list, map, of, refused } from '../expect.ts';
import { limit, write } from '../limit.ts';
import { QUOTAS } from '../sources.ts';

const field = of('Limits of fields');
const nested = (levels: number): object => (levels === 0 ? int(1) : map({ m: nested(levels - 1) }));
const nestedArrays = (levels: number): object =>
  levels === 0 ? int(1) : map({ m: list(nestedArrays(levels - 2)) });
const named = (id: string): readonly [string, object] => ['c/a', { [id]: int(1) }];

export const fieldLimitCases: readonly FirestoreCase[] = [
  ...limit(
    field,
    'A field name',
    QUOTAS,
    ['1,500 bytes', named('x'.repeat(1_500))],
    ['1,501 bytes', named('x'.repeat(1_501))],
  ),
  ...limit(
    field,
    'Maps in maps',
    QUOTAS,
    ['20 levels', ['c/a', { f: nested(20) }]],
    ['21 levels', ['c/a', { f: nested(21) }]],
  ),
  ...limit(
    field,
    'Maps and arrays in each other',
    QUOTAS,
    ['20 levels', ['c/a', { f: nestedArrays(20) }]],
    ['22 levels', ['c/a', { f: nestedArrays(22) }]],
  ),
  field('A field name that matches __.*__ answers INVALID_ARGUMENT', QUOTAS, async (world) => {
    await refused(write(world, ...named('__f__')), 'INVALID_ARGUMENT', 'the field __f__');
  }),
  field('A nested field name that matches __.*__ answers INVALID_ARGUMENT', QUOTAS, async (world) => {
    await refused(
      write(world, 'c/a', { m: map({ __f__: int(1) }) }),
      'INVALID_ARGUMENT',
      'the field m.__f__',
    );
  }),
  field('An empty field name answers INVALID_ARGUMENT', QUOTAS, async (world) => {
    await refused(write(world, ...named('')), 'INVALID_ARGUMENT', 'an empty field name');
  }),
  field('A field name with any other character is accepted, and read by its path', QUOTAS, async ({ db }) => {
    const odd = 'a.b `c` \\ 日 [0]/~*';
    await db.doc('c/a').set({ [odd]: 1 });
    await db.doc('c/a').update(new FieldPath(odd), 2);
    assert.deepEqual((await db.doc('c/a').get()).data(), { [odd]: 2 });
    assert.equal((await db.collection('c').where(new FieldPath(odd), '==', 2).get()).size, 1);
  }),
  field('A field path of more than 1,500 bytes answers INVALID_ARGUMENT', QUOTAS, async ({ commit, doc }) => {
    const update = { name: doc('c/a'), fields: {} };
    const mask = (a: number, b: number): object => ({ fieldPaths: [`${'a'.repeat(a)}.${'b'.repeat(b)}`] });
    await accepted(commit({ update, updateMask: mask(700, 700) }), 'a path of 1,401 bytes');
    await refused(
      commit({ update, updateMask: mask(800, 800) }),
      'INVALID_ARGUMENT',
      'a path of 1,601 bytes',
    );
  }),
  ...['a..b', '.a', 'a.', '', '1a', 'a b', 'a`b`', '`', '``', 'a-b'].map((bad) =>
    field(
      `The field path ${JSON.stringify(bad)} in a mask answers INVALID_ARGUMENT`,
      QUOTAS,
      async ({ commit, doc }) => {
        const write = { update: { name: doc('c/a'), fields: {} }, updateMask: { fieldPaths: [bad] } };
        await refused(commit(write), 'INVALID_ARGUMENT', 'the path');
      },
    ),
  ),
  field('A quoted field path names the field', QUOTAS, async ({ db, commit, doc }) => {
    const updateMask = { fieldPaths: ['`a.b`', 'm.`\\`x\\\\`'] };
    await commit({
      update: { name: doc('c/a'), fields: { 'a.b': int(1), m: map({ '`x\\': int(2) }), other: int(3) } },
      updateMask,
    });
    assert.deepEqual((await db.doc('c/a').get()).data(), { 'a.b': 1, m: { '`x\\': 2 } });
  }),
];
