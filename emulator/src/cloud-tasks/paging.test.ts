import assert from 'node:assert/strict';
import { test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { pageOf } from './paging.ts';

const LIMITS = { maxSize: 2, maxBytes: Number.POSITIVE_INFINITY, bytesOf: () => 0 };
const HOUR_MS = 3_600_000;
const page = (pageToken: string, now: number, filter = '') =>
  pageOf(['a', 'b', 'c', 'd', 'e'], (item) => item, { pageSize: 0, pageToken, filter }, LIMITS, now);
const refused = (text: RegExp) => (error: Error & { code?: number }) => {
  assert.equal(error.code, status.INVALID_ARGUMENT);
  assert.match(error.message, text);
  return true;
};

test('a token leads to what comes after the last item shown, for two hours', () => {
  const { items, nextPageToken } = page('', 0);
  assert.deepEqual(items, ['a', 'b']);
  assert.deepEqual(page(nextPageToken, 2 * HOUR_MS).items, ['c', 'd']);
  assert.throws(() => page(nextPageToken, 2 * HOUR_MS + 1), refused(/older than two hours/));
});

test('a token is for the filter that it was made for', () => {
  const { nextPageToken } = page('', 0, 'state: PAUSED');
  assert.deepEqual(page(nextPageToken, 0, 'state: PAUSED').items, ['c', 'd']);
  assert.throws(() => page(nextPageToken, 0), refused(/filter/));
});

test('refuses tokens that are none, and those of a list of another kind', () => {
  const other = pageOf([1, 2, 3], (item) => item, { pageSize: 1, pageToken: '' }, LIMITS, 0);
  for (const token of ['nonsense', Buffer.from('["a"]').toString('base64url'), other.nextPageToken]) {
    assert.throws(() => page(token, 0), refused(/page token/));
  }
});
