import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retryAfterMs } from './outcome.ts';

const NOW = Date.parse('2027-01-01T00:00:00Z');
const after = (status: number, retryAfter?: string): number | undefined =>
  retryAfterMs('http', { kind: 'response', status, retryAfter }, NOW);

test('reads Retry-After of 429 and 503, in seconds and as a date', () => {
  assert.equal(after(429, '120'), NOW + 120_000);
  assert.equal(after(503, '0'), NOW);
  assert.equal(after(503, 'Fri, 01 Jan 2027 00:05:00 GMT'), NOW + 300_000);
});

test('passes over what is neither, other statuses, other targets, and attempts without an answer', () => {
  for (const nonsense of [undefined, '', 'soon', '1.5 h']) assert.equal(after(503, nonsense), undefined);
  assert.equal(after(500, '120'), undefined);
  assert.equal(
    retryAfterMs('appEngine', { kind: 'response', status: 503, retryAfter: '120' }, NOW),
    undefined,
  );
  assert.equal(retryAfterMs('http', { kind: 'timeout' }, NOW), undefined);
});
