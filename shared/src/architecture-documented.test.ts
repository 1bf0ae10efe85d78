/**
 * The files that docs/architecture.md names are there.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Where a name without its whole path may stand. */
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
