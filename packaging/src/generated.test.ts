import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DEPLOYABLES } from './deployables.ts';
import { deployedFiles } from './package.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

for (const deployable of DEPLOYABLES) {
  const { name } = deployable;
  const files = deployedFiles(ROOT, deployable);
  const text = async (path: string): Promise<string> => Buffer.from((await files).get(path) ?? '').toString();

  test(`${name}: the manifest has exact versions of what the bundle imports, and nothing runs in the builder`, async () => {
    const manifest = JSON.parse(await text('package.json'));
    assert.equal(manifest.main, 'index.js');
    assert.equal(manifest.type, 'module');
    assert.equal(manifest.scripts['gcp-build'], '');
    assert.equal(manifest.scripts.build, undefined);
    assert.equal(manifest.devDependencies, undefined);
    assert.doesNotMatch(manifest.engines.node, />/);
    const imported = new Set<string>();
    for (const [path, content] of await files) {
      if (!path.endsWith('.js')) continue;
      const code = Buffer.from(content).toString();
      for (const [, specifier = ''] of code.matchAll(/^(?:import|export)\b[^;]*?\bfrom "([^".][^"]*)"/gm)) {
        imported.add(specifier);
      }
      for (const [, specifier = ''] of code.matchAll(/\bimport\("([^".][^"]*)"\)/g)) imported.add(specifier);
    }
    const foreign = [...imported].filter((specifier) => !specifier.startsWith('node:')).toSorted();
    assert.deepEqual(Object.keys(manifest.dependencies).toSorted(), foreign);
    assert.ok(!foreign.some((specifier) => specifier.startsWith('pubsub-guarantees')));
    for (const version of Object.values(manifest.dependencies))
      assert.match(String(version), /^\d+\.\d+\.\d+$/);
  });

  test(`${name}: the lock file is that of the manifest, names no registry and holds no development package`, async () => {
    const lock = JSON.parse(await text('package-lock.json'));
    const manifest = JSON.parse(await text('package.json'));
    assert.deepEqual(lock.packages[''].dependencies, manifest.dependencies);
    for (const [path, entry] of Object.entries(lock.packages as Record<string, Record<string, unknown>>)) {
      if (path === '') continue;
      assert.match(String(entry['integrity']), /^sha512-/, path);
      assert.equal(entry['resolved'], undefined, path);
      assert.equal(entry['link'], undefined, path);
    }
    for (const name of ['typescript', 'esbuild', 'fflate', 'node', 'yaml', 'fast-check']) {
      assert.equal(lock.packages[`node_modules/${name}`], undefined);
    }
  });

  test(`${name}: what is uploaded leaves node_modules out, and nothing that is needed`, async () => {
    assert.match(await text('.gcloudignore'), /^node_modules\/$/m);
    assert.doesNotMatch(await text('.gcloudignore'), /include|json|yaml|chunks/);
  });
}

test('App Engine starts the republisher on the port it gives, and never redirects a task', async () => {
  const republisher = DEPLOYABLES.find(({ name }) => name === 'republisher');
  const yaml = republisher?.files['app.yaml'] ?? '';
  assert.match(yaml, /^runtime: nodejs2[24]$/m);
  assert.match(yaml, /^entrypoint: node index\.js$/m);
  assert.match(yaml, /^instance_class: F1$/m);
  assert.doesNotMatch(yaml, /secure: always|^env_variables:/m);
});
