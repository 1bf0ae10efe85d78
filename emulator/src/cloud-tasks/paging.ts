/**
 * Pages of a list. A page token holds the key of the last item shown, so that items which come or go between two pages
 * neither hide nor repeat others, and when and for which filter it was made.
 */
import { invalidArgument, type StatusError } from '../grpc-server.ts';

export type Page<T> = Readonly<{ items: readonly T[]; nextPageToken: string }>;

export type PageRequest = Readonly<{ pageSize: number; pageToken: string; filter?: string }>;

/** "The page token is valid for only 2 hours" (API reference, ListTasksRequest.page_token). */
const TOKEN_LIFE_MS = 2 * 3_600_000;

/**
 * `items` must come in rising order of `keyOf`, and be filtered already; `now` is in milliseconds. A size of 0, or one above `maxSize`, means `maxSize`. A page also ends
 * before its items' `bytesOf` together exceed `maxBytes`, but holds at least one.
 */
export function pageOf<T>(
  items: Iterable<T>,
  keyOf: (item: T) => string | number,
  request: PageRequest,
  limits: Readonly<{ maxSize: number; maxBytes: number; bytesOf: (item: T) => number }>,
  now: number,
): Page<T> {
  if (request.pageSize < 0) throw invalidArgument(`The page size ${request.pageSize} must not be negative.`);
  const size = Math.min(request.pageSize || limits.maxSize, limits.maxSize);
  const after = request.pageToken === '' ? undefined : readToken(request, now);
  const page: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const key = keyOf(item);
    if (after !== undefined && typeof after !== typeof key) throw foreignToken(request.pageToken);
    if (after !== undefined && key <= after) continue;
    bytes += limits.bytesOf(item);
    const last = page.at(-1);
    if (last !== undefined && (page.length === size || bytes > limits.maxBytes)) {
      return { items: page, nextPageToken: writeToken([keyOf(last), now, request.filter ?? '']) };
    }
    page.push(item);
  }
  return { items: page, nextPageToken: '' };
}

type Token = readonly [key: string | number, madeMs: number, filter: string];

const writeToken = (token: Token): string => Buffer.from(JSON.stringify(token)).toString('base64url');

function readToken({ pageToken, filter = '' }: PageRequest, now: number): string | number {
  const [key, madeMs, madeFor] = parsedToken(pageToken);
  if ((typeof key !== 'string' && typeof key !== 'number') || typeof madeMs !== 'number') {
    throw foreignToken(pageToken);
  }
  if (now - madeMs > TOKEN_LIFE_MS) {
    throw invalidArgument(`The page token ${JSON.stringify(pageToken)} is older than two hours.`);
  }
  // "It is an error to switch the value of the filter while iterating through pages" (API reference).
  if (filter !== madeFor) throw invalidArgument('The filter is not that of the page before.');
  return key;
}

function parsedToken(token: string): readonly unknown[] {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    return [];
  }
}

const foreignToken = (token: string): StatusError =>
  invalidArgument(`The page token ${JSON.stringify(token)} is not one of this list.`);
