/**
 * The index entries of one document and their sizes by the service's own rules
 * (https://firebase.google.com/docs/firestore/query-data/index-overview#index_entries and
 * https://firebase.google.com/docs/firestore/storage-size#index-entry-size): those of the single-field indexes, automatic
 * or as overrides say, and those of the composite indexes that are defined. Indexes of vectors are not counted. Pure.
 */
import { type FieldPath, getField, parseFieldPath } from './field-path.ts';
import type { Index, IndexDefinitions, QueryScope } from './index-definitions.ts';
import type { DocumentName } from './names.ts';
import { compareValues } from './order.ts';
import { nameSize, valueSize } from './size.ts';
import { type Fields, type Value, vectorOf } from './values.ts';

export type IndexUsage = Readonly<{
  count: number;
  /** Bytes of all of them. */
  bytes: number;
  largest: Readonly<{ bytes: number; fields: readonly string[] }>;
}>;

/**
 * Longer values are cut (https://firebase.google.com/docs/firestore/quotas#indexes: "Maximum size of an indexed field
 * value: 1500 bytes. Field values over 1500 bytes are truncated"). That goes for whole arrays and maps as well. Another page
 * has them refused (https://docs.cloud.google.com/firestore/native/docs/understand-error-codes), which users do not see.
 */
const MAX_INDEXED_BYTES = 1_500;
/** Of a single field: ascending and descending, and array-contains for each element, in each scope. */
const ORDERED = 4;
const PER_ELEMENT = 2;
/** In one UTF-16 code unit. */
const MAX_UTF8_BYTES = 3;
const SCOPES: readonly QueryScope[] = ['COLLECTION', 'COLLECTION_GROUP'];

export const hasComposites = (definitions: IndexDefinitions, name: DocumentName): boolean =>
  SCOPES.some((scope) => definitions.composites(groupOf(name), scope).length > 0);

/** At least as much as `indexUsage` gives, from the number of the fields and elements alone. */
export function indexUsageAtMost(
  definitions: IndexDefinitions,
  name: DocumentName,
  fields: Fields,
  documentBytes: number,
): IndexUsage {
  const value = Math.min(MAX_INDEXED_BYTES, documentBytes);
  const { count, longestPath, longestArray } = nodesOf(fields, 0);
  const indexes = SCOPES.flatMap((scope) => definitions.composites(groupOf(name), scope));
  const values = indexes.reduce((most, index) => Math.max(most, index.fields.length), 1);
  const entries = count + indexes.length * Math.max(1, longestArray);
  const bytes = 2 * nameSize(name.segments) + 48 + longestPath + values * value;
  return { count: entries, bytes: entries * bytes, largest: { bytes, fields: [] } };
}

/** `elementsOf` gives those of an array that have an entry: `distinctElements`, or more of them for an upper bound. */
export function indexUsage(
  definitions: IndexDefinitions,
  name: DocumentName,
  fields: Fields,
  elementsOf: (values: readonly Value[]) => readonly Value[],
): IndexUsage {
  const group = groupOf(name);
  const own = nameSize(name.segments);
  // A document of a root collection has no parent.
  const both = own + (name.segments.length > 2 ? nameSize(name.segments.slice(0, -2)) : 0);
  let count = 0;
  let bytes = 0;
  let largest: IndexUsage['largest'] = { bytes: 0, fields: [] };
  const add = (size: number, paths: readonly string[]): void => {
    count += 1;
    bytes += size;
    if (size > largest.bytes) largest = { bytes: size, fields: paths };
  };

  const addSingles = (at: Fields, parent: FieldPath, parentBytes: number): void => {
    for (const [key, value] of Object.entries(at)) {
      const path = [...parent, key];
      // With the period in front, or, of the first one, the one byte that a string has more than its text.
      const pathBytes = parentBytes + Buffer.byteLength(key) + 1;
      const named = [path.join('.')];
      for (const { queryScope, kind } of definitions.ofField(group, path)) {
        const overhead = (queryScope === 'COLLECTION' ? both + 32 : own + 48) + pathBytes;
        if (kind !== 'CONTAINS') add(overhead + indexedSize(value), named);
        else if (value.valueType === 'arrayValue') {
          for (const each of elementsOf(value.arrayValue.values)) add(overhead + indexedSize(each), named);
        }
      }
      if (isMap(value)) addSingles(value.mapValue.fields, path, pathBytes);
    }
  };

  const addComposite = (index: Index, overhead: number): void => {
    const named = index.fields.map(({ path }) => path);
    let ordered = overhead;
    let elements: readonly Value[] | undefined;
    for (const { path, kind } of index.fields) {
      const value = getField(fields, parseFieldPath(path));
      // A document without one of the fields is not in the index.
      if (value === undefined) return;
      if (kind !== 'CONTAINS') ordered += indexedSize(value);
      else if (value.valueType === 'arrayValue') elements = value.arrayValue.values;
      else return;
    }
    if (elements === undefined) add(ordered, named);
    else for (const each of elementsOf(elements)) add(ordered + indexedSize(each), named);
  };

  addSingles(fields, [], 0);
  for (const index of definitions.composites(group, 'COLLECTION')) addComposite(index, both + 32);
  for (const index of definitions.composites(group, 'COLLECTION_GROUP')) addComposite(index, own + 32);
  return { count, bytes, largest };
}

/** Equal elements of an array are one entry: the same value of the same document. */
export function distinctElements(values: readonly Value[]): readonly Value[] {
  const sorted = [...values].sort(compareValues);
  return sorted.filter((value, i) => {
    const before = sorted[i - 1];
    return before === undefined || compareValues(before, value) !== 0;
  });
}

const groupOf = (name: DocumentName): string => name.segments.at(-2) ?? '';
const indexedSize = (value: Value): number => Math.min(MAX_INDEXED_BYTES, valueSize(value, ''));

/** A vector is one value. */
const isMap = (value: Value): value is Extract<Value, { valueType: 'mapValue' }> =>
  value.valueType === 'mapValue' && vectorOf(value) === undefined;

type Nodes = Readonly<{ count: number; longestPath: number; longestArray: number }>;

/** What the fields can have of entries in single-field indexes at most. The path is in bytes. */
function nodesOf(fields: Fields, parentBytes: number): Nodes {
  let count = 0;
  let longestPath = 0;
  let longestArray = 0;
  for (const key in fields) {
    const value = fields[key];
    if (value === undefined) continue;
    const pathBytes = parentBytes + MAX_UTF8_BYTES * key.length + 1;
    count += ORDERED;
    longestPath = Math.max(longestPath, pathBytes);
    if (value.valueType === 'arrayValue') {
      const { length } = value.arrayValue.values;
      count += PER_ELEMENT * length;
      longestArray = Math.max(longestArray, length);
    } else if (value.valueType === 'mapValue') {
      const inner = nodesOf(value.mapValue.fields, pathBytes);
      count += inner.count;
      longestPath = Math.max(longestPath, inner.longestPath);
      longestArray = Math.max(longestArray, inner.longestArray);
    }
  }
  return { count, longestPath, longestArray };
}
