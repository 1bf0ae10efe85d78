import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { appendFile, cp, mkdtemp, readdir, readFile, rm, stat, symlink, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { unzipSync } from 'fflate';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COPIED = ['package.json', 'package-lock.json', 'tsconfig.base.json'];

/** What packaging reads, without what it makes; third-party packages are shared. */
async function copyOf(root: string, to: string): Promise<string> {
  const { workspaces } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    workspaces: string[];
  };
  for (const file of COPIED) await cp(join(root, file), join(to, file));
  for (const workspace of workspaces) {
    for (const part of ['package.json', 'tsconfig.json', 'src']) {
      await cp(join(root, workspace, part), join(to, workspace, part), { recursive: true }).catch(
        (error: NodeJS.ErrnoException) => assert.equal(error.code, 'ENOENT'),
      );
    }
  }
  await symlink(join(ROOT, 'node_modules'), join(to, 'node_modules'));
  return to;
}

async function touched(folder: string): Promise<void> {
  for (const name of await readdir(folder, { recursive: true })) {
    if (!name.startsWith('node_modules')) await utimes(join(folder, name), 1_000_000_000, 1_000_000_000);
  }
}

/** Hash and path of each archive, as the command prints them. */
async function packaged(
  root: string,
  umask: string,
  env: Record<string, string>,
  more: readonly string[] = [],
): Promise<string> {
  const command = `umask ${umask} && exec "$0" --conditions=source packaging/src/cli.ts "$@"`;
  const { stdout } = await promisify(execFile)('sh', ['-c', command, process.execPath, ...more], {
    cwd: root,
    env: { PATH: process.env['PATH'] ?? '', ...env },
  });
  return stdout;
}

test('the same source gives the same archives: again, elsewhere, with another umask, zone, locale and file times', async (t) => {
  const scratch = await mkdtemp(join(tmpdir(), 'packaging-'));
  t.after(() => rm(scratch, { recursive: true, force: true }));
  const here = await copyOf(ROOT, join(scratch, 'here'));
  const there = await copyOf(here, join(scratch, 'quite/another place'));
  await touched(there);
  const first = await packaged(here, '022', { TZ: 'UTC' });
  assert.match(
    first,
    /^[0-9a-f]{64} {2}build\/functions\.zip {2}\d+ KB\n[0-9a-f]{64} {2}build\/republisher\.zip /,
  );
  assert.equal(await packaged(here, '022', { TZ: 'UTC' }), first);
  assert.equal(await packaged(there, '077', { TZ: 'Pacific/Auckland', LC_ALL: 'de_DE.UTF-8' }), first);

  const folder = join(there, 'build/functions');
  assert.equal((await stat(join(folder, 'index.js'))).mode & 0o777, 0o644);
  assert.equal((await stat(join(folder, 'chunks'))).mode & 0o777, 0o755);
  const zip = unzipSync(await readFile(`${folder}.zip`));
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) =>
    entry.isFile(),
  );
  assert.equal(Object.keys(zip).length, files.length);
  for (const [name, content] of Object.entries(zip)) {
    assert.deepEqual(Buffer.from(content), await readFile(join(folder, name)));
    assert.ok(!Buffer.from(content).includes(scratch), `${name} names the place it was made at`);
  }

  // A changed source is another archive, and what is no longer made is not left behind.
  const source = join(here, 'functions/src/main.ts');
  await appendFile(source, "\nconsole.log('changed');\n");
  const env = { TZ: 'UTC', INIT_CWD: join(here, 'examples') };
  const changed = await packaged(here, '022', env, ['--sagas', 'src/sagas/definitions.ts']);
  assert.notEqual(changed.split('\n')[0], first.split('\n')[0]);
  assert.equal(changed.split('\n')[1], first.split('\n')[1]);
  const chunks = await readdir(join(dirname(source), '../../build/functions/chunks'));
  const zipped = Object.keys(unzipSync(await readFile(join(here, 'build/functions.zip'))));
  assert.equal(zipped.filter((name) => name.startsWith('chunks/')).length, chunks.length);
  // The definitions of sagas are in the functions, for the one that runs them.
  assert.ok(zipped.includes('sagas.js'));
  assert.ok(!Object.keys(zip).includes('sagas.js'));
});
