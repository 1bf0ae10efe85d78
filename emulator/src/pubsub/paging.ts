/** Pages of a list of names, in the order of the names. A page that starts after a deleted name still works. */
import { invalidArgument } from '../grpc-server.ts';
import type { Paging } from './wire.ts';

/** What a page holds when the request names no size, and at most. The service's own numbers are not published. */
const DEFAULT_PAGE = 100;
const LARGEST_PAGE = 1000;

export type Page = Readonly<{ names: readonly string[]; nextPageToken: string }>;

/** Throws INVALID_ARGUMENT for a negative size and for a token that no page has returned. */
export function page(all: Iterable<string>, { pageSize, pageToken }: Paging): Page {
  if (pageSize < 0) throw invalidArgument(`page_size must not be negative: ${pageSize}`);
  const after = pageToken === '' ? '' : decode(pageToken);
  const rest = [...all].filter((name) => name > after).toSorted();
  const size = pageSize === 0 ? DEFAULT_PAGE : Math.min(pageSize, LARGEST_PAGE);
  const names = rest.slice(0, size);
  const last = names.at(-1);
  return {
    names,
    nextPageToken: rest.length > size && last !== undefined ? Buffer.from(last).toString('base64url') : '',
  };
}

function decode(token: string): string {
  const name = Buffer.from(token, 'base64url').toString();
  if (!name.startsWith('projects/') || Buffer.from(name).toString('base64url') !== token) {
    throw invalidArgument(`page_token is not one that this server returned: ${token}`);
  }
  return name;
}
