import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testSuite } from '../test-suite.ts';
import { cloudTasksSuite } from './suite.ts';

testSuite(cloudTasksSuite);

test('every case has a title of its own within its feature', () => {
  const titles = cloudTasksSuite.cases.map(({ feature, title }) => `${feature}: ${title}`);
  assert.deepEqual(titles.length, new Set(titles).size);
});
