/**
 * The definitions of a `firestore.indexes.json`, checked and read into one form
 * (https://firebase.google.com/docs/reference/firestore/indexes). What does not fit is refused with its place.
 */
import { type FieldPath, formatFieldPath, isName, NAME, parseFieldPath } from './field-path.ts';

export type QueryScope = 'COLLECTION' | 'COLLECTION_GROUP';
type IndexKind = 'ASCENDING' | 'DESCENDING' | 'CONTAINS';
type Order = Exclude<IndexKind, 'CONTAINS'>;

export type IndexField = Readonly<{ path: string; kind: IndexKind }>;
export type Index = Readonly<{
  /** Without `__name__`, which ends every index. */
  fields: readonly IndexField[];
  nameOrder: Order;
}>;
export type FieldIndex = Readonly<{ queryScope: QueryScope; kind: IndexKind }>;

export type IndexDefinitions = Readonly<{
  composites(collectionGroup: string, queryScope: QueryScope): readonly Index[];
  /** The indexes of the field by itself: automatic, or what an override of it, of a parent or of `*` says. */
  ofField(collectionGroup: string, path: FieldPath): readonly FieldIndex[];
}>;

/** What every field has that no override names (https://firebase.google.com/docs/firestore/query-data/index-overview). */
const AUTOMATIC: readonly FieldIndex[] = (['ASCENDING', 'DESCENDING', 'CONTAINS'] as const).map((kind) => ({
  queryScope: 'COLLECTION',
  kind,
}));

const SCOPES = ['COLLECTION', 'COLLECTION_GROUP'] as const;
const ORDERS = ['ASCENDING', 'DESCENDING'] as const;
const ANY_FIELD = '*';
/** In a composite index (https://cloud.google.com/firestore/quotas). */
const MAX_FIELDS = 100;

/** Throws an error of one line for definitions that the service would not take. */
export function parseDefinitions(definitions: unknown, where: string): IndexDefinitions {
  const file = objectOf(definitions, where, ['indexes', 'fieldOverrides']);
  const composites = new Map<string, Index[]>();
  for (const [i, each] of listOf(file['indexes'], `${where}.indexes`).entries()) {
    const { key, index } = parseComposite(each, `${where}.indexes[${i}]`);
    if (index !== undefined) composites.set(key, [...(composites.get(key) ?? []), index]);
  }
  const overrides = new Map<string, readonly FieldIndex[]>();
  const overridden = new Set<string>();
  for (const [i, each] of listOf(file['fieldOverrides'], `${where}.fieldOverrides`).entries()) {
    const at = `${where}.fieldOverrides[${i}]`;
    const { collectionGroup, key, indexes } = parseOverride(each, at);
    if (overrides.has(key)) throw new Error(`${at} is the second one of its field`);
    overrides.set(key, indexes);
    overridden.add(collectionGroup);
  }
  return {
    composites: (collectionGroup, queryScope) => composites.get(`${queryScope} ${collectionGroup}`) ?? [],
    ofField(collectionGroup, path) {
      if (!overridden.has(collectionGroup)) return AUTOMATIC;
      for (let length = path.length; length > 0; length--) {
        const found = overrides.get(keyOf(collectionGroup, formatFieldPath(path.slice(0, length))));
        if (found !== undefined) return found;
      }
      return overrides.get(keyOf(collectionGroup, ANY_FIELD)) ?? AUTOMATIC;
    },
  };
}

/** `__name__` has the direction of the last field unless it is named itself. */
export const impliedNameOrder = (fields: readonly IndexField[]): Order =>
  fields.at(-1)?.kind === 'DESCENDING' ? 'DESCENDING' : 'ASCENDING';

const keyOf = (collectionGroup: string, path: string): string => `${collectionGroup}/${path}`;

/** No index for one of vectors: no query that this server runs could use it. */
function parseComposite(value: unknown, at: string): Readonly<{ key: string; index: Index | undefined }> {
  const raw = objectOf(value, at, [
    'collectionGroup',
    'queryScope',
    'fields',
    'apiScope',
    'density',
    'multikey',
    'unique',
  ]);
  oneOf(raw['apiScope'] ?? 'ANY_API', ['ANY_API'], `${at}.apiScope`);
  oneOf(raw['density'] ?? 'SPARSE_ALL', ['SPARSE_ALL'], `${at}.density`);
  oneOf(raw['multikey'] ?? false, [false], `${at}.multikey`);
  oneOf(raw['unique'] ?? false, [false], `${at}.unique`);
  const key = `${oneOf(raw['queryScope'], SCOPES, `${at}.queryScope`)} ${textOf(raw['collectionGroup'], `${at}.collectionGroup`)}`;
  const fields = listOf(raw['fields'], `${at}.fields`).map((each, i) =>
    parseField(each, `${at}.fields[${i}]`),
  );
  if (fields.length === 0) throw new Error(`${at}.fields is empty`);
  if (fields.length > MAX_FIELDS) {
    throw new Error(`${at}.fields has ${fields.length} fields; accepted: at most ${MAX_FIELDS}`);
  }
  const known = fields.flatMap((field) => (field === undefined ? [] : [field]));
  if (known.filter(({ kind }) => kind === 'CONTAINS').length > 1) {
    throw new Error(`${at}.fields has two fields with arrayConfig; accepted: at most one`);
  }
  if (known.length < fields.length) return { key, index: undefined };
  const named = known.findIndex(({ path }) => path === NAME);
  if (named === -1) return { key, index: { fields: known, nameOrder: impliedNameOrder(known) } };
  const [last] = known.slice(named);
  if (named < known.length - 1 || last === undefined || last.kind === 'CONTAINS') {
    throw new Error(`${at}.fields[${named}] is __name__, which may only be ordered, and last`);
  }
  return { key, index: { fields: known.slice(0, -1), nameOrder: last.kind } };
}

function parseField(value: unknown, at: string): IndexField | undefined {
  const raw = objectOf(value, at, ['fieldPath', 'order', 'mode', 'arrayConfig', 'vectorConfig']);
  const path = formatFieldPath(pathOf(raw['fieldPath'], `${at}.fieldPath`));
  const set = Object.keys(raw).filter((name) => name !== 'fieldPath');
  if (set.length !== 1) throw new Error(`${at} must have one of order, arrayConfig, vectorConfig`);
  return raw['vectorConfig'] === undefined ? { path, kind: kindOf(raw, at) } : undefined;
}

function parseOverride(
  value: unknown,
  at: string,
): Readonly<{ collectionGroup: string; key: string; indexes: readonly FieldIndex[] }> {
  const raw = objectOf(value, at, ['collectionGroup', 'fieldPath', 'indexes', 'ttl']);
  oneOf(raw['ttl'] ?? false, [true, false], `${at}.ttl`);
  const path = raw['fieldPath'];
  const name = path === ANY_FIELD ? ANY_FIELD : formatFieldPath(pathOf(path, `${at}.fieldPath`));
  const collectionGroup = textOf(raw['collectionGroup'], `${at}.collectionGroup`);
  const key = keyOf(collectionGroup, name);
  // A policy of time to live may stand alone, and leaves the indexes as they are.
  if (raw['indexes'] === undefined && raw['ttl'] !== undefined)
    return { collectionGroup, key, indexes: AUTOMATIC };
  const indexes = listOf(raw['indexes'], `${at}.indexes`).map((each, i): FieldIndex => {
    const place = `${at}.indexes[${i}]`;
    const index = objectOf(each, place, ['order', 'arrayConfig', 'queryScope']);
    return {
      queryScope: oneOf(index['queryScope'] ?? 'COLLECTION', SCOPES, `${place}.queryScope`),
      kind: kindOf(index, place),
    };
  });
  const unique = new Map(indexes.map((index) => [`${index.queryScope} ${index.kind}`, index]));
  return { collectionGroup, key, indexes: [...unique.values()] };
}

function kindOf(raw: Readonly<Record<string, unknown>>, at: string): IndexKind {
  if (raw['arrayConfig'] !== undefined)
    return oneOf(raw['arrayConfig'], ['CONTAINS'] as const, `${at}.arrayConfig`);
  if (raw['mode'] !== undefined) return oneOf(raw['mode'], ORDERS, `${at}.mode`);
  return oneOf(raw['order'], ORDERS, `${at}.order`);
}

function objectOf(value: unknown, at: string, names: readonly string[]): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${at} is not an object`);
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`${at}.${unknown} is not known; accepted: ${names.join(', ')}`);
  return value as Readonly<Record<string, unknown>>;
}

function listOf(value: unknown, at: string): readonly unknown[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new Error(`${at} is not a list`);
  return value;
}

function textOf(value: unknown, at: string): string {
  if (typeof value !== 'string' || value === '') throw new Error(`${at} is not a name`);
  return value;
}

function pathOf(value: unknown, at: string): FieldPath {
  const text = textOf(value, at);
  try {
    const path = parseFieldPath(text);
    if (!isName(path) || text === NAME) return path;
  } catch {
    // Reported below.
  }
  throw new Error(`${at} is "${text}", which is not a field path`);
}

function oneOf<T>(value: unknown, accepted: readonly T[], at: string): T {
  const found = accepted.find((each) => each === value);
  if (found === undefined)
    throw new Error(`${at} is ${JSON.stringify(value) ?? '(not set)'}; accepted: ${accepted.join(', ')}`);
  return found;
}
