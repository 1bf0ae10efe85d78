import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { importReader } from './imports.ts';

function folderWith(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'imports-'));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

test('follows imports, exports and dynamic imports from file to file, also in a circle', (t) => {
  const folder = folderWith(t, {
    'a.test.ts': "import assert from 'node:assert/strict';\nimport { b } from './b/b.ts';\n",
    'b/b.ts': "export {\n  c,\n} from '../c.ts';\nexport * from './d.ts';\n",
    'c.ts': "import './a.test.ts';\nconst net = await import('node:net');\n",
    'b/d.ts': "import { Redis,\n  type Cluster } from 'ioredis';\n",
  });
  const { sources, modules } = importReader()(join(folder, 'a.test.ts'));
  const names = ['a.test.ts', 'b/b.ts', 'b/d.ts', 'c.ts'];
  assert.deepEqual(
    sources.toSorted(),
    names.map((name) => join(folder, name)),
  );
  assert.deepEqual([...modules].toSorted(), ['ioredis', 'node:assert/strict', 'node:net']);
});

test('imports of types alone reach nothing', (t) => {
  const folder = folderWith(t, {
    'a.test.ts':
      "import type { Server } from 'node:http';\nexport type { B } from './b.ts';\nconst from = 'node:net';\n",
  });
  const { sources, modules } = importReader()(join(folder, 'a.test.ts'));
  assert.deepEqual([sources.length, [...modules]], [1, []]);
});

test('a package of the repository is followed into its sources', () => {
  const file = new URL('../../../emulator/src/stack/stack.test.ts', import.meta.url).pathname;
  const lanes = new URL('../order-cost/order-cost.test.ts', import.meta.url).pathname;
  const read = importReader();
  assert.ok(read(file).sources.some((source) => source.endsWith('/emulator/src/stack/stack.ts')));
  assert.ok(read(lanes).sources.some((source) => source.includes('/emulator/src/')));
});
