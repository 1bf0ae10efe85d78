/**
 * The links of every Markdown file that git keeps: a relative one leads to a file or a folder of the repository, and one
 * with an anchor to a heading of that file. Addresses on the web are not asked.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Made by tools, or installed: not the repository's. */
const SKIPPED = new Set(['node_modules', 'dist', 'build', 'coverage']);

async function pages(folder: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isFile() && entry.name.endsWith('.md')) found.push(path);
    if (entry.isDirectory() && !SKIPPED.has(entry.name) && !entry.name.startsWith('.'))
      found.push(...(await pages(path)));
  }
  return found;
}

const withoutCode = (text: string): string =>
  text.replaceAll(/^```[\s\S]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '');

/** The anchors of a page's headings, as GitHub makes them: the second heading of one text has `-1` behind it. */
function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  const counts = new Map<string, number>();
  for (const [, title = ''] of text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const anchor = title
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, '')
      .replaceAll(' ', '-');
    const count = counts.get(anchor) ?? 0;
    counts.set(anchor, count + 1);
    anchors.add(count === 0 ? anchor : `${anchor}-${count}`);
  }
  return anchors;
}

/** What is wrong with the link, or undefined. */
function fault(page: string, target: string, texts: ReadonlyMap<string, string>): string | undefined {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : resolve(dirname(page), decodeURIComponent(path));
  if (!file.startsWith(ROOT.replace(/\/$/, ''))) return 'leads out of the repository';
  if (!existsSync(file)) return 'leads to no file';
  if (anchor === undefined) return undefined;
  const text = texts.get(file);
  if (text === undefined) return 'has an anchor, and does not lead to a page';
  return anchorsOf(text).has(anchor) ? undefined : 'leads to no heading';
}

test('every relative link of every page leads to a file, and its anchor to a heading', async () => {
  const texts = new Map<string, string>();
  for (const page of await pages(ROOT)) texts.set(page, await readFile(page, 'utf8'));
  const broken: string[] = [];
  let checked = 0;
  for (const [page, text] of texts) {
    for (const [, target = ''] of withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      checked += 1;
      const what = fault(page, target, texts);
      if (what !== undefined) broken.push(`${relative(ROOT, page)}: ${target} ${what}`);
    }
  }
  assert.ok(checked > 100, 'the links are not where they are looked for');
  assert.deepEqual(broken, []);
});

test('a link without a file, without a heading or out of the repository is noticed', () => {
  const page = join(ROOT, 'README.md');
  const texts = new Map([[page, '# One\n\n## Two words, and `code`\n\n## One\n']]);
  const faultOf = (target: string) => fault(page, target, texts);
  assert.equal(faultOf('docs'), undefined);
  assert.equal(faultOf('#two-words-and-code'), undefined);
  assert.equal(faultOf('README.md#one-1'), undefined);
  assert.equal(faultOf('#one-2'), 'leads to no heading');
  assert.equal(faultOf('docs/no-such-page.md'), 'leads to no file');
  assert.equal(faultOf('../elsewhere'), 'leads out of the repository');
  assert.equal(faultOf('package.json#scripts'), 'has an anchor, and does not lead to a page');
});
