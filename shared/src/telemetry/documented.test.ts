import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { METRIC_NAMES } from './instruments.ts';

test('docs/reference.md has a row for every metric, and none for another', () => {
  const text = readFileSync(new URL('../../../docs/reference.md', import.meta.url), 'utf8');
  const rows = [...text.matchAll(/^\| `((?:pubsub_guarantees|messaging)\.[a-z_.]+)`/gm)].map(
    ([, name]) => name,
  );
  assert.deepEqual(new Set(rows), new Set(METRIC_NAMES));
  assert.equal(rows.length, METRIC_NAMES.length);
});
