/**
 * Whether fields are the same to the bit, which is stricter than Firestore's equality of values: 3 and 3.0, or
 * 0 and -0, differ. It decides whether a write changed its document.
 */
import type { Fields, Value } from './values.ts';

export function identicalFields(a: Fields, b: Fields): boolean {
  if (a === b) return true;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => identical(a[name], b[name]));
}

function identical(a: Value | undefined, b: Value | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  switch (a.valueType) {
    case 'nullValue':
      return b.valueType === a.valueType;
    case 'booleanValue':
      return b.valueType === a.valueType && a.booleanValue === b.booleanValue;
    case 'integerValue':
      return b.valueType === a.valueType && a.integerValue === b.integerValue;
    case 'doubleValue':
      return b.valueType === a.valueType && Object.is(a.doubleValue, b.doubleValue);
    case 'timestampValue': {
      if (b.valueType !== a.valueType) return false;
      const [x, y] = [a.timestampValue, b.timestampValue];
      return x.seconds === y.seconds && x.nanos === y.nanos;
    }
    case 'stringValue':
      return b.valueType === a.valueType && a.stringValue === b.stringValue;
    case 'bytesValue':
      return b.valueType === a.valueType && a.bytesValue.equals(b.bytesValue);
    case 'referenceValue':
      return b.valueType === a.valueType && a.referenceValue === b.referenceValue;
    case 'geoPointValue': {
      if (b.valueType !== a.valueType) return false;
      const [x, y] = [a.geoPointValue, b.geoPointValue];
      return Object.is(x.latitude, y.latitude) && Object.is(x.longitude, y.longitude);
    }
    case 'arrayValue': {
      if (b.valueType !== a.valueType) return false;
      const [x, y] = [a.arrayValue.values, b.arrayValue.values];
      return x.length === y.length && x.every((value, i) => identical(value, y[i]));
    }
    case 'mapValue':
      return b.valueType === a.valueType && identicalFields(a.mapValue.fields, b.mapValue.fields);
  }
}
