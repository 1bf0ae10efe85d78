import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { cyclesOf } from './cycles.ts';
import { measure } from './measure.ts';
import { commentsOf, countWords } from './words.ts';

test('cycles are found whole, each once, and a chain is none', () => {
  const graph = new Map([
    ['a', ['b']],
    ['b', ['c', 'd']],
    ['c', ['a']],
    ['d', ['e']],
    ['e', ['d', 'elsewhere']],
    ['f', ['a']],
    ['g', ['g']],
  ]);
  assert.deepEqual(
    cyclesOf(graph).toSorted((left, right) => left.join('').localeCompare(right.join(''))),
    [['a', 'b', 'c'], ['d', 'e'], ['g']],
  );
});

test('it counts a folder of the library', async () => {
  const { rows, rootNames } = await measure(['shared/src/firestore/']);
  const [row] = rows;
  assert.ok(row !== undefined);
  const folder = new URL('../../../shared/src/firestore/', import.meta.url);
  const sources = readdirSync(folder).filter((name) => !name.endsWith('.test.ts'));
  assert.deepEqual([rows.length, row.files, row.exportedFunctions >= 3], [1, sources.length, true]);
  assert.ok(row.code < row.lines && row.mostCode < row.code && rootNames > 20);
});

test('the library has no cycle of files and none of folders', async () => {
  const { cycles } = await measure(['shared/src/async']);
  assert.deepEqual(cycles, { files: [], folders: [], imports: [] });
});

test('the root exports at most 40 names', async () => {
  const { rootNames } = await measure(['shared/src/async']);
  assert.ok(rootNames > 20 && rootNames <= 40, `${rootNames} names`);
});

test('words without an actor count in comments, whole and in either case, and not in code', () => {
  const text = [
    '/** Somebody waits;',
    ' * nobody answers. */',
    "const nobody = 'https://whoever.example';  // Whoever, whoever",
    'const somebodyElse = 1;',
  ].join('\n');
  assert.deepEqual(countWords(commentsOf(text)), { whoever: 2, somebody: 1, nobody: 1 });
});
