/**
 * The methods that run a query: RunQuery and RunAggregationQuery. Both lock the same in a transaction: what they
 * found and the range they found it in, so that neither a result nor a sum changes before the commit.
 */
import { invalidArgument } from '../grpc-server.ts';
import { aggregate, parseAggregations, withAggregated } from './aggregations.ts';
import type { Database } from './database.ts';
import { billed, billedAggregation, explainMetrics } from './explain.ts';
import type { IndexChecks } from './index-check.ts';
import { databaseOf } from './names.ts';
import { parseQuery, type Query } from './query.ts';
import { type QueryResult, rangeOf, runQuery } from './query-run.ts';
import { withTransaction } from './reads.ts';
import type { Reading } from './reading.ts';
import {
  parseSelector,
  type RunAggregationQueryRequest,
  type RunQueryRequest,
  toWireDocument,
} from './requests.ts';
import { toWire } from './time.ts';

type DatabaseNamed = (name: string) => Database;

export const runQueryMethod =
  (checks: IndexChecks) =>
  async (databases: DatabaseNamed, request: RunQueryRequest, signal: AbortSignal) => {
    const database = databaseOf(request.parent);
    if (request.structuredQuery === undefined) throw invalidArgument('RunQuery needs a structured_query');
    const query = parseQuery(request.structuredQuery, request.parent, database);
    const plans = checks(database)(query, request.structuredQuery.where);
    const { explainOptions } = request;
    if (explainOptions?.analyze === false) return [{ explainMetrics: explainMetrics(plans(), undefined) }];
    const begunAt = performance.now();
    const reading = readQuery(query, ({ docs, skipped }) => ({ docs, skipped }));
    const read = await databases(database).read(parseSelector(request), reading, signal);
    const readTime = toWire(read.readTime);
    const { docs, skipped } = read.result;
    const answers = docs.map((doc, i) => ({
      document: toWireDocument(doc, query.select),
      readTime,
      ...(i === 0 && skipped > 0 ? { skippedResults: skipped } : {}),
    }));
    const all = withTransaction(answers, { readTime, skippedResults: skipped }, read.began);
    if (!explainOptions) return all;
    const milliseconds = performance.now() - begunAt;
    const executed = {
      resultsReturned: docs.length,
      readOperations: billed(docs.length + skipped),
      milliseconds,
    };
    return [...all, { readTime, explainMetrics: explainMetrics(plans(), executed) }];
  };

export const runAggregationQuery =
  (checks: IndexChecks) =>
  async (databases: DatabaseNamed, request: RunAggregationQueryRequest, signal: AbortSignal) => {
    const database = databaseOf(request.parent);
    const asked = request.structuredAggregationQuery;
    if (!asked?.structuredQuery) {
      throw invalidArgument(
        'RunAggregationQuery needs a structured_aggregation_query with a structured_query',
      );
    }
    const aggregations = parseAggregations(asked.aggregations);
    const query = withAggregated(parseQuery(asked.structuredQuery, request.parent, database), aggregations);
    const aggregated = aggregations.flatMap(({ field }) => (field === undefined ? [] : [field]));
    const plans = checks(database)(query, asked.structuredQuery.where, aggregated);
    const { explainOptions } = request;
    if (explainOptions?.analyze === false) return [{ explainMetrics: explainMetrics(plans(), undefined) }];
    const begunAt = performance.now();
    const reading = readQuery(query, ({ docs, skipped }) => ({
      aggregateFields: aggregate(aggregations, docs),
      entries: docs.length + skipped,
    }));
    const read = await databases(database).read(parseSelector(request), reading, signal);
    const { aggregateFields, entries } = read.result;
    const readTime = toWire(read.readTime);
    const all = withTransaction([{ result: { aggregateFields }, readTime }], {}, read.began);
    if (!explainOptions) return all;
    const milliseconds = performance.now() - begunAt;
    const executed = { resultsReturned: 1, readOperations: billedAggregation(entries), milliseconds };
    return [...all, { readTime, explainMetrics: explainMetrics(plans(), executed) }];
  };

/** Runs the query and locks what it found; `resultOf` says what of it is answered. */
export const readQuery = <T>(query: Query, resultOf: (found: QueryResult) => T): Reading<T> => ({
  range: rangeOf(query),
  look(view) {
    const found = runQuery(view, query);
    const documents = found.docs.map(({ name }) => name.full);
    return { documents, range: found.range, result: resultOf(found) };
  },
});
