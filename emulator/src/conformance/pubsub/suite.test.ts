import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testSuite } from '../test-suite.ts';
import { pubsubSuite } from './suite.ts';

test('no two cases have one title, and each names a document', () => {
  const titles = pubsubSuite.cases.map(({ feature, title }) => `${feature}: ${title}`);
  assert.deepEqual(
    titles.filter((title, index) => titles.indexOf(title) !== index),
    [],
  );
  for (const { title, source } of pubsubSuite.cases) assert.match(source, /^https:/, title);
});

testSuite(pubsubSuite);
