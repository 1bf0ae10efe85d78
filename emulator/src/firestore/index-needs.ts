/**
 * Which indexes serve a query, by the documented rules of the Standard edition
 * (https://firebase.google.com/docs/firestore/query-data/index-overview and the pages on queries): one index, or several
 * merged that each have a part of what equals (`==`, `in`, `array-contains`) in front of all that is ordered or in a range,
 * in the order and directions of the query. What no index serves has the one that is missing.
 */
import { type FieldPath, NAME, parseFieldPath } from './field-path.ts';
import type { WireFilter } from './filters.ts';
import {
  type FieldIndex,
  impliedNameOrder,
  type Index,
  type IndexDefinitions,
  type IndexField,
  type QueryScope,
} from './index-definitions.ts';
import { fieldsOf, type Shape, shapesOf } from './index-shapes.ts';
import type { Query } from './query.ts';

/** As in firestore.indexes.json. */
type MissingIndex = Readonly<{ indexes: readonly object[]; fieldOverrides: readonly object[] }>;

/** How one disjunction of a query is served. */
export type IndexPlan = Readonly<{
  queryScope: QueryScope;
  /** More than one are merged. Where one is missing, that one. */
  indexes: readonly Index[];
  missing: MissingIndex | undefined;
}>;

/** Of each disjunction; none for what has no collection, for no index can be defined for that. */
export function indexPlans(
  definitions: IndexDefinitions,
  query: Query,
  where: WireFilter | null,
  aggregated: readonly FieldPath[],
): readonly IndexPlan[] {
  const { collectionId, allDescendants } = query.scope;
  if (collectionId === '') return [];
  const queryScope: QueryScope = allDescendants ? 'COLLECTION_GROUP' : 'COLLECTION';
  return shapesOf(query, where, aggregated).map((shape) => {
    const own = fieldsOf(shape).map(
      (path) => [path, definitions.ofField(collectionId, parseFieldPath(path))] as const,
    );
    const singles = own.flatMap(([path, indexes]) =>
      indexes.filter((each) => each.queryScope === queryScope).map(({ kind }) => indexOf([{ path, kind }])),
    );
    const serving = serve(shape, [...definitions.composites(collectionId, queryScope), ...singles]);
    if (serving !== undefined) return { queryScope, indexes: serving, missing: undefined };
    const needed = indexFor(shape);
    return { queryScope, indexes: [needed], missing: missing(needed, shape, collectionId, queryScope, own) };
  });
}

const indexOf = (fields: readonly IndexField[]): Index => ({ fields, nameOrder: impliedNameOrder(fields) });

/** By name, ascending: what every collection is kept in. */
const BY_NAME = indexOf([]);

function serve(shape: Shape, indexes: readonly Index[]): readonly Index[] | undefined {
  const { equal, contains, nameOrder } = shape;
  // A document that is looked up by its name needs no other index.
  if (equal.has(NAME)) return [BY_NAME];
  if (fieldsOf(shape).length === 0 && nameOrder === 'ASCENDING') return [BY_NAME];
  const wanted = [...[...equal].map((path) => ` ${path}`), ...[...contains].map((path) => `∋ ${path}`)];
  const usable = indexes.flatMap((index) => {
    const prefix = prefixFor(shape, index);
    const serves = prefix?.map(({ path, kind }) => `${kind === 'CONTAINS' ? '∋' : ''} ${path}`);
    return serves === undefined ? [] : [{ index, serves: new Set(serves) }];
  });
  const alone = usable.find(({ serves }) => wanted.every((each) => serves.has(each)));
  if (alone !== undefined) return [alone.index];
  const merged: Index[] = [];
  const left = new Set(wanted);
  for (const { index, serves } of usable) {
    if (![...serves].some((each) => left.has(each))) continue;
    merged.push(index);
    for (const each of serves) left.delete(each);
  }
  return left.size === 0 && merged.length > 0 ? merged : undefined;
}

/** What equals and is in front, where all that follows is what the query is ordered by. */
function prefixFor(shape: Shape, { fields, nameOrder }: Index): readonly IndexField[] | undefined {
  const { equal, contains, sorted, aggregated } = shape;
  const length = fields.length - sorted.length - aggregated.length;
  if (length < 0) return undefined;
  const prefix = fields.slice(0, length);
  const rest = fields.slice(length);
  const others = rest.slice(sorted.length).filter(({ kind }) => kind !== 'CONTAINS');
  const fits =
    prefix.every(({ path, kind }) => (kind === 'CONTAINS' ? contains : equal).has(path)) &&
    sorted.every(({ path, kind }, i) => rest[i]?.path === path && rest[i].kind === kind) &&
    aggregated.every((path) => others.some((field) => field.path === path)) &&
    // Which comes first does not matter to a sum.
    (aggregated.length > 0 || nameOrder === shape.nameOrder);
  return fits ? prefix : undefined;
}

/** The one index that serves it. */
function indexFor({ equal, contains, sorted, aggregated, nameOrder }: Shape): Index {
  const ascending = (path: string): IndexField => ({ path, kind: 'ASCENDING' });
  const equalities = [
    ...[...equal].map(ascending),
    ...[...contains].map((path): IndexField => ({ path, kind: 'CONTAINS' })),
  ].sort((a, b) => (a.path < b.path ? -1 : 1));
  const fields = [...equalities, ...sorted, ...aggregated.map(ascending)];
  return { fields, nameOrder: aggregated.length > 0 ? impliedNameOrder(fields) : nameOrder };
}

function missing(
  { fields, nameOrder }: Index,
  { equal }: Shape,
  collectionGroup: string,
  queryScope: QueryScope,
  own: readonly (readonly [string, readonly FieldIndex[]])[],
): MissingIndex {
  const isImplied = impliedNameOrder(fields) === nameOrder;
  const [field] = fields;
  const [single] = own;
  const isEqual = field !== undefined && equal.has(field.path);
  if (field !== undefined && single !== undefined && fields.length === 1 && (isImplied || isEqual)) {
    const kind = isEqual ? nameOrder : field.kind;
    const all = [...single[1], { queryScope, kind }];
    const indexes = all.map((each) => ({ ...formOf(each.kind), queryScope: each.queryScope }));
    return { indexes: [], fieldOverrides: [{ collectionGroup, fieldPath: field.path, indexes }] };
  }
  const named = isImplied ? fields : [...fields, { path: NAME, kind: nameOrder }];
  const form = named.map(({ path, kind }) => ({ fieldPath: path, ...formOf(kind) }));
  return { indexes: [{ collectionGroup, queryScope, fields: form }], fieldOverrides: [] };
}

const formOf = (kind: IndexField['kind']): object =>
  kind === 'CONTAINS' ? { arrayConfig: 'CONTAINS' } : { order: kind };
