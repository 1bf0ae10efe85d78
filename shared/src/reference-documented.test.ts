/**
 * The tables of docs/reference.md name what the code reads and says: variables, events of the log, codes of windows,
 * limits and dead letters. What is in one and not in the other is named. Metrics have a test of their own beside them.
 */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CALL_CODES, MESSAGE_CODES } from './codes.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** What users deploy or import. `packaging` has the code that runs before everything else in a packed process. */
const FOLDERS = ['shared/src', 'functions/src', 'appengine/src', 'packaging/src/prelude'];
const NOT_SHIPPED = /(?:^|\/)testing\/|\.test\.ts$|contract\.ts$/;

/** An example makes errors of its reader's own. */
const withoutComments = (text: string): string => text.replace(/^ *\* .*$/gm, '');

let page = '';
const sources = new Map<string, string>();

before(async () => {
  page = await readFile(join(ROOT, 'docs/reference.md'), 'utf8');
  for (const folder of FOLDERS) {
    for (const file of await readdir(join(ROOT, folder), { recursive: true })) {
      if (file.endsWith('.ts') && !NOT_SHIPPED.test(file))
        sources.set(`${folder}/${file}`, withoutComments(await readFile(join(ROOT, folder, file), 'utf8')));
    }
  }
  assert.ok(sources.size > 150, 'the sources are not where they are looked for');
});

/** The text between a heading and the next one of its level. */
function section(title: string): string {
  const level = /^#+/.exec(title)?.[0] ?? '';
  const [, after] = page.split(`\n${title}\n`);
  assert.ok(after !== undefined, `docs/reference.md has no heading ${title}`);
  return after.split(new RegExp(`\n${level} `))[0] ?? '';
}

/** What the first cells of a section's rows name in backticks. */
const named = (title: string): ReadonlySet<string> =>
  new Set(
    [...section(title).matchAll(/^\| ([^|]*`[^|]*)\|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([A-Za-z_0-9]+)`/g)].map(([, name = '']) => name),
    ),
  );

const found = (pattern: RegExp, files: (file: string) => boolean = () => true): ReadonlySet<string> =>
  new Set(
    [...sources].flatMap(([file, text]) =>
      files(file) ? [...text.matchAll(pattern)].map(([, name = '']) => name) : [],
    ),
  );

const missing = (from: ReadonlySet<string>, wanted: Iterable<string>): readonly string[] =>
  [...wanted].filter((name) => !from.has(name)).toSorted();

/** The platform sets these, and nothing asks a deployer for them. */
const OF_THE_PLATFORM = ['K_SERVICE', 'GAE_ENV', 'GAE_SERVICE', 'GAE_MEMORY_MB'];

test('every variable that a deployable reads is described, and every one that is described is read', () => {
  const readers = (file: string): boolean =>
    /^(?:functions|appengine|packaging)\/|^shared\/src\/environment\.ts$/.test(file);
  const read = found(
    /(?:environment,\s*(?:project,\s*)?|environment\[|process\.env\[|variable = )'([A-Z][A-Z0-9_]+)'/g,
    readers,
  );
  assert.ok(read.size > 35, `only ${read.size} variables are found in the sources`);
  const described = new Set([
    ...named('## Variables of a function'),
    ...named('## Variables of the republisher'),
  ]);
  assert.deepEqual(
    missing(
      described,
      [...read].filter((name) => !OF_THE_PLATFORM.includes(name)),
    ),
    [],
  );
  assert.deepEqual(missing(found(/'([A-Z][A-Z0-9_]+)'/g, readers), described), []);
});

test('every event of the log is described, and every one that is described is logged', () => {
  const events = new Set<string>();
  for (const text of sources.values()) {
    const places = [
      ...text.matchAll(/\bevent(?::| =)([^;{}\n]*(?:'[a-z_]+'[^;{}\n]*)+)/g),
      ...text.matchAll(/unguarded\([^)]*\)/g),
    ];
    for (const [place] of places)
      for (const [, event = ''] of place.matchAll(/'([a-z]+(?:_[a-z]+)+)'/g)) events.add(event);
  }
  assert.ok(events.size > 25, `only ${events.size} events are found in the sources`);
  assert.deepEqual(missing(named('### Events'), events), []);
  const quoted = found(/'([a-z]+(?:_[a-z]+)+)'/g);
  const described = [...named('### Events')].filter((name) => /^[a-z]+_[a-z_]+$/.test(name));
  assert.deepEqual(missing(quoted, described), []);
});

test('every code of a window is described, and every one that is described is given', () => {
  const codes = found(/code: '([A-Z_]+)'/g, (file) => file === 'shared/src/dedup/windows.ts');
  assert.ok(codes.size > 8);
  assert.deepEqual(named('## Windows that do not fit'), codes);
});

test('every variable that a limit is about is in the table of limits', () => {
  const limits = found(/(?:small|large): '([A-Z_]+)'/g, (file) => file === 'functions/src/limits.ts');
  assert.ok(limits.size > 4);
  const text = section('## Limits that must fit each other');
  assert.deepEqual(
    [...limits].filter((name) => !text.includes(`\`${name}\``)),
    [],
  );
});

test('every code that can make a dead letter is described, and every one that is described is given', () => {
  const given = found(/new PermanentError\(\s*'([A-Z_]+)'/g);
  assert.ok(given.size > 25, `only ${given.size} codes are found in the sources`);
  const described = named('## Dead-letter reasons');
  assert.deepEqual(missing(described, missing(new Set(Object.keys(CALL_CODES)), given)), []);
  assert.deepEqual([...described].toSorted(), Object.keys(MESSAGE_CODES).toSorted());
});
