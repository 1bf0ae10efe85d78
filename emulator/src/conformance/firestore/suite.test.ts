import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testSuite } from '../test-suite.ts';
import { firestoreSuite } from './suite.ts';

testSuite(firestoreSuite);

test('every case has a title of its own within its feature', () => {
  const titles = firestoreSuite.cases.map(({ feature, title }) => `${feature}: ${title}`);
  assert.equal(titles.length, new Set(titles).size);
});
