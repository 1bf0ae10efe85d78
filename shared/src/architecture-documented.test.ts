/**
 * The files that docs/architecture.md names are there, and the walk of an in-order delivery stays a short one.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Where a name without its whole path is allowed. */
const FOLDERS = ['', 'shared/src', 'shared/src/order', 'docs'];

test('every file that the map of the architecture names is there', async () => {
  const page = await readFile(join(ROOT, 'docs/architecture.md'), 'utf8');
  const names = [...page.matchAll(/`([\w./-]+\.ts)`/g)].map(([, name = '']) => name);
  assert.ok(names.length > 40);
  assert.deepEqual(
    names.filter((name) => !FOLDERS.some((folder) => existsSync(join(ROOT, folder, name)))),
    [],
  );
});

test('the walk of an in-order delivery is at most twelve stops in five files', async () => {
  const page = await readFile(join(ROOT, 'docs/architecture.md'), 'utf8');
  const [, walk = ''] = page.split('## The walk of an in-order delivery');
  const stops = [...walk.matchAll(/^\| (\d+) \| `([\w-]+\.ts)`(?: `(\w+)`)?/gm)];
  assert.ok(stops.length > 0 && stops.length <= 12, `${stops.length} stops`);
  const files = new Set(stops.map(([, , file = '']) => file));
  assert.ok(files.size <= 5, [...files].join(' '));
  for (const [, stop, file = '', name] of stops) {
    const source = await readFile(join(ROOT, 'shared/src/order', file), 'utf8');
    if (name !== undefined) assert.match(source, new RegExp(`\\b${name}\\(`), `stop ${stop}`);
  }
});
