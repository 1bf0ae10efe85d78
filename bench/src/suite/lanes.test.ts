import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { laneOf, type Lane, units } from './lanes.ts';
import { testFiles } from './test-files.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

test('the lanes cover every test file of the repository, each once', () => {
  const everywhere = globSync('**/*.test.ts', {
    cwd: ROOT,
    exclude: (name) => /node_modules|dist/.test(name),
  });
  const planned = units(ROOT, testFiles(ROOT)).flatMap(({ files }) => files);
  assert.ok(planned.length > 200);
  assert.deepEqual(planned.toSorted(), everywhere.toSorted());
});

test('a process is shared by files of the lane for it alone, and by few enough', () => {
  for (const { lane, files } of units(ROOT, testFiles(ROOT))) {
    assert.ok(
      files.length > 0 && files.length <= (lane === 'together' ? 20 : 1),
      `${lane}: ${files.join(' ')}`,
    );
  }
});

const rules: readonly (readonly [what: string, modules: readonly string[], text: string, lane: Lane])[] = [
  ['starts processes', ['node:assert/strict', 'node:child_process'], '', 'children'],
  ['starts processes and opens sockets', ['node:net', 'node:child_process'], '', 'children'],
  ['opens sockets', ['node:http'], '', 'sockets'],
  ['calls Google', ['@google-cloud/pubsub'], '', 'sockets'],
  ['calls Redis', ['ioredis'], '', 'sockets'],
  ['changes the environment when it is loaded', [], "process.env['X'] ??= 'none';\n", 'sockets'],
  ['cuts stack traces when it is loaded', [], 'const a = 1;\nError.stackTraceLimit = 0;\n', 'sockets'],
  [
    'searches before its first test',
    [],
    'const [found] = await Promise.allSettled([search()]);\n',
    'sockets',
  ],
  ['has a hook', [], 'before(() => {});\n', 'together'],
  ['reads a file', ['node:fs', 'node:path'], "test('x', async () => {\n  await read();\n});\n", 'together'],
];

for (const [what, modules, text, lane] of rules) {
  test(`a file that ${what} is in the lane ${lane}`, () => {
    const reached = { sources: ['/a.test.ts'], modules: new Set(modules) };
    assert.equal(
      laneOf(reached, () => text),
      lane,
    );
  });
}

test('a hook in a file that several may load belongs to one process', () => {
  const reached = { sources: ['/a.test.ts', '/testing/fixture.ts'], modules: new Set<string>() };
  assert.equal(
    laneOf(reached, (file) => (file === '/a.test.ts' ? '' : 'after(() => {});\n')),
    'sockets',
  );
});
