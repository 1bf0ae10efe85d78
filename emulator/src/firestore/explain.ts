/**
 * Query Explain (https://cloud.google.com/firestore/docs/query-explain-report-reference): the indexes that the service
 * would use, and with `analyze` what it would count. This server uses none of them, and counts what the service bills.
 */
import type { Index } from './index-definitions.ts';
import type { IndexPlan } from './index-needs.ts';

export type WireExplain = Readonly<{ analyze: boolean }> | null | undefined;

type Executed = Readonly<{ resultsReturned: number; readOperations: number; milliseconds: number }>;

/** Without `executed` the query was planned only. */
export function explainMetrics(plans: readonly IndexPlan[], executed: Executed | undefined): object {
  const used = plans.flatMap(({ queryScope, indexes }) => {
    const scope = queryScope === 'COLLECTION' ? 'Collection' : 'Collection Group';
    return indexes.map((index) => ({ query_scope: scope, properties: propertiesOf(index) }));
  });
  const distinct = new Map(used.map((each) => [JSON.stringify(each), struct(each)]));
  return {
    planSummary: { indexesUsed: [...distinct.values()] },
    executionStats: executed === undefined ? null : statsOf(executed),
  };
}

/** The service bills one read at least, and one for each 1,000 index entries of an aggregation. */
export const billed = (reads: number): number => Math.max(1, reads);
export const billedAggregation = (entries: number): number => billed(Math.ceil(entries / 1_000));

function statsOf({ resultsReturned, readOperations, milliseconds }: Executed): object {
  const nanoseconds = Math.round(milliseconds * 1e6);
  return {
    resultsReturned: String(resultsReturned),
    executionDuration: { seconds: String(Math.floor(nanoseconds / 1e9)), nanos: nanoseconds % 1e9 },
    readOperations: String(readOperations),
    // Its contents are the service's own, and subject to change.
    debugStats: struct({}),
  };
}

const ORDERS = { ASCENDING: 'ASC', DESCENDING: 'DESC', CONTAINS: 'CONTAINS' } as const;

const propertiesOf = ({ fields, nameOrder }: Index): string =>
  `(${[...fields, { path: '__name__', kind: nameOrder }].map(({ path, kind }) => `${path} ${ORDERS[kind]}`).join(', ')})`;

const struct = (values: Readonly<Record<string, string>>): object => ({
  fields: Object.fromEntries(Object.entries(values).map(([key, stringValue]) => [key, { stringValue }])),
});
