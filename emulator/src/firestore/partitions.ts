/**
 * PartitionQuery: cursors that cut a collection group into parts of about the same size. Every document is in exactly
 * one part, whatever is written afterwards, because a part is a range of names.
 */
import { invalidArgument } from '../grpc-server.ts';
import type { Database } from './database.ts';
import { isName } from './field-path.ts';
import { databaseOf } from './names.ts';
import { parsePageSize, parseToken, toToken } from './pages.ts';
import { readQuery } from './queries.ts';
import { parseQuery, type Query } from './query.ts';
import { type PartitionQueryRequest, parseSelector } from './requests.ts';

/** This server's own bound of a page. */
const MAX_PARTITIONS = 1_000;

export async function partitionQuery(
  databases: (name: string) => Database,
  request: PartitionQueryRequest,
  signal: AbortSignal,
) {
  const database = databaseOf(request.parent);
  if (request.parent !== `${database}/documents`) {
    throw invalidArgument(`the parent of PartitionQuery must be "${database}/documents"`);
  }
  const count = Number(request.partitionCount);
  if (count <= 0) throw invalidArgument(`partition_count is ${request.partitionCount}; it must be positive`);
  if (!request.structuredQuery) throw invalidArgument('PartitionQuery needs a structured_query');
  const query = parseQuery(request.structuredQuery, request.parent, database);
  checkPartitionable(query);
  const size = parsePageSize(request, MAX_PARTITIONS);
  const from = Number(parseToken(request) ?? 0);
  const reading = readQuery(query, ({ docs }) => docs.map(({ name }) => name.full));
  const { result } = await databases(database).read(parseSelector(request), reading, signal);
  const cuts = cutsOf(result, count);
  return {
    partitions: cuts.slice(from, from + size).map((referenceValue) => ({
      values: [{ valueType: 'referenceValue', referenceValue }],
      before: true,
    })),
    nextPageToken: from + size < cuts.length ? toToken(request, from + size) : '',
  };
}

function checkPartitionable({ scope, filter, orders, start, end, offset, limit }: Query): void {
  const [order] = orders;
  const isByName = orders.length === 1 && order !== undefined && isName(order.path) && order.sign === 1;
  const isBare = filter === undefined && start === undefined && end === undefined;
  if (scope.allDescendants && isByName && isBare && offset === 0 && limit === Number.POSITIVE_INFINITY) {
    return;
  }
  throw invalidArgument(
    'a query to be partitioned must be over a collection with all descendants, ordered by __name__ ascending, without filters, cursors, offset and limit',
  );
}

/** The first names of all parts but the first: fewer where there are not as many documents. */
function cutsOf(names: readonly string[], count: number): readonly string[] {
  const parts = Math.min(count + 1, names.length);
  const cuts: string[] = [];
  for (let i = 1; i < parts; i++) cuts.push(names[Math.floor((i * names.length) / parts)] ?? '');
  return cuts;
}
