import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Entry, type Lock, lockedVersion, prunedLock } from './pruned-lock.ts';

const lockOf = (packages: Readonly<Record<string, Entry & Record<string, unknown>>>): Lock => ({
  lockfileVersion: 3,
  packages,
});
const ROOT = { name: 'deployed', version: '1.0.0' };
const pathsOf = (lock: Lock, ...names: string[]): readonly string[] =>
  Object.keys(prunedLock(lock, ROOT, Object.fromEntries(names.map((name) => [name, '1.0.0']))).packages);

test('keeps what is imported and what that needs, sorted, and nothing else', () => {
  const lock = lockOf({
    'node_modules/unrelated': { version: '1.0.0' },
    'node_modules/b': { version: '1.0.0' },
    'node_modules/a': { version: '1.0.0', dependencies: { b: '^1.0.0' } },
  });
  assert.deepEqual(pathsOf(lock, 'a'), ['', 'node_modules/a', 'node_modules/b']);
});

test('a package that has a version of its own keeps it where it is', () => {
  const lock = lockOf({
    'node_modules/a': { version: '1.0.0', dependencies: { b: '^2.0.0', '@s/c': '1' } },
    'node_modules/a/node_modules/b': { version: '2.0.0', dependencies: { d: '1' } },
    'node_modules/b': { version: '1.0.0' },
    'node_modules/@s/c': { version: '1.0.0', dependencies: { b: '^1.0.0' } },
    'node_modules/d': { version: '1.0.0' },
  });
  assert.deepEqual(pathsOf(lock, 'a'), [
    '',
    'node_modules/@s/c',
    'node_modules/a',
    'node_modules/a/node_modules/b',
    'node_modules/b',
    'node_modules/d',
  ]);
});

test('says anew what is optional, and drops why a package is there and where it was downloaded', () => {
  const lock = lockOf({
    'node_modules/a': {
      version: '1.0.0',
      integrity: 'sha512-x',
      resolved: 'https://somewhere.example/a.tgz',
      devOptional: true,
      optionalDependencies: { linux: '1', windows: '1' },
      dependencies: { linux: '1', needed: '1' },
    },
    'node_modules/linux': { version: '1.0.0', dev: true },
    'node_modules/needed': { version: '1.0.0', optional: true },
  });
  const { packages } = prunedLock(lock, ROOT, { a: '1.0.0' });
  assert.deepEqual(packages['node_modules/a'], {
    version: '1.0.0',
    integrity: 'sha512-x',
    optionalDependencies: { linux: '1', windows: '1' },
    dependencies: { linux: '1', needed: '1' },
  });
  assert.deepEqual(packages['node_modules/linux'], { version: '1.0.0', optional: true });
  assert.deepEqual(packages['node_modules/needed'], { version: '1.0.0' });
});

test('takes the peers that a package cannot do without', () => {
  const lock = lockOf({
    'node_modules/a': {
      version: '1.0.0',
      peerDependencies: { must: '1', may: '1' },
      peerDependenciesMeta: { may: { optional: true } },
    },
    'node_modules/must': { version: '1.0.0' },
    'node_modules/may': { version: '1.0.0' },
  });
  assert.deepEqual(pathsOf(lock, 'a'), ['', 'node_modules/a', 'node_modules/must']);
});

test('refuses what the lock file does not hold, and what is a link in it', () => {
  const lock = lockOf({
    'node_modules/a': { version: '1.0.0', dependencies: { gone: '1' } },
    'node_modules/ours': { link: true },
  });
  assert.throws(() => pathsOf(lock, 'a'), /no gone, which node_modules\/a needs/);
  assert.throws(() => pathsOf(lock, 'b'), /no b, which is imported/);
  assert.throws(() => pathsOf(lock, 'ours'), /ours is a link/);
  assert.throws(() => lockedVersion(lock, 'ours'), /no package ours at its top/);
  assert.throws(() => prunedLock({ ...lock, lockfileVersion: 2 }, ROOT, {}), /accepted: 3/);
});
