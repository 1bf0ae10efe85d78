/** The runner over folders of its own, in which things go wrong. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { leaked, MARK } from './leaks.ts';

const CLI = fileURLToPath(new URL('./cli.ts', import.meta.url));
const IMPORTS = "import assert from 'node:assert/strict';\nimport { test } from 'node:test';\n";
const PASSES = `${IMPORTS}test('passes', () => {});\n`;
const SOCKETS = "import 'node:net';\n";

type Ended = Readonly<{ status: number | null; lines: readonly string[]; out: string }>;

function suite(t: TestContext, files: Readonly<Record<string, string>>, ...args: readonly string[]): Ended {
  const root = mkdtempSync(join(tmpdir(), 'suite-test-'));
  t.after(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, 'one/src'), { recursive: true });
  writeFileSync(join(root, 'package.json'), JSON.stringify({ type: 'module', workspaces: ['one'] }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, 'one/src', name), text);
  // A process that node:test started would not start others.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--conditions=source', CLI, `--root=${root}`, ...args],
    { encoding: 'utf8', env },
  );
  const out = stdout + stderr;
  return { status, out, lines: stdout.trim().split('\n') };
}

test('passes and skips are counted, and the exit code is 0', (t) => {
  const skips = `${SOCKETS}${IMPORTS}test('needs more', { skip: 'no curl on the PATH' }, () => {});\n`;
  const ended = suite(t, {
    'a.test.ts': PASSES,
    'b.test.ts': PASSES,
    'c.test.ts': SOCKETS + PASSES,
    'd.test.ts': skips,
  });
  assert.deepEqual([ended.status, ended.lines.at(-1)], [0, '3 passed, 0 failed, 1 skipped']);
  assert.match(ended.out, /needs more.*# no curl on the PATH/);
});

const fails = `${IMPORTS}test('fails', () => assert.equal(1, 2));\n`;
const hook = `import { after, test } from 'node:test';\nafter(() => { throw new Error('no end'); });\ntest('passes', () => {});\n`;
const planted: readonly (readonly [what: string, text: string, said: RegExp])[] = [
  ['a test that fails', fails, /1 !== 2/],
  [
    'a test that fails in a suite',
    `${IMPORTS}import { describe } from 'node:test';\ndescribe('s', () => { test('x', () => assert.equal(1, 2)); });\n`,
    /1 !== 2/,
  ],
  ['a file that does not load', `${IMPORTS}import './missing.ts';\n`, /missing\.ts/],
  ['a file that cannot be read as TypeScript', 'const a: = 1;\n', /b\.test\.ts/],
  ['a hook that fails', hook, /no end/],
  [
    'a rejection that nothing handles',
    `${IMPORTS}test('x', () => void Promise.reject(new Error('lost')));\n`,
    /lost/,
  ],
  ['a file without a test', 'export const a = 1;\n', /b\.test\.ts ran no test/],
];

for (const [what, text, said] of planted) {
  for (const [lane, imports] of [
    ['in a shared process', ''],
    ['in its own process', SOCKETS],
  ] as const) {
    test(`${what} makes the exit code 1, ${lane}`, (t) => {
      const { status, lines, out } = suite(t, { 'a.test.ts': PASSES, 'b.test.ts': imports + text });
      assert.equal(status, 1, out);
      assert.match(lines.at(-1) ?? '', /^[12] passed, 1 failed, 0 skipped$/, out);
      assert.match(out, said);
    });
  }
}

const leaves: readonly (readonly [what: string, left: string, said: RegExp])[] = [
  ['a variable of the environment', "process.env['LEFT'] = 'behind';", /variable LEFT=behind/],
  ['a global', 'Object.assign(globalThis, { left: 1 });', /global left/],
  [
    'a timer',
    'let turns = 0; const timer = setInterval(() => (turns += 1) > 200 && clearInterval(timer), 10);',
    /1 open: Timeout/,
  ],
  ['a listener', "process.on('SIGUSR1', () => {});", /1 listeners to SIGUSR1/],
];

for (const [what, left, said] of leaves) {
  test(`a file in a shared process that leaves ${what} behind fails, and the next one does not`, (t) => {
    const text = `${IMPORTS}test('leaves', () => { ${left} });\n`;
    const { status, lines, out } = suite(t, { 'a.test.ts': text, 'b.test.ts': PASSES });
    assert.deepEqual([status, lines.at(-1)], [1, '2 passed, 1 failed, 0 skipped'], out);
    assert.match(out, said);
  });
}

test('a file that dies in the middle is a failure', (t) => {
  const text = `${SOCKETS}${IMPORTS}test('x', () => {});\ntest('dies', () => process.kill(process.pid, 'SIGKILL'));\n`;
  const { status, lines, out } = suite(t, { 'a.test.ts': PASSES, 'b.test.ts': text });
  assert.equal(status, 1, out);
  assert.match(lines.at(-1) ?? '', /^[12] passed, 1 failed, 0 skipped$/, out);
});

test('a process that a file left behind is an error that names the file', {
  skip: process.platform !== 'linux' && 'no /proc',
}, async (t) => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1_000)'], {
    env: { ...process.env, [MARK]: `leaks-${process.pid}:one/src/a.test.ts` },
    stdio: 'ignore',
  });
  const gone = new Promise((resolve) => child.on('exit', resolve));
  t.after(() => child.kill('SIGKILL'));
  const found = await leaked(`leaks-${process.pid}:`, 0);
  assert.deepEqual(found, [
    `one/src/a.test.ts left process ${child.pid} behind: ${process.execPath} -e setInterval(() => {}, 1_000)`,
  ]);
  child.kill('SIGKILL');
  await gone;
  assert.deepEqual(await leaked(`leaks-${process.pid}:`), []);
});

test('a test that leaves a child behind makes the exit code 1', {
  skip: process.platform !== 'linux' && 'no /proc',
}, (t) => {
  const text = `import { spawn } from 'node:child_process';\n${IMPORTS}test('leaves', () => spawn(process.execPath, ['-e', 'setTimeout(() => {}, 600_000)'], { detached: true, stdio: 'ignore' }).unref());\n`;
  const { status, out } = suite(t, { 'a.test.ts': text });
  for (const [, pid] of out.matchAll(/left process (\d+) behind/g)) process.kill(Number(pid), 'SIGKILL');
  assert.equal(status, 1, out);
  assert.match(out, /error: one\/src\/a\.test\.ts left process \d+ behind: .*setTimeout/);
  assert.match(out, /1 passed, 1 failed, 0 skipped/);
});

test('named files run alone, a name that is no test file is refused', (t) => {
  const files = { 'a.test.ts': PASSES, 'b.test.ts': fails };
  assert.deepEqual(suite(t, files, 'one/src/a.test.ts').lines.at(-1), '1 passed, 0 failed, 0 skipped');
  const { status, out } = suite(t, files, 'one/src/c.test.ts');
  assert.equal(status, 2);
  assert.match(
    out,
    /error: one\/src\/c\.test\.ts is no test file; accepted: paths such as one\/src\/a\.test\.ts/,
  );
});

test('searches are the files that read how many schedules to try', (t) => {
  // Written so that this file is not one itself.
  const name = 'TEST_SCHEDULES';
  const search = `${IMPORTS}test(\`\${process.env['${name}']} schedules\`, () => {});\n`;
  const { lines } = suite(t, { 'a.test.ts': PASSES, 'b.test.ts': search }, '--searches');
  assert.equal(lines.at(-1), '1 passed, 0 failed, 0 skipped');
});

test('the slowest files are printed on request, with their tests', (t) => {
  const { out } = suite(t, { 'a.test.ts': PASSES, 'b.test.ts': SOCKETS + PASSES }, '--slowest');
  for (const name of ['a', 'b'])
    assert.match(out, new RegExp(`^ +\\d+\\.\\d +\\d+\\.\\d +1 {2}one/src/${name}.test.ts$`, 'm'));
});
