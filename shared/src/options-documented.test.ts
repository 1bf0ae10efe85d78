/**
 * Every option that a caller can give says what it is where it is left out, and a number or a length of time says its
 * limits: at least, at most, from, below. Options of one kind have one name, and no second one.
 */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { before, test } from 'node:test';

const SOURCES = new URL('./', import.meta.url);
/** Made in one file of the library and given in another: no caller writes them. */
const INTERNAL = ['BatchingOptions', 'CollectorOptions', 'InboxRunOptions', 'LeaseOptions'];
/** What is known of a subscription and a platform, for `checkWindows`: their limits are Google's. */
const OF_OTHERS = ['Windows', 'SubscriptionWindows'];

type Option = Readonly<{ path: string; type: string; comment: string; isOptional: boolean; kind: string }>;

const options: Option[] = [];

before(async () => {
  for (const file of await readdir(SOURCES, { recursive: true })) {
    if (!file.endsWith('.ts') || /\.test\.ts$|(?:^|\/)(?:testing|cli)\//.test(file)) continue;
    const source = await readFile(new URL(file, SOURCES), 'utf8');
    const types = source.matchAll(
      /export type (\w*(?:Options|RetryPauses|Windows)|RepublishPorts)(?:<\w+>)? =((?:(?!\nexport )[\s\S])*?)\n *\}>;/g,
    );
    for (const [, type = '', body = ''] of types) {
      const members = body.matchAll(/(?:^ *\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?^ {2,4}(\w+)(\??): ([^\n]*)/gm);
      for (const [, comment = '', name = '', mark, kind = ''] of members) {
        const line = comment.replace(/\s*\n\s*\*\s*/g, ' ');
        options.push({ path: `${type}.${name}`, type, comment: line, isOptional: mark === '?', kind });
      }
    }
  }
  assert.ok(options.length > 130, `only ${options.length} options are found`);
});

const lacking = (lacks: (option: Option) => boolean): readonly string[] =>
  options.filter((option) => !INTERNAL.includes(option.type) && lacks(option)).map(({ path }) => path);

test('every option is described', () => {
  assert.deepEqual(
    lacking(({ comment }) => comment.trim() === ''),
    [],
  );
});

test('every option that may be left out says what it is then', () => {
  const says = /default|absent|without|as for `/i;
  assert.deepEqual(
    lacking(({ isOptional, comment }) => isOptional && !says.test(comment)),
    [],
  );
});

test('every number and length of time says its limits', () => {
  const says = /at least|at most|from `?\d|not below|more than|below `|(?:\d|`) to (?:\d|`)|as for `/;
  assert.deepEqual(
    lacking(
      ({ kind, comment, type }) =>
        /^(?:Duration|number);/.test(kind) && !OF_OTHERS.includes(type) && !says.test(comment),
    ),
    [],
  );
});

test('a bound on time says what it bounds, and what mints names, keeps time and logs has one name', () => {
  const kinds: readonly (readonly [RegExp, readonly string[]])[] = [
    [/^Clock;|^Pick<Clock/, ['clock']],
    [/^Log;/, ['log']],
    [/^\(\) => string;/, ['newId']],
  ];
  for (const [kind, names] of kinds) {
    const found = options.filter((option) => kind.test(option.kind));
    assert.ok(found.length > 1);
    const others = found.filter(({ path }) => !names.includes(path.split('.')[1] ?? ''));
    assert.deepEqual(
      others.map(({ path }) => path),
      [],
    );
  }
  const never = /\.(?:timeout|attempts|tries|retryMin|retryMax|patience|project|now)$/;
  assert.deepEqual(
    lacking(({ path }) => never.test(path) && path !== 'GapOptions.timeout'),
    [],
  );
});
