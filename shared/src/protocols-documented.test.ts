/**
 * Every rule that a test of the repository is named after is in docs/protocols.md, once.
 */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const WORKSPACES = [
  'shared',
  'functions',
  'appengine',
  'emulator',
  'proofs',
  'examples',
  'bench',
  'packaging',
  'terraform/checks',
];
/** A letter or two, a number, and perhaps a letter; several may precede the colon: `B01, B50:`, `B20 (a), B21:`. */
const RULE = /^[A-Z]{1,2}\d{1,2}[a-z]?$/;
const TITLE = /\b(?:test|suite)\(\s*(['"`])([A-Z]{1,2}\d[^:'"`]{0,40}):/g;

async function rulesOfTests(): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const workspace of WORKSPACES) {
    const folder = join(ROOT, workspace, 'src');
    const files = (await readdir(folder, { recursive: true })).filter((file) =>
      /(?:\.test|contract)\.ts$/.test(file),
    );
    for (const file of files) {
      const text = await readFile(join(folder, file), 'utf8');
      for (const [, , names = ''] of text.matchAll(TITLE)) {
        for (const name of names.replaceAll(/\([a-z]\)/g, '').split(/,|\band\b/))
          if (RULE.test(name.trim())) found.set(name.trim(), `${workspace}/src/${file}`);
      }
    }
  }
  return found;
}

async function rulesOfPage(): Promise<readonly string[]> {
  const page = await readFile(join(ROOT, 'docs/protocols.md'), 'utf8');
  return [...page.matchAll(/^\| ([A-Z][\w, ]*) \|/gm)].flatMap(([, names = '']) => names.split(', '));
}

test('each rule that a test is named after is described', async () => {
  const tests = await rulesOfTests();
  assert.ok(tests.size > 60, 'the tests are not where they are looked for');
  const described = new Set(await rulesOfPage());
  assert.deepEqual(
    [...tests].filter(([rule]) => !described.has(rule)),
    [],
  );
});

test('each rule is described once', async () => {
  const rules = await rulesOfPage();
  assert.deepEqual(
    rules.filter((rule, index) => rules.indexOf(rule) !== index),
    [],
  );
});
