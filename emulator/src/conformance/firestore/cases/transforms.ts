/** What the server calculates from a field's value. */
import assert from 'node:assert/strict';
import { FieldValue } from '@google-cloud/firestore';
import { accepted, atOnce, double, type FirestoreCase, int, list, of, refused, text } from '../expect.ts';
import { QUOTAS, TRANSFORMS } from '../sources.ts';
import type { FirestoreWorld } from '../world.ts';

const make = of('Transforms');

/** The values after one commit of these transforms; `before` are the fields of the document before. */
async function transformed(world: FirestoreWorld, before: object | undefined, ...transforms: object[]) {
  const name = world.doc('c/a');
  if (before !== undefined) await world.commit({ update: { name, fields: before } });
  const fieldTransforms = transforms.map((each) => ({ fieldPath: 'f', ...each }));
  const { writeResults } = await world.commit({ transform: { document: name, fieldTransforms } });
  const { fields } = (await world.one('GetDocument', { name })) as { fields: Record<string, Stored> };
  return {
    field: fields['f'] ?? {},
    results: (writeResults[0]?.transformResults ?? []) as readonly Stored[],
  };
}

type Stored = Readonly<Record<string, unknown>>;
const MAX = '9223372036854775807';

const numbers: readonly [string, object | undefined, object, string, unknown][] = [
  ['increment of a missing field sets it', undefined, { increment: int(5) }, 'integerValue', '5'],
  ['increment of a string sets the number', { f: text('x') }, { increment: int(5) }, 'integerValue', '5'],
  ['increment by a double makes a double', { f: int(1) }, { increment: double(0.5) }, 'doubleValue', 1.5],
  [
    'increment past the largest integer stays there',
    { f: int(MAX) },
    { increment: int(1) },
    'integerValue',
    MAX,
  ],
  [
    'increment past the smallest integer stays there',
    { f: int(`-${MAX}`) },
    { increment: int(-10) },
    'integerValue',
    '-9223372036854775808',
  ],
  ['maximum takes the larger', { f: int(3) }, { maximum: int(7) }, 'integerValue', '7'],
  ['maximum keeps the larger', { f: double(7.5) }, { maximum: int(7) }, 'doubleValue', 7.5],
  [
    'maximum of equal numbers of both types keeps the stored one',
    { f: int(3) },
    { maximum: double(3) },
    'integerValue',
    '3',
  ],
  [
    'maximum of a number and NaN is NaN',
    { f: int(3) },
    { maximum: double(Number.NaN) },
    'doubleValue',
    Number.NaN,
  ],
  ['minimum takes the smaller', { f: int(3) }, { minimum: double(2.5) }, 'doubleValue', 2.5],
  ['minimum of a missing field sets it', undefined, { minimum: int(4) }, 'integerValue', '4'],
  ['minimum of zeros keeps the stored one', { f: int(0) }, { minimum: double(-0) }, 'integerValue', '0'],
];

export const transformCases: readonly FirestoreCase[] = [
  ...numbers.map(([title, before, transform, type, value]) =>
    make(title, TRANSFORMS, async (world) => {
      const { field, results } = await accepted(transformed(world, before, transform), 'the transform');
      assert.deepEqual(field[type], value, `the field is ${JSON.stringify(field)}`);
      assert.deepEqual(results[0]?.[type], value, `the result is ${JSON.stringify(results[0])}`);
    }),
  ),
  make('append_missing_elements appends in order, each once, and answers null', TRANSFORMS, async (world) => {
    const before = { f: list(int(1), text('a')) };
    const appendMissingElements = { values: [double(1), int(2), int(2), text('a'), int(0)] };
    const { field, results } = await transformed(world, before, { appendMissingElements });
    const values = (field['arrayValue'] as { values: Stored[] }).values;
    assert.deepEqual(
      values.map((value) => value['integerValue'] ?? value['stringValue']),
      ['1', 'a', '2', '0'],
    );
    assert.equal(results[0]?.['valueType'], 'nullValue');
  }),
  make('append_missing_elements makes an array of what is missing or none', TRANSFORMS, async (world) => {
    const { field } = await transformed(
      world,
      { f: int(1) },
      { appendMissingElements: { values: [int(2)] } },
    );
    assert.equal((field['arrayValue'] as { values: Stored[] }).values.length, 1);
  }),
  make(
    'remove_all_from_array removes every equal element, also of the other number type',
    TRANSFORMS,
    async (world) => {
      const before = { f: list(int(1), int(2), double(1), text('1')) };
      const { field } = await transformed(world, before, { removeAllFromArray: { values: [int(1)] } });
      const values = (field['arrayValue'] as { values: Stored[] }).values;
      assert.deepEqual(
        values.map((value) => value['integerValue'] ?? value['stringValue']),
        ['2', '1'],
      );
    },
  ),
  make('The transforms of one write are applied in order', TRANSFORMS, async (world) => {
    const { field, results } = await transformed(
      world,
      { f: int(1) },
      { increment: int(2) },
      { maximum: int(10) },
      { increment: int(1) },
    );
    assert.equal(field['integerValue'], '11');
    assert.deepEqual(
      results.map((result) => result['integerValue']),
      ['3', '10', '11'],
    );
  }),
  make(
    'All kinds of transforms go together in one write, beside plain fields',
    TRANSFORMS,
    async ({ db, now }) => {
      await db.doc('c/a').set({ n: 1, tags: ['a', 'b'], old: true, m: { k: 1.5 } });
      await db.doc('c/a').update({
        at: FieldValue.serverTimestamp(),
        n: FieldValue.increment(2),
        tags: FieldValue.arrayUnion('b', 'c'),
        gone: FieldValue.arrayRemove('x'),
        'm.k': FieldValue.increment(1),
        plain: 'p',
        old: FieldValue.delete(),
      });
      const { at, ...rest } = (await db.doc('c/a').get()).data() ?? {};
      assert.deepEqual(rest, { n: 3, tags: ['a', 'b', 'c'], gone: [], m: { k: 2.5 }, plain: 'p' });
      assert.ok(
        Math.abs(at.toMillis() - now()) < 60_000,
        `the server's time is ${at.toDate().toISOString()}`,
      );
    },
  ),
  make('Every server timestamp of one commit is the same', TRANSFORMS, async ({ db }) => {
    const batch = db.batch();
    batch.set(db.doc('c/a'), { at: FieldValue.serverTimestamp(), also: FieldValue.serverTimestamp() });
    batch.set(db.doc('c/b'), { at: FieldValue.serverTimestamp() });
    await batch.commit();
    const [a, b] = await db.getAll(db.doc('c/a'), db.doc('c/b'));
    const times = [a?.get('at'), a?.get('also'), b?.get('at')].map(
      (time) => `${time.seconds}.${time.nanoseconds}`,
    );
    assert.equal(new Set(times).size, 1, times.join());
  }),
  make('None of 100 increments at once is lost', TRANSFORMS, async ({ db }) => {
    await atOnce(100, () => db.doc('c/a').set({ n: FieldValue.increment(1) }, { merge: true }));
    assert.equal((await db.doc('c/a').get()).get('n'), 100);
  }),
  make('increment of a string operand answers INVALID_ARGUMENT', TRANSFORMS, async (world) => {
    await refused(
      transformed(world, undefined, { increment: text('1') }),
      'INVALID_ARGUMENT',
      'a string operand',
    );
  }),
  make('maximum of a string operand answers INVALID_ARGUMENT', TRANSFORMS, async (world) => {
    await refused(
      transformed(world, undefined, { maximum: text('1') }),
      'INVALID_ARGUMENT',
      'a string operand',
    );
  }),
  make('A transform of a reserved field name answers INVALID_ARGUMENT', TRANSFORMS, async (world) => {
    const answer = transformed(world, undefined, { fieldPath: '__f__', increment: int(1) });
    await refused(answer, 'INVALID_ARGUMENT', 'the field __f__');
  }),
  make('500 transforms of one document in one commit are accepted', QUOTAS, async (world) => {
    await accepted(transformed(world, undefined, ...transforms(500)), '500 transforms');
  }),
  make('501 transforms of one document in one commit answer INVALID_ARGUMENT', QUOTAS, async (world) => {
    await refused(transformed(world, undefined, ...transforms(501)), 'INVALID_ARGUMENT', '501 transforms');
  }),
  make('The limit of 500 transforms holds for each document by itself', QUOTAS, async ({ commit, doc }) => {
    const write = (path: string): object => ({
      transform: { document: doc(path), fieldTransforms: transforms(300) },
    });
    await accepted(commit(write('c/a'), write('c/b')), '300 transforms of each of two documents');
  }),
];

const transforms = (count: number): object[] =>
  Array.from({ length: count }, (_, i) => ({ fieldPath: `f${i}`, increment: int(1) }));
