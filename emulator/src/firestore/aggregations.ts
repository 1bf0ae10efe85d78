/**
 * The aggregations over the documents of a query: read from the wire and computed. With sum or avg in it, a query
 * takes in only the documents that have every field that is aggregated
 * (https://firebase.google.com/docs/firestore/query-data/aggregation-queries).
 */
import { invalidArgument } from '../grpc-server.ts';
import { type Doc, fieldOf } from './doc.ts';
import { type FieldPath, formatFieldPath, parseFieldPath } from './field-path.ts';
import type { Filter } from './filters.ts';
import { doublesOf, exactSum } from './exact-sum.ts';
import { numberOf } from './order.ts';
import type { Query } from './query.ts';
import { checkFieldName, type Fields, fieldsOf, NULL, type Value } from './values.ts';

type WireOver = Readonly<{ field: Readonly<{ fieldPath: string }> | null }>;
export type WireAggregation = Readonly<{
  operator?: string;
  count?: Readonly<{ upTo: Readonly<{ value: string }> | null }>;
  sum?: WireOver;
  avg?: WireOver;
  alias: string;
}>;

export type Aggregation = Readonly<{
  alias: string;
  /** The field that it aggregates: none for a count. */
  field: FieldPath | undefined;
  of(docs: readonly Doc[]): Value;
}>;

/** Aggregations in one query (google.firestore.v1.StructuredAggregationQuery.aggregations). */
const MAX_AGGREGATIONS = 5;
const [MIN_INT64, MAX_INT64] = [-(2n ** 63n), 2n ** 63n - 1n];

/** Throws INVALID_ARGUMENT for what is not known or not allowed. */
export function parseAggregations(wire: readonly WireAggregation[]): readonly Aggregation[] {
  if (wire.length === 0 || wire.length > MAX_AGGREGATIONS) {
    throw invalidArgument(
      `an aggregation query has 1 to ${MAX_AGGREGATIONS} aggregations; this one has ${wire.length}`,
    );
  }
  let unnamed = 0;
  const parsed = wire.map((each) => {
    if (each.alias !== '') checkFieldName(each.alias, 'alias');
    else unnamed += 1;
    return parseAggregation(each, each.alias === '' ? `field_${unnamed}` : each.alias);
  });
  if (new Set(parsed.map(({ alias }) => alias)).size < parsed.length) {
    throw invalidArgument(`the aliases ${parsed.map(({ alias }) => alias).join(', ')} are not all different`);
  }
  return parsed;
}

export const aggregate = (aggregations: readonly Aggregation[], docs: readonly Doc[]): Fields =>
  fieldsOf(aggregations.map(({ alias, of }) => [alias, of(docs)]));

/** The query, of the documents that have every field that is aggregated. */
export function withAggregated(query: Query, aggregations: readonly Aggregation[]): Query {
  const fields = aggregations.flatMap(({ field }) => (field === undefined ? [] : [field]));
  if (fields.length === 0) return query;
  const { filter } = query;
  const matches: Filter['matches'] = (doc) =>
    filter?.matches(doc) !== false && fields.every((path) => fieldOf(doc, path) !== undefined);
  const all: Omit<Filter, 'matches'> = filter ?? {
    equalities: new Map(),
    inequalities: [],
    alternatives: 1,
    arrayFilters: 0,
    operators: [],
  };
  return { ...query, filter: { ...all, matches } };
}

function parseAggregation(wire: WireAggregation, alias: string): Aggregation {
  switch (wire.operator) {
    case 'count': {
      const upTo = parseUpTo(wire.count?.upTo?.value);
      return {
        alias,
        field: undefined,
        of: (docs) => integer(upTo !== undefined && upTo < docs.length ? upTo : BigInt(docs.length)),
      };
    }
    case 'sum': {
      const field = parseField(wire.sum, alias);
      return { alias, field, of: (docs) => sum(numbersIn(docs, field)) };
    }
    case 'avg': {
      const field = parseField(wire.avg, alias);
      return { alias, field, of: (docs) => average(numbersIn(docs, field)) };
    }
    case undefined:
    default:
      throw invalidArgument(`the aggregation ${wire.operator ?? '(not set)'} is not known`);
  }
}

function parseUpTo(value: string | undefined): bigint | undefined {
  if (value === undefined) return undefined;
  const upTo = BigInt(value);
  if (upTo <= 0n) throw invalidArgument(`up_to is ${value}; it must be greater than zero`);
  return upTo;
}

function parseField(over: WireOver | undefined, alias: string): FieldPath {
  if (!over?.field) throw invalidArgument(`the aggregation ${alias} must name its field`);
  const path = parseFieldPath(over.field.fieldPath);
  if (formatFieldPath(path) === '__name__') {
    throw invalidArgument(`the aggregation ${alias} may not be over __name__`);
  }
  return path;
}

const numbersIn = (docs: readonly Doc[], path: FieldPath): readonly Value[] =>
  docs.flatMap((doc) => {
    const value = fieldOf(doc, path);
    return value?.valueType === 'integerValue' || value?.valueType === 'doubleValue' ? [value] : [];
  });

/** Integers and doubles are added exactly, so that the order of the documents does not show in the result. */
function total(values: readonly Value[]): Readonly<{ integers: bigint; doubles: readonly number[] }> {
  let integers = 0n;
  const doubles: number[] = [];
  for (const value of values) {
    if (value.valueType === 'integerValue') integers += BigInt(numberOf(value));
    if (value.valueType === 'doubleValue') doubles.push(value.doubleValue);
  }
  return { integers, doubles };
}

/** An integer where every number is one and the sum fits in 64 bits. */
function sum(values: readonly Value[]): Value {
  const { integers, doubles } = total(values);
  if (doubles.length > 0) return double(exactSum([...doubles, ...doublesOf(integers)]));
  const fits = integers >= MIN_INT64 && integers <= MAX_INT64;
  return fits ? integer(integers) : double(Number(integers));
}

function average(values: readonly Value[]): Value {
  if (values.length === 0) return NULL;
  const { integers, doubles } = total(values);
  return double(exactSum([...doubles, ...doublesOf(integers)]) / values.length);
}

const integer = (value: bigint): Value => ({ valueType: 'integerValue', integerValue: String(value) });
const double = (value: number): Value => ({ valueType: 'doubleValue', doubleValue: value });
