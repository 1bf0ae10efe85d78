/**
 * Firestore's order over all values, and the equality that follows from it: null, booleans, numbers (NaN first,
 * integers and doubles mixed and compared exactly), timestamps, strings (by UTF-8), bytes, references, geo points,
 * arrays, vectors, maps (https://firebase.google.com/docs/firestore/manage-data/data-types).
 */
import { numericId } from './names.ts';
import type { WireTimestamp } from './time.ts';
import { type Fields, type GeoPoint, type Value, vectorOf } from './values.ts';

const RANK: Readonly<Record<Value['valueType'], number>> = {
  nullValue: 0,
  booleanValue: 1,
  integerValue: 2,
  doubleValue: 2,
  timestampValue: 3,
  stringValue: 4,
  bytesValue: 5,
  referenceValue: 6,
  geoPointValue: 7,
  arrayValue: 8,
  mapValue: 10,
};
const VECTOR_RANK = 9;

/** Values of different ranks never compare in a range filter. */
export function rankOf(value: Value): number {
  return value.valueType === 'mapValue' && vectorOf(value) !== undefined
    ? VECTOR_RANK
    : RANK[value.valueType];
}

/** Negative, zero or positive. Zero is Firestore's equality: 3 equals 3.0, NaN equals NaN, 0 equals -0. */
export function compareValues(a: Value, b: Value): number {
  if (a.valueType === 'integerValue' && b.valueType === 'integerValue') {
    return compareNumbers(numberOf(a), numberOf(b));
  }
  const rank = rankOf(a) - rankOf(b);
  if (rank !== 0) return rank;
  switch (a.valueType) {
    case 'nullValue':
      return 0;
    case 'booleanValue':
      return b.valueType === a.valueType ? Number(a.booleanValue) - Number(b.booleanValue) : 0;
    case 'integerValue':
    case 'doubleValue':
      return compareNumbers(numberOf(a), numberOf(b));
    case 'timestampValue':
      return b.valueType === a.valueType ? compareTimes(a.timestampValue, b.timestampValue) : 0;
    case 'stringValue':
      return b.valueType === a.valueType ? compareStrings(a.stringValue, b.stringValue) : 0;
    case 'bytesValue':
      return b.valueType === a.valueType ? Buffer.compare(a.bytesValue, b.bytesValue) : 0;
    case 'referenceValue':
      if (b.valueType !== a.valueType) return 0;
      return comparePaths(a.referenceValue.split('/'), b.referenceValue.split('/'));
    case 'geoPointValue':
      return b.valueType === a.valueType ? compareGeoPoints(a.geoPointValue, b.geoPointValue) : 0;
    case 'arrayValue':
      return b.valueType === a.valueType ? compareArrays(a.arrayValue.values, b.arrayValue.values) : 0;
    case 'mapValue':
      return b.valueType === a.valueType ? compareMaps(a, b) : 0;
  }
}

export const equalValues = (a: Value, b: Value): boolean => compareValues(a, b) === 0;

/** By UTF-8 bytes, which is the order of code points: UTF-16 differs from it only where surrogates are. */
export function compareStrings(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    const xSurrogate = x >= 0xd800 && x <= 0xdfff;
    const ySurrogate = y >= 0xd800 && y <= 0xdfff;
    return xSurrogate === ySurrogate ? x - y : xSurrogate ? 1 : -1;
  }
  return a.length - b.length;
}

/** Segment by segment; numeric IDs (`__id7__`) come first, by number. */
export function comparePaths(a: readonly string[], b: readonly string[]): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const order = compareIds(a[i] ?? '', b[i] ?? '');
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** The number in a numeric value: a bigint where a double could not hold it exactly. */
export function numberOf(value: Value): number | bigint {
  if (value.valueType === 'doubleValue') return value.doubleValue;
  if (value.valueType !== 'integerValue') return Number.NaN;
  return value.integerValue.length <= 15 ? Number(value.integerValue) : BigInt(value.integerValue);
}

export function compareNumbers(a: number | bigint, b: number | bigint): number {
  const aNaN = Number.isNaN(a);
  const bNaN = Number.isNaN(b);
  if (aNaN || bNaN) return Number(bNaN) - Number(aNaN);
  // A bigint and a number compare exactly in JavaScript.
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareIds(a: string, b: string): number {
  const x = numericId(a);
  const y = numericId(b);
  if (x === undefined && y === undefined) return compareStrings(a, b);
  if (x === undefined || y === undefined) return x === undefined ? 1 : -1;
  return x < y ? -1 : x > y ? 1 : 0;
}

function compareTimes(a: WireTimestamp, b: WireTimestamp): number {
  return Number(a.seconds) - Number(b.seconds) || a.nanos - b.nanos;
}

function compareGeoPoints(a: GeoPoint, b: GeoPoint): number {
  return a.latitude - b.latitude || a.longitude - b.longitude;
}

function compareArrays(a: readonly Value[], b: readonly Value[]): number {
  for (const [i, x] of a.entries()) {
    const y = b[i];
    if (y === undefined) return 1;
    const order = compareValues(x, y);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareMaps(a: Value, b: Value): number {
  const x = vectorOf(a);
  const y = vectorOf(b);
  if (x !== undefined && y !== undefined) return x.length - y.length || compareArrays(x, y);
  if (a.valueType !== 'mapValue' || b.valueType !== 'mapValue') return 0;
  return compareFields(a.mapValue.fields, b.mapValue.fields);
}

function compareFields(a: Fields, b: Fields): number {
  const names = Object.keys(a).sort(compareStrings);
  const others = Object.keys(b).sort(compareStrings);
  for (const [i, name] of names.entries()) {
    const other = others[i];
    const x = a[name];
    const y = other === undefined ? undefined : b[other];
    if (other === undefined || x === undefined || y === undefined) return 1;
    const order = compareStrings(name, other) || compareValues(x, y);
    if (order !== 0) return order;
  }
  return names.length - others.length;
}
