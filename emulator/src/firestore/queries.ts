/**
 * The methods that run a query: RunQuery and RunAggregationQuery. Both lock the same in a transaction: what they
 * found and the range they found it in, so that neither a result nor a sum changes before the commit.
 */
import { invalidArgument, unimplemented } from '../grpc-server.ts';
import { aggregate, parseAggregations, withAggregated } from './aggregations.ts';
import type { Database, Reading } from './database.ts';
import { databaseOf } from './names.ts';
import { parseQuery, type Query } from './query.ts';
import { type QueryResult, rangeOf, runQuery } from './query-run.ts';
import { withTransaction } from './reads.ts';
import {
  parseSelector,
  type RunAggregationQueryRequest,
  type RunQueryRequest,
  toWireDocument,
} from './requests.ts';
import { toWire } from './time.ts';

type DatabaseNamed = (name: string) => Database;

export async function runQueryMethod(
  databases: DatabaseNamed,
  request: RunQueryRequest,
  signal: AbortSignal,
) {
  const database = databaseOf(request.parent);
  refuseExplain(request);
  if (request.structuredQuery === undefined) throw invalidArgument('RunQuery needs a structured_query');
  const query = parseQuery(request.structuredQuery, request.parent, database);
  const reading = readQuery(query, ({ docs, skipped }) => ({ docs, skipped }));
  const read = await databases(database).read(parseSelector(request), reading, signal);
  const readTime = toWire(read.readTime);
  const { docs, skipped } = read.result;
  const answers = docs.map((doc, i) => ({
    document: toWireDocument(doc, query.select),
    readTime,
    ...(i === 0 && skipped > 0 ? { skippedResults: skipped } : {}),
  }));
  return withTransaction(answers, { readTime, skippedResults: skipped }, read.began);
}

export async function runAggregationQuery(
  databases: DatabaseNamed,
  request: RunAggregationQueryRequest,
  signal: AbortSignal,
) {
  const database = databaseOf(request.parent);
  refuseExplain(request);
  const asked = request.structuredAggregationQuery;
  if (!asked?.structuredQuery) {
    throw invalidArgument('RunAggregationQuery needs a structured_aggregation_query with a structured_query');
  }
  const aggregations = parseAggregations(asked.aggregations);
  const query = withAggregated(parseQuery(asked.structuredQuery, request.parent, database), aggregations);
  const reading = readQuery(query, ({ docs }) => aggregate(aggregations, docs));
  const read = await databases(database).read(parseSelector(request), reading, signal);
  const answer = { result: { aggregateFields: read.result }, readTime: toWire(read.readTime) };
  return withTransaction([answer], {}, read.began);
}

/** Runs the query and locks what it found; `resultOf` says what of it is answered. */
export const readQuery = <T>(query: Query, resultOf: (found: QueryResult) => T): Reading<T> => ({
  range: rangeOf(query),
  look(view) {
    const found = runQuery(view, query);
    const documents = found.docs.map(({ name }) => name.full);
    return { documents, range: found.range, result: resultOf(found) };
  },
});

function refuseExplain({ explainOptions }: Readonly<{ explainOptions?: unknown }>): void {
  if (explainOptions !== undefined && explainOptions !== null) {
    throw unimplemented('explain_options is not implemented');
  }
}
