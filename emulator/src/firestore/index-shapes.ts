/**
 * What a query asks of an index. A query is an OR of conjunctions, each of which is served by itself; a conjunction has
 * fields that equal a value, fields whose elements do, and an order that the ranges are part of
 * (https://firebase.google.com/docs/firestore/query-data/index-overview).
 */
import { type FieldPath, formatFieldPath, isName, NAME, parseFieldPath } from './field-path.ts';
import type { WireFilter } from './filters.ts';
import type { IndexField } from './index-definitions.ts';
import type { Query } from './query.ts';

type Conjunction = Readonly<{ equal: ReadonlySet<string>; contains: ReadonlySet<string> }>;

export type Shape = Conjunction &
  Readonly<{
    sorted: readonly IndexField[];
    nameOrder: 'ASCENDING' | 'DESCENDING';
    /** Fields that are summed or averaged, which must be in the index, wherever. */
    aggregated: readonly string[];
  }>;

const NOTHING: Conjunction = { equal: new Set(), contains: new Set() };

export const shapesOf = (
  query: Query,
  where: WireFilter | null,
  aggregated: readonly FieldPath[],
): readonly Shape[] => conjunctionsOf(where).map((conjunction) => shapeOf(conjunction, query, aggregated));

/** Each once, those that equal first. */
export const fieldsOf = ({ equal, contains, sorted, aggregated }: Shape): readonly string[] => [
  ...new Set([...equal, ...contains, ...sorted.map(({ path }) => path), ...aggregated]),
];

function shapeOf(conjunction: Conjunction, { orders }: Query, aggregated: readonly FieldPath[]): Shape {
  const { equal } = conjunction;
  const sorted = orders
    // What equals one value is in no order.
    .filter(({ path }) => !isName(path) && !equal.has(formatFieldPath(path)))
    .map(
      ({ path, sign }): IndexField => ({
        path: formatFieldPath(path),
        kind: sign === 1 ? 'ASCENDING' : 'DESCENDING',
      }),
    );
  const known = new Set([...equal, ...sorted.map(({ path }) => path)]);
  const others = new Set(aggregated.map(formatFieldPath).filter((path) => !known.has(path)));
  const nameOrder = orders.at(-1)?.sign === -1 ? 'DESCENDING' : 'ASCENDING';
  return { ...conjunction, sorted, nameOrder, aggregated: [...others] };
}

function conjunctionsOf(where: WireFilter | null): readonly Conjunction[] {
  if (where?.compositeFilter) {
    const parts = where.compositeFilter.filters.map(conjunctionsOf);
    return where.compositeFilter.op === 'OR' ? distinct(parts.flat()) : parts.reduce(product, [NOTHING]);
  }
  const filter = where?.fieldFilter ?? where?.unaryFilter;
  const path = formatFieldPath(parseFieldPath(filter?.field?.fieldPath ?? NAME));
  const op = String(filter?.op);
  if (EQUALITIES.has(op)) return [{ ...NOTHING, equal: new Set([path]) }];
  if (ON_ELEMENTS.has(op)) return [{ ...NOTHING, contains: new Set([path]) }];
  // What is in a range is in the order, too.
  return [NOTHING];
}

const EQUALITIES: ReadonlySet<string> = new Set(['EQUAL', 'IN', 'IS_NULL', 'IS_NAN']);
const ON_ELEMENTS: ReadonlySet<string> = new Set(['ARRAY_CONTAINS', 'ARRAY_CONTAINS_ANY']);

const product = (some: readonly Conjunction[], others: readonly Conjunction[]): readonly Conjunction[] =>
  distinct(
    some.flatMap((a) =>
      others.map((b) => ({
        equal: new Set([...a.equal, ...b.equal]),
        contains: new Set([...a.contains, ...b.contains]),
      })),
    ),
  );

function distinct(conjunctions: readonly Conjunction[]): readonly Conjunction[] {
  const keyOf = ({ equal, contains }: Conjunction): string =>
    JSON.stringify([[...equal].sort(), [...contains].sort()]);
  return [...new Map(conjunctions.map((each) => [keyOf(each), each])).values()];
}
