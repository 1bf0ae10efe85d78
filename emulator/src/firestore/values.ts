/**
 * Firestore's values as they travel and as they are kept: checked once when they come in, immutable after.
 * A value of a kind that a stored document may not hold is refused by name, never dropped.
 */
import { invalidArgument } from '../grpc-server.ts';
import { isReserved } from './names.ts';
import { truncateToMicroseconds, type WireTimestamp } from './time.ts';

export type Fields = Readonly<Record<string, Value>>;
export type GeoPoint = Readonly<{ latitude: number; longitude: number }>;

export type Value =
  | Readonly<{ valueType: 'nullValue'; nullValue: 'NULL_VALUE' }>
  | Readonly<{ valueType: 'booleanValue'; booleanValue: boolean }>
  | Readonly<{ valueType: 'integerValue'; integerValue: string }>
  | Readonly<{ valueType: 'doubleValue'; doubleValue: number }>
  | Readonly<{ valueType: 'timestampValue'; timestampValue: WireTimestamp }>
  | Readonly<{ valueType: 'stringValue'; stringValue: string }>
  | Readonly<{ valueType: 'bytesValue'; bytesValue: Buffer }>
  | Readonly<{ valueType: 'referenceValue'; referenceValue: string }>
  | Readonly<{ valueType: 'geoPointValue'; geoPointValue: GeoPoint }>
  | Readonly<{ valueType: 'arrayValue'; arrayValue: Readonly<{ values: readonly Value[] }> }>
  | Readonly<{ valueType: 'mapValue'; mapValue: Readonly<{ fields: Fields }> }>;

export type ArrayOf = Extract<Value, { valueType: 'arrayValue' }>;

/** What the wire delivers: the same shape, not yet checked. */
export type WireValue = Value | Readonly<{ valueType?: string }> | null | undefined;

/** Maps and arrays may nest this deep (https://firebase.google.com/docs/firestore/quotas, 20 levels). */
const MAX_DEPTH = 20;
/** Bytes of UTF-8 in a field's name (same page). */
const MAX_FIELD_NAME_BYTES = 1_500;
/** Dimensions of a vector embedding (https://firebase.google.com/docs/firestore/vector-search). */
const MAX_VECTOR_DIMENSIONS = 2_048;

export const NULL: Value = { valueType: 'nullValue', nullValue: 'NULL_VALUE' };

export const arrayOf = (values: readonly Value[]): ArrayOf => ({
  valueType: 'arrayValue',
  arrayValue: { values },
});

/** Fields without a prototype: a field may be called `constructor`. */
export function fieldsOf(entries: Iterable<readonly [string, Value]>): Fields {
  const fields = Object.create(null) as Record<string, Value>;
  for (const [name, value] of entries) fields[name] = value;
  return fields;
}

/** Checks a map of fields. `where` names it in an error. Throws INVALID_ARGUMENT. */
export function checkFields(fields: Readonly<Record<string, WireValue>>, where: string, depth = 0): Fields {
  const checked: [string, Value][] = [];
  for (const [name, value] of Object.entries(fields)) {
    checkFieldName(name, where);
    checked.push([name, checkValue(value, `${where}.${name}`, depth + 1)]);
  }
  return fieldsOf(checked);
}

export function checkFieldName(name: string, where: string): void {
  if (name === '') throw invalidArgument(`${where}: a field name may not be empty`);
  if (isReserved(name)) {
    throw invalidArgument(`${where}: the field name "${name}" matches the reserved pattern __.*__`);
  }
  if (Buffer.byteLength(name) > MAX_FIELD_NAME_BYTES) {
    throw invalidArgument(`${where}: a field name is longer than ${MAX_FIELD_NAME_BYTES} bytes`);
  }
}

/** Checks one value; timestamps are cut to microseconds, as the service does. Throws INVALID_ARGUMENT. */
export function checkValue(wire: WireValue, where: string, depth = 0): Value {
  if (!isKnown(wire)) {
    throw invalidArgument(`${where}: a value of type ${wire?.valueType ?? '(not set)'} is not accepted`);
  }
  const isNested = wire.valueType === 'mapValue' || wire.valueType === 'arrayValue';
  if (isNested && depth > MAX_DEPTH) {
    throw invalidArgument(`${where}: maps and arrays nest deeper than ${MAX_DEPTH} levels`);
  }
  switch (wire.valueType) {
    case 'timestampValue':
      return {
        valueType: 'timestampValue',
        timestampValue: truncateToMicroseconds(wire.timestampValue, where),
      };
    case 'geoPointValue':
      return checkGeoPoint(wire.geoPointValue, where);
    case 'referenceValue':
      if (/^projects\/[^/]+\/databases\/[^/]+\/documents(\/[^/]+\/[^/]+)+$/.test(wire.referenceValue))
        return wire;
      throw invalidArgument(`${where}: "${wire.referenceValue}" is not the name of a document`);
    case 'arrayValue':
      return arrayOf(
        wire.arrayValue.values.map((value, i) => checkElement(value, `${where}[${i}]`, depth + 1)),
      );
    case 'mapValue':
      return checkMap(wire.mapValue.fields, where, depth);
    case 'nullValue':
    case 'booleanValue':
    case 'integerValue':
    case 'doubleValue':
    case 'stringValue':
    case 'bytesValue':
      return wire;
  }
}

/** The numbers of a vector embedding (a map that the client marks with `__type__`), or undefined. */
export function vectorOf(value: Value): readonly Value[] | undefined {
  if (value.valueType !== 'mapValue') return undefined;
  const { fields } = value.mapValue;
  const type = fields['__type__'];
  if (type?.valueType !== 'stringValue' || type.stringValue !== '__vector__') return undefined;
  const numbers = fields['value'];
  return numbers?.valueType === 'arrayValue' ? numbers.arrayValue.values : undefined;
}

const KNOWN: ReadonlySet<string> = new Set<Value['valueType']>([
  'nullValue',
  'booleanValue',
  'integerValue',
  'doubleValue',
  'timestampValue',
  'stringValue',
  'bytesValue',
  'referenceValue',
  'geoPointValue',
  'arrayValue',
  'mapValue',
]);

function isKnown(wire: WireValue): wire is Value {
  return typeof wire?.valueType === 'string' && KNOWN.has(wire.valueType);
}

function checkElement(wire: WireValue, where: string, depth: number): Value {
  if (wire?.valueType === 'arrayValue') {
    throw invalidArgument(`${where}: an array may not directly contain another array`);
  }
  return checkValue(wire, where, depth);
}

function checkGeoPoint(point: GeoPoint, where: string): Value {
  const { latitude, longitude } = point;
  if (!(Math.abs(latitude) <= 90)) throw invalidArgument(`${where}: latitude ${latitude} is not within ±90`);
  if (!(Math.abs(longitude) <= 180)) {
    throw invalidArgument(`${where}: longitude ${longitude} is not within ±180`);
  }
  return { valueType: 'geoPointValue', geoPointValue: { latitude, longitude } };
}

/** A vector is the one map that may hold a reserved name. */
function checkMap(fields: Readonly<Record<string, WireValue>>, where: string, depth: number): Value {
  if (!Object.hasOwn(fields, '__type__')) {
    return { valueType: 'mapValue', mapValue: { fields: checkFields(fields, where, depth) } };
  }
  const checked = fieldsOf(Object.entries(fields).map(([name, value]) => [name, checkValue(value, where)]));
  const map: Value = { valueType: 'mapValue', mapValue: { fields: checked } };
  const numbers = vectorOf(map);
  const legal =
    numbers !== undefined &&
    Object.keys(checked).length === 2 &&
    numbers.length > 0 &&
    numbers.length <= MAX_VECTOR_DIMENSIONS &&
    numbers.every((value) => value.valueType === 'doubleValue');
  if (!legal) {
    throw invalidArgument(
      `${where}: a map with __type__ must be a vector of 1 to ${MAX_VECTOR_DIMENSIONS} doubles`,
    );
  }
  return map;
}
