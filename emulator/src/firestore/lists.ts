/**
 * The listing methods: ListDocuments, also with the documents that are missing but have something below them, and
 * ListCollectionIds. Pages follow each other by name or by the values of the order, so a page is right whatever was
 * written since the one before.
 */
import { invalidArgument } from '../grpc-server.ts';
import type { Database } from './database.ts';
import type { Doc } from './doc.ts';
import type { View } from './documents.ts';
import { entryIn } from './entries.ts';
import type { IndexChecks } from './index-check.ts';
import { databaseOf, parseParent } from './names.ts';
import { comparePaths, compareStrings } from './order.ts';
import { parsePageSize, parseToken, toToken } from './pages.ts';
import { readQuery } from './queries.ts';
import { parseQuery, type WireQuery } from './query.ts';
import { rangeOf } from './query-run.ts';
import type { Reading } from './reading.ts';
import {
  type ListCollectionIdsRequest,
  type ListDocumentsRequest,
  parseMask,
  parseSelector,
  toWireDocument,
} from './requests.ts';
import { fieldsOf, type WireValue } from './values.ts';

type DatabaseNamed = (name: string) => Database;

/** This server's own: the service says of page_size only that it may return fewer. */
const MAX_DOCUMENTS = 1_000;
const MAX_COLLECTIONS = 1_000;

const NO_QUERY: WireQuery = {
  select: null,
  from: [],
  where: null,
  orderBy: [],
  startAt: null,
  endAt: null,
  offset: 0,
  limit: null,
};

export const listDocuments =
  (checks: IndexChecks) =>
  async (databases: DatabaseNamed, request: ListDocumentsRequest, signal: AbortSignal) => {
    const mask = parseMask(request.mask);
    const size = parsePageSize(request, MAX_DOCUMENTS);
    const page = { size, after: parseToken(request) };
    if (request.showMissing && request.orderBy !== '') {
      throw invalidArgument('show_missing may not go with order_by');
    }
    const reading = request.showMissing ? readWithMissing(request, page) : readPage(request, page, checks);
    const database = databases(databaseOf(request.parent));
    const { result } = await database.read(parseSelector(request), reading, signal);
    return {
      documents: result.rows.map(({ name, doc }) =>
        doc === undefined
          ? { name, fields: fieldsOf([]), createTime: null, updateTime: null }
          : toWireDocument(doc, mask),
      ),
      nextPageToken: result.next === undefined ? '' : toToken(request, result.next),
    };
  };

export async function listCollectionIds(databases: DatabaseNamed, request: ListCollectionIdsRequest) {
  const size = parsePageSize(request, MAX_COLLECTIONS);
  const after = parseToken(request);
  const database = databaseOf(request.parent);
  const parent = parseParent(request.parent, database);
  const prefix = parent.length === 0 ? '' : `${parent.join('/')}/`;
  const look = (view: View) => {
    const below = [...view.collections()].filter((path) => path.startsWith(prefix));
    const ids = new Set(below.map((path) => path.slice(prefix.length).split('/', 1)[0] ?? ''));
    return { documents: [], result: [...ids].sort(compareStrings) };
  };
  const { result } = await databases(database).read(parseSelector(request), { look });
  const rest = result.filter((id) => typeof after !== 'string' || compareStrings(id, after) > 0);
  const collectionIds = rest.slice(0, size);
  return {
    collectionIds,
    nextPageToken: rest.length > size ? toToken(request, collectionIds.at(-1)) : '',
  };
}

type PageAsked = Readonly<{ size: number; after: unknown }>;
type Row = Readonly<{ name: string; doc: Doc | undefined }>;
type PageFound = Readonly<{ rows: readonly Row[]; next: unknown }>;

/** A page of documents that exist is a query with a cursor and a limit. */
function readPage(
  request: ListDocumentsRequest,
  { size, after }: PageAsked,
  checks: IndexChecks,
): Reading<PageFound> {
  const startAt = Array.isArray(after) ? { values: after as WireValue[], before: false } : null;
  const query = parseQuery(
    {
      ...NO_QUERY,
      from: [{ collectionId: request.collectionId, allDescendants: false }],
      orderBy: parseOrderBy(request.orderBy),
      startAt,
      // One more shows whether there is a next page.
      limit: { value: size + 1 },
    },
    request.parent,
    databaseOf(request.parent),
  );
  checks(databaseOf(request.parent))(query, null);
  return readQuery(query, ({ docs }) => {
    const page = docs.slice(0, size);
    const last = docs.length > size ? page.at(-1) : undefined;
    const next = last && [
      ...(entryIn(query.orders, last)?.keys ?? []),
      { valueType: 'referenceValue', referenceValue: last.name.full },
    ];
    return { rows: page.map((doc) => ({ name: doc.name.full, doc })), next };
  });
}

/** In a transaction it locks all that is below the parent, for that is what makes a missing document show. */
function readWithMissing(request: ListDocumentsRequest, { size, after }: PageAsked): Reading<PageFound> {
  const { parent, collectionId } = request;
  const database = databaseOf(parent);
  const from = [{ collectionId: '', allDescendants: true }];
  const everything = parseQuery({ ...NO_QUERY, from }, parent, database);
  // Checks the collection's name.
  const { scope } = parseQuery(
    { ...NO_QUERY, from: [{ collectionId, allDescendants: false }] },
    parent,
    database,
  );
  const root = `${database}/documents/`;
  return {
    range: rangeOf(everything),
    look(view) {
      const rows = rowsBelow(view, scope.parent, collectionId, root);
      const segments = (name: string): readonly string[] => name.slice(root.length).split('/');
      const sorted = [...rows.values()].sort((a, b) => comparePaths(segments(a.name), segments(b.name)));
      const rest = sorted.filter(
        ({ name }) => typeof after !== 'string' || comparePaths(segments(name), segments(after)) > 0,
      );
      const page = rest.slice(0, size);
      return {
        documents: page.map(({ name }) => name),
        range: rangeOf(everything),
        result: { rows: page, next: rest.length > size ? page.at(-1)?.name : undefined },
      };
    },
  };
}

function rowsBelow(view: View, parent: string, collectionId: string, root: string): ReadonlyMap<string, Row> {
  const rows = new Map<string, Row>();
  const depth = parent === '' ? 0 : parent.split('/').length;
  const prefix = parent === '' ? '' : `${parent}/`;
  for (const path of view.collections()) {
    const segments = path.split('/');
    if (!path.startsWith(prefix) || (collectionId !== '' && segments[depth] !== collectionId)) continue;
    if (segments.length === depth + 1) {
      for (const doc of view.collection(path)) rows.set(doc.name.full, { name: doc.name.full, doc });
      continue;
    }
    const name = root + segments.slice(0, depth + 2).join('/');
    if (!rows.has(name)) rows.set(name, { name, doc: undefined });
  }
  return rows;
}

/** For example `priority desc, __name__ desc`. */
function parseOrderBy(text: string): WireQuery['orderBy'] {
  if (text.trim() === '') return [];
  return text.split(/,(?=(?:[^`]|`(?:[^`\\]|\\[^])*`)*$)/).map((part) => {
    const match = /^\s*(\S+|`[^]*`)(?:\s+(asc|desc))?\s*$/i.exec(part);
    if (match?.[1] === undefined) throw invalidArgument(`order_by: "${part.trim()}" is not an order`);
    const direction = match[2]?.toLowerCase() === 'desc' ? 'DESCENDING' : 'ASCENDING';
    return { field: { fieldPath: match[1] }, direction };
  });
}
