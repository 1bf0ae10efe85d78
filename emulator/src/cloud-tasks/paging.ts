/**
 * Pages of a list. A page token holds the key of the last item shown, so that items which come or go between two pages
 * neither hide nor repeat others.
 */
import { invalidArgument, type StatusError } from '../grpc-server.ts';

export type Page<T> = Readonly<{ items: readonly T[]; nextPageToken: string }>;

export type PageRequest = Readonly<{ pageSize: number; pageToken: string }>;

/**
 * `items` must come in rising order of `keyOf`. A size of 0, or one above `maxSize`, means `maxSize`. A page also ends
 * before its items' `bytesOf` together exceed `maxBytes`, but holds at least one.
 */
export function pageOf<T>(
  items: Iterable<T>,
  keyOf: (item: T) => string | number,
  request: PageRequest,
  limits: Readonly<{ maxSize: number; maxBytes: number; bytesOf: (item: T) => number }>,
): Page<T> {
  if (request.pageSize < 0) throw invalidArgument(`The page size ${request.pageSize} must not be negative.`);
  const size = Math.min(request.pageSize || limits.maxSize, limits.maxSize);
  const after = request.pageToken === '' ? undefined : readToken(request.pageToken);
  const page: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const key = keyOf(item);
    if (after !== undefined && typeof after !== typeof key) throw foreignToken(request.pageToken);
    if (after !== undefined && key <= after) continue;
    bytes += limits.bytesOf(item);
    const last = page.at(-1);
    if (last !== undefined && (page.length === size || bytes > limits.maxBytes)) {
      return { items: page, nextPageToken: writeToken(keyOf(last)) };
    }
    page.push(item);
  }
  return { items: page, nextPageToken: '' };
}

const writeToken = (key: string | number): string => Buffer.from(JSON.stringify([key])).toString('base64url');

function readToken(token: string): string | number {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    const key: unknown = Array.isArray(parsed) ? parsed[0] : undefined;
    if (typeof key === 'string' || typeof key === 'number') return key;
  } catch {
    // Falls through to the refusal.
  }
  throw foreignToken(token);
}

const foreignToken = (token: string): StatusError =>
  invalidArgument(`The page token ${JSON.stringify(token)} is not one of this list.`);
