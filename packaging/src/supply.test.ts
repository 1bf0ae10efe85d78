/** What comes with a package: what it is made of, a first file that refuses an old Node, and a way without the prelude. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DEPLOYABLES } from './deployables.ts';
import { push, type Servers, startServers } from './local-servers.ts';
import { deployedFiles, type Packaged, writePackage } from './package.ts';
import { started } from './started.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
let out: string;
let servers: Servers;
const packed = new Map<string, Packaged>();

before(async () => {
  servers = await startServers();
  await mkdir(join(ROOT, 'packaging/dist'), { recursive: true });
  out = await mkdtemp(join(ROOT, 'packaging/dist/supply-'));
  for (const deployable of DEPLOYABLES) {
    packed.set(
      deployable.name,
      await writePackage(await deployedFiles(ROOT, deployable), deployable.name, out),
    );
  }
});
after(async () => {
  await rm(out, { recursive: true, force: true });
  await servers.close();
});

type Bom = Readonly<{
  bomFormat: string;
  specVersion: string;
  serialNumber: string;
  metadata: object;
  components: readonly Readonly<{ 'bom-ref': string; name: string; version: string; hashes?: object[] }>[];
  dependencies: readonly Readonly<{ ref: string; dependsOn: readonly string[] }>[];
}>;

for (const { name } of DEPLOYABLES) {
  test(`${name}: the list names every package of the lock file, with its hash, and every edge between them`, async () => {
    const { folder, sbom, sha256 } = packed.get(name)!;
    const bom = JSON.parse(await readFile(sbom, 'utf8')) as Bom;
    const lock = JSON.parse(await readFile(join(folder, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, object>;
    };
    assert.deepEqual([bom.bomFormat, bom.specVersion], ['CycloneDX', '1.5']);
    assert.equal(bom.components.length, Object.keys(lock.packages).length - 1);
    assert.ok(bom.components.every(({ hashes, version }) => version !== '' && hashes?.length === 1));
    assert.ok(JSON.stringify(bom.metadata).includes(sha256));
    const refs = new Set([...bom.components.map((one) => one['bom-ref']), bom.dependencies[0]?.ref]);
    assert.equal(refs.size, bom.components.length + 1);
    for (const { ref, dependsOn } of bom.dependencies)
      assert.ok([ref, ...dependsOn].every((one) => refs.has(one)));
    const reached = new Set(bom.dependencies.flatMap(({ dependsOn }) => dependsOn));
    assert.equal(reached.size > 0.9 * bom.components.length, true);
  });

  test(`${name}: the same package gives the same list`, async () => {
    const { sbom } = packed.get(name)!;
    const before = await readFile(sbom);
    const deployable = DEPLOYABLES.find((one) => one.name === name)!;
    await writePackage(await deployedFiles(ROOT, deployable), name, out);
    assert.deepEqual(await readFile(sbom), before);
  });

  test(`${name}: an old Node is refused in one line`, async () => {
    const { folder } = packed.get(name)!;
    const old = `data:text/javascript,Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.0' } })`;
    await assert.rejects(
      promisify(execFile)(process.execPath, [`--import=${old}`, join(folder, 'index.js')]),
      {
        code: 1,
        stderr: 'cannot start: this is Node 20.19.0; accepted: 22 or later\n',
      },
    );
  });
}

test('without the prelude a function works as well', async (t) => {
  const { folder } = packed.get('functions')!;
  const running = await started({ folder, target: 'fifo', env: { ...servers.env, COLD_START: 'plain' } });
  t.after(running.close);
  const { status } = await running.post('/', push('plain', { sequence: '1', sequenceKey: 'plain' }));
  assert.equal(status, 204);
});
