import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DEPLOYABLES } from './deployables.ts';
import { push, startServers } from './local-servers.ts';
import { deployedFiles, writePackage } from './package.ts';
import { started } from './started.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const run = promisify(execFile);

/** What a builder of Google's does with the folder; the reason where there is no registry to install from. */
async function installed(folder: string): Promise<string | undefined> {
  const flags = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'];
  try {
    await run('npm', ['ci', ...flags, '--fetch-retries=0'], { cwd: folder });
    return undefined;
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string };
    const network = /\b(ENOTFOUND|ECONNREFUSED|ECONNRESET|EAI_AGAIN|ETIMEDOUT|ENOTCACHED|E5\d\d)\b/.exec(
      stderr,
    );
    if (network === null) throw new Error(`npm ci failed: ${stderr === '' ? message : stderr}`);
    return `no package registry (${network[0]})`;
  }
}

test('the packages install from their lock files alone, start, and serve', async (t) => {
  const out = await mkdtemp(join(tmpdir(), 'packaging-installed-'));
  t.after(() => rm(out, { recursive: true, force: true }));
  const folders = await Promise.all(
    DEPLOYABLES.map(async (deployable) => {
      const { folder } = await writePackage(await deployedFiles(ROOT, deployable), deployable.name, out);
      const before = await readFile(join(folder, 'package-lock.json'));
      const missing = await installed(folder);
      if (missing === undefined) {
        assert.deepEqual(await readFile(join(folder, 'package-lock.json')), before);
        await assert.rejects(access(join(folder, 'node_modules/typescript')));
      }
      return { folder, missing };
    }),
  );
  const missing = folders.find((folder) => folder.missing !== undefined)?.missing;
  if (missing !== undefined) {
    t.skip(`not installed: ${missing}`);
    return;
  }
  const [functions, republisher] = folders.map(({ folder }) => folder);
  assert.ok(functions !== undefined && republisher !== undefined);
  const servers = await startServers();
  t.after(() => servers.close());
  const delivered = servers.delivered(4);
  const attributes = { dedup: {}, delay: {}, fifo: { sequence: '1', sequenceKey: 'f' } };
  const pipeline = { sequence: '1', sequenceKey: 'p' };
  for (const [target, given] of Object.entries({ ...attributes, pipeline })) {
    const running = await started({ folder: functions, target, env: servers.env });
    try {
      const { status, text } = await running.post('/', push(`through-${target}`, given));
      assert.equal(status, 204, `${target}: ${text}`);
    } finally {
      await running.close();
    }
  }
  assert.deepEqual(
    await delivered,
    ['dedup', 'delay', 'fifo', 'pipeline'].map((target) => `through-${target}`),
  );

  const running = await started({ folder: republisher, env: servers.env });
  try {
    const health = await fetch(`${running.url}/health`);
    assert.deepEqual([health.status, await health.text()], [200, 'ok']);
    const stranger = await running.post('/republish', '{', { 'X-CloudTasks-QueueName': 'delay-queue' });
    assert.equal(stranger.status, 403);
  } finally {
    await running.close();
  }
});
