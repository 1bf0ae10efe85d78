/**
 * Firestore's values in Google's JSON form and back, to the bit: `{ "integerValue": "7" }`. A double that JSON does not
 * know is a string: "NaN", "Infinity", "-Infinity", "-0".
 */
import {
  accepted,
  at,
  bool,
  bytes,
  list,
  object,
  type Read,
  record,
  refused,
  SavedError,
  text,
  time,
  writeTimestamp,
} from '../saved-json.ts';
import { arrayOf, checkFieldName, checkValue, type Fields, fieldsOf, type Value } from './values.ts';

/** More than the store lets through: a bound for what is read recursively. */
const MAX_DEPTH = 500;
/** The two fields of a vector: the one map with a reserved name. */
const VECTOR_TYPE = '__type__';
const [INT64_MIN, INT64_MAX] = [-(2n ** 63n), 2n ** 63n - 1n];

export const saveFields = (fields: Fields): object =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, saveValue(value)]));

function saveValue(value: Value): object {
  switch (value.valueType) {
    case 'nullValue':
      return { nullValue: null };
    case 'booleanValue':
      return { booleanValue: value.booleanValue };
    case 'integerValue':
      return { integerValue: value.integerValue };
    case 'doubleValue':
      return { doubleValue: saveDouble(value.doubleValue) };
    case 'timestampValue':
      return { timestampValue: writeTimestamp(value.timestampValue) };
    case 'stringValue':
      return { stringValue: value.stringValue };
    case 'bytesValue':
      return { bytesValue: value.bytesValue.toString('base64') };
    case 'referenceValue':
      return { referenceValue: value.referenceValue };
    case 'geoPointValue': {
      const { latitude, longitude } = value.geoPointValue;
      return { geoPointValue: { latitude: saveDouble(latitude), longitude: saveDouble(longitude) } };
    }
    case 'arrayValue':
      return { arrayValue: { values: value.arrayValue.values.map(saveValue) } };
    case 'mapValue':
      return { mapValue: { fields: saveFields(value.mapValue.fields) } };
  }
}

function saveDouble(value: number): number | string {
  if (Object.is(value, -0)) return '-0';
  return Number.isFinite(value) ? value : String(value);
}

export const fields: Read<Fields> = (value, place) => readFields(value, place, 0);

function readFields(value: unknown, place: string, depth: number): Fields {
  const given = object(value, place);
  const isVector = depth > 0 && Object.hasOwn(given, VECTOR_TYPE);
  return fieldsOf(
    Object.entries(given).map(([name, each]) => {
      if (!(isVector && name === VECTOR_TYPE)) accepted(place, () => checkFieldName(name, 'fields'));
      return [name, readValue(each, at(place, name), depth + 1)];
    }),
  );
}

function readValue(json: unknown, place: string, depth: number): Value {
  if (depth > MAX_DEPTH)
    throw new SavedError(`${place.slice(0, 100)}… is nested more than ${MAX_DEPTH} deep`);
  const [[kind, value] = ['', undefined], ...others] = Object.entries(object(json, place));
  const read = Object.hasOwn(READERS, kind) ? READERS[kind] : undefined;
  if (read === undefined || others.length > 0) {
    throw refused(place, json, `an object with one of ${Object.keys(READERS).join(', ')}`);
  }
  return read(value, at(place, kind), depth);
}

const double: Read<number> = (value, place) => {
  if (typeof value === 'number') return value;
  const spelled = ['NaN', 'Infinity', '-Infinity', '-0'].find((name) => name === value);
  if (spelled === undefined) throw refused(place, value, 'a number, "NaN", "Infinity", "-Infinity", "-0"');
  return Number(spelled);
};

const integer: Read<string> = (value, place) => {
  const known =
    typeof value === 'string' && /^(?:0|-?[1-9]\d{0,18})$/.test(value) ? BigInt(value) : undefined;
  if (known !== undefined && known >= INT64_MIN && known <= INT64_MAX) return String(known);
  throw refused(place, value, 'a string with a whole number of 64 bits');
};

const GEO_POINT = record({ latitude: double, longitude: double });
const ARRAY = record({ values: list((value) => value) });
const MAP = record({ fields: (value) => value });

/** What the service does not let into a document is refused in its words. */
const READERS: Readonly<Record<string, (value: unknown, place: string, depth: number) => Value>> = {
  nullValue(value, place) {
    if (value !== null) throw refused(place, value, 'null');
    return { valueType: 'nullValue', nullValue: 'NULL_VALUE' };
  },
  booleanValue: (value, place) => ({ valueType: 'booleanValue', booleanValue: bool(value, place) }),
  integerValue: (value, place) => ({ valueType: 'integerValue', integerValue: integer(value, place) }),
  doubleValue: (value, place) => ({ valueType: 'doubleValue', doubleValue: double(value, place) }),
  timestampValue: (value, place) =>
    checked({ valueType: 'timestampValue', timestampValue: time(value, place) }, place),
  stringValue: (value, place) => ({ valueType: 'stringValue', stringValue: text(value, place) }),
  bytesValue: (value, place) => ({ valueType: 'bytesValue', bytesValue: bytes(value, place) }),
  referenceValue: (value, place) =>
    checked({ valueType: 'referenceValue', referenceValue: text(value, place) }, place),
  geoPointValue: (value, place) =>
    checked({ valueType: 'geoPointValue', geoPointValue: GEO_POINT(value, place) }, place),
  arrayValue: (value, place, depth) =>
    arrayOf(
      ARRAY(value, place).values.map((each, index) => {
        const element = readValue(each, `${place}.values[${index}]`, depth + 1);
        if (element.valueType !== 'arrayValue') return element;
        throw new SavedError(`${place}.values[${index}] is an array; accepted: any value but an array`);
      }),
    ),
  mapValue: (value, place, depth) => ({
    valueType: 'mapValue',
    mapValue: { fields: readFields(MAP(value, place).fields, `${place}.fields`, depth) },
  }),
};

const checked = (value: Value, place: string): Value => accepted(place, () => checkValue(value, 'the value'));
