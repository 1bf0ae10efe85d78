import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { packDefinitions } from './saga-definitions.ts';
import { readWorkspaces } from './workspaces.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const workspaces = await readWorkspaces(ROOT);

const SAGAS = `
import { defineSaga } from 'pubsub-guarantees/sagas';
import { topic } from './topics.ts';
export const trip = defineSaga('trip', { version: 1 }).retriable('letter', { topic, do: () => ({}) });
`;

/** A folder outside of the repository, as a user's own project is. */
async function project(t: TestContext, text: string): Promise<string> {
  const scratch = await mkdtemp(join(tmpdir(), 'definitions-'));
  t.after(() => rm(scratch, { recursive: true }));
  const folder = join(scratch, 'shop/src');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'topics.ts'), "export const topic = 'letters';\n");
  await writeFile(join(folder, 'sagas.ts'), text);
  return join(folder, 'sagas.ts');
}

test('definitions of another project are packed whole, with the library, and the same wherever they stand', async (t) => {
  const text = `${SAGAS}export default [trip];\n`;
  const [here, there] = [await project(t, text), await project(t, text)];
  const packed = await packDefinitions(ROOT, workspaces, here);
  assert.deepEqual(packed, await packDefinitions(ROOT, workspaces, there));

  // Beside nothing: what it needs is inside.
  const scratch = await mkdtemp(join(tmpdir(), 'packed-'));
  t.after(() => rm(scratch, { recursive: true }));
  const file = join(scratch, 'sagas.mjs');
  await writeFile(file, packed);
  const { default: list } = (await import(pathToFileURL(file).href)) as { default: readonly object[] };
  assert.deepEqual(
    list.map((saga) => Reflect.get(saga, 'name') as unknown),
    ['trip'],
  );
});

test('a file without a default export, and one that is not there, are refused', async (t) => {
  const file = await project(t, SAGAS);
  await assert.rejects(packDefinitions(ROOT, workspaces, file), /has no default export; accepted: /);
  await assert.rejects(packDefinitions(ROOT, workspaces, '/nowhere/sagas.ts'), /Could not resolve/);
});
