/** A document of a seed as the write that creates or replaces it. */
import { readTimestamp } from '../json-times.ts';
import { type Named, SeedError } from './named.ts';

/** A field of Google's Value that JSON has no form of its own for. */
const TYPED = [
  'timestampValue',
  'bytesValue',
  'referenceValue',
  'geoPointValue',
  'integerValue',
  'doubleValue',
];

/** The request of `Commit`. `path`: of the document below the database, or its full name. */
export function writeOf({ name, options }: Named, project: string, at: string): object {
  const full = name.startsWith('projects/')
    ? name
    : `projects/${project}/databases/(default)/documents/${name}`;
  const database = full.split('/').slice(0, 4).join('/');
  return { database, writes: [{ update: { name: full, fields: fieldsOf(options, at) } }] };
}

const fieldsOf = (fields: object, at: string): object =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, valueOf(value, `${at}.${name}`)]));

function valueOf(value: unknown, at: string): object {
  if (value === null || value === undefined) return { nullValue: 'NULL_VALUE' };
  if (typeof value === 'boolean') return { booleanValue: value };
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) ? { integerValue: String(value) } : { doubleValue: value };
  }
  if (Array.isArray(value)) {
    return { arrayValue: { values: value.map((item, index) => valueOf(item, `${at}.${index}`)) } };
  }
  if (typeof value !== 'object') throw new SeedError(at, `a ${typeof value} is no value`);
  const [only, ...more] = Object.entries(value);
  if (only !== undefined && more.length === 0 && TYPED.includes(only[0])) return typed(only[0], only[1], at);
  return { mapValue: { fields: fieldsOf(value, at) } };
}

function typed(type: string, value: unknown, at: string): object {
  const made = typedValue(type, value);
  if (made !== undefined) return { [type]: made };
  throw new SeedError(at, `${JSON.stringify(value)} is no ${type}`);
}

function typedValue(type: string, value: unknown): unknown {
  switch (type) {
    case 'timestampValue':
      return typeof value === 'string' ? readTimestamp(value) : undefined;
    case 'bytesValue':
      return typeof value === 'string' ? Buffer.from(value, 'base64') : undefined;
    case 'referenceValue':
      return typeof value === 'string' ? value : undefined;
    case 'integerValue':
      return /^-?\d{1,19}$/.test(String(value)) ? String(value) : undefined;
    case 'doubleValue':
      return typeof value === 'number' ? value : undefined;
    default:
      return typeof value === 'object' && value !== null ? value : undefined;
  }
}
