/** The table of codes and the sources say the same, and of codes for what is not valid there are few. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CALL_CODES, CONFIG_CODES, MESSAGE_CODES, TRANSIENT_CODES } from './codes.ts';
import { VERDICTS } from './faults.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const OTHER = /(?:^|\/)testing\/|\.test\.ts$|contract\.ts$|(?:^|\/)codes\.ts$/;
const KINDS: Readonly<Record<string, ReadonlySet<string>>> = {
  Config: new Set(Object.keys(CONFIG_CODES)),
  Permanent: new Set([...Object.keys(MESSAGE_CODES), ...Object.keys(CALL_CODES)]),
  Transient: new Set(Object.keys(TRANSIENT_CODES)),
};
const ALL = new Set(Object.values(KINDS).flatMap((codes) => [...codes]));

let sources = '';

before(async () => {
  for (const folder of ['shared/src', 'functions/src', 'appengine/src']) {
    for (const file of await readdir(join(ROOT, folder), { recursive: true })) {
      if (!file.endsWith('.ts') || OTHER.test(file)) continue;
      // Without comments: an example makes errors of its reader's own.
      const text = await readFile(join(ROOT, folder, file), 'utf8');
      sources += text.replace(/^ *\* .*$/gm, '');
    }
  }
});

test('every error is made with a code of its kind that the table has', () => {
  const made = [...sources.matchAll(/new (Config|Permanent|Transient)Error\(\s*'([A-Z_]+)'/g)];
  assert.ok(made.length > 90, `only ${made.length} errors are found in the sources`);
  const unknown = made.filter(([, kind = '', code = '']) => KINDS[kind]?.has(code) !== true);
  assert.deepEqual(
    unknown.map(([, kind, code]) => `${kind} ${code}`),
    [],
  );
  const verdicts = Object.values(VERDICTS).flatMap(({ known, otherwise }) => [
    ...Object.values(known),
    otherwise,
  ]);
  for (const { code, fault } of verdicts) {
    assert.ok(KINDS[fault === 'message' ? 'Permanent' : 'Transient']?.has(code), code);
  }
});

test('every code of the table is one that the sources use', () => {
  const quoted = new Set([...sources.matchAll(/'([A-Z][A-Z_]+)'/g)].map(([, code]) => code));
  assert.deepEqual(
    [...ALL].filter((code) => !quoted.has(code)),
    [],
  );
});

test('what is not valid has one code for options, and few for messages and jobs', () => {
  const codes = [...new Set([...sources.matchAll(/\bINVALID_[A-Z_]+\b/g)].map(([code]) => code))];
  assert.deepEqual(codes.toSorted(), [
    'INVALID_ATTRIBUTE',
    'INVALID_BODY',
    'INVALID_DATA',
    'INVALID_JOB',
    'INVALID_MESSAGE',
    'INVALID_OPTION',
  ]);
});
