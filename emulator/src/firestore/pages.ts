/**
 * Page tokens. A token says where the last page ended, as a value and not as a count: what is written between two
 * pages makes no document appear twice or fall out. It goes with the request that it was given for, and with no other.
 */
import { createHash } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import { invalidArgument } from '../grpc-server.ts';
import type { Page } from './requests.ts';

/** Where the page begins; undefined for the first one. Throws INVALID_ARGUMENT for a token of another request. */
export function parseToken(request: Page): unknown {
  if (request.pageToken === '') return undefined;
  let token: unknown;
  try {
    token = deserialize(Buffer.from(request.pageToken, 'base64url'));
  } catch {
    // Refused below, as a token of something else is.
  }
  if (!Array.isArray(token) || token[0] !== digest(request)) {
    throw invalidArgument('page_token is not one that this request was given');
  }
  return token[1];
}

/** Throws INVALID_ARGUMENT for a negative size; 0 is the default. A page never has more than `most`. */
export function parsePageSize({ pageSize }: Page, most: number): number {
  if (pageSize < 0) throw invalidArgument(`page_size is ${pageSize}; it may not be negative`);
  return pageSize === 0 ? most : Math.min(pageSize, most);
}

export const toToken = (request: Page, position: unknown): string =>
  serialize([digest(request), position]).toString('base64url');

/** Of all that has to stay the same from page to page. The consistency is not in it: a transaction is another each time. */
function digest(request: Page): string {
  const asked = Object.entries(request).filter(([key]) => !CHANGING.has(key));
  const text = JSON.stringify(asked.sort(([a], [b]) => (a < b ? -1 : 1)));
  return createHash('sha256').update(text).digest('base64url').slice(0, 16);
}

const CHANGING: ReadonlySet<string> = new Set([
  'pageSize',
  'pageToken',
  'consistencySelector',
  'transaction',
  'readTime',
]);
