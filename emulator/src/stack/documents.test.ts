/** What the documents print must work as it is printed. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { parseSeed } from '../seed/seed-file.ts';
import { folder } from './cli-fixture.ts';
import { type Stack, startStack } from './stack.ts';

const README = new URL('../../README.md', import.meta.url);
const LOCAL = new URL('../../../docs/local.md', import.meta.url);
const DEFAULT_CONTROL = 'http://127.0.0.1:8703';

const blocks = (text: string, wanted: string): readonly string[] =>
  [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].flatMap(([, language, code = '']) =>
    language === wanted ? [code] : [],
  );

const hasCurl = spawnSync('curl', ['--version'], { stdio: 'ignore' }).status === 0;

let stack: Stack;
before(async () => {
  const [seed = ''] = blocks(await readFile(README, 'utf8'), 'yaml');
  stack = await startStack({ seed: parseSeed(seed, 'README.md') });
});
after(() => stack?.close());

test('the seed of the README makes what it says', () => {
  const { pubsub, tasks, firestore } = stack.state() as unknown as Record<string, Record<string, number>>;
  assert.deepEqual(
    [pubsub?.['topics'], pubsub?.['subscriptions'], tasks?.['queues'], firestore?.['documents']],
    [2, 4, 1, 1],
  );
});

for (const document of [README, LOCAL]) {
  const name = document.pathname.split('/').slice(-2).join('/');
  test(`the requests of ${name} are answered`, { skip: !hasCurl && 'curl is not on the path' }, async (t) => {
    const scripts = blocks(await readFile(document, 'utf8'), '').filter((code) => code.includes('curl'));
    assert.ok(scripts.length > 1);
    const cwd = folder(t)('.');
    for (const script of scripts) {
      const here = script.replaceAll(DEFAULT_CONTROL, stack.addresses.control);
      const { stdout } = await promisify(execFile)('sh', ['-e', '-c', here], { cwd });
      assert.equal(stdout.includes('"error"'), false, `${here}\n${stdout}`);
    }
  });
}
