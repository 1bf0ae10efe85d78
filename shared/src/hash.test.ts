import assert from 'node:assert/strict';
import test from 'node:test';
import { hashOf } from './hash.ts';

test('B08: parts are joined unambiguously', () => {
  const names = [
    hashOf('a:b', 'c'),
    hashOf('a', 'b:c'),
    hashOf('a:bc'),
    hashOf('a', 'b', 'c'),
    hashOf('', 'abc'),
    hashOf('abc', ''),
    hashOf('abc'),
    hashOf('1:a'),
    hashOf(),
  ];
  assert.equal(new Set(names).size, names.length);
});

test('gives 43 characters that Firestore and Cloud Tasks take, whatever the parts are', () => {
  for (const part of ['', 'orders/42 ü', '日本 🚀', 'x'.repeat(5_000)]) {
    assert.match(hashOf('consumer', part), /^[A-Za-z0-9_-]{43}$/);
  }
});

test('counts bytes: text and its UTF-8 are the same part', () => {
  assert.equal(hashOf('Łódź'), hashOf(Buffer.from('Łódź', 'utf8')));
  assert.notEqual(hashOf(new Uint8Array([0xff])), hashOf('\ufffd'));
});

test('stays the same from version to version: stored names depend on it', () => {
  assert.equal(hashOf('a', 'b'), '-s3eer8erFswEnOrLigvebqwEA8FiDOnuL35-AdB4Uk');
});
