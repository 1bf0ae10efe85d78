/**
 * Avro's JSON encoding (https://avro.apache.org/docs/1.11.1/specification/#json-encoding): the value of a union stands
 * under the name of its type, and every field of a record is there, defaults or not; what a record does not have is passed
 * over. `avsc` has the last word; it fills fields in that are missing, so they are looked for here. Where the service's
 * own words for a violation were recorded, these are they: see docs/decisions/0052.
 */
import type avsc from 'avsc';
import { type Json, firstOf, isObject } from './json.ts';

/** Undefined where the text is a value of the type. */
export function jsonViolation(type: avsc.Type, data: Buffer): string | undefined {
  let value: unknown;
  const text = data.toString('utf8');
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `The message is not JSON: ${(error as Error).message}`;
  }
  const found = violation(type, value);
  if (found !== undefined) return found;
  try {
    type.fromString(text);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** What avsc calls a `long` of 64 bits. */
const LONG = 'abstract:long';

function violation(type: avsc.Type, value: unknown): string | undefined {
  switch (type.typeName) {
    case 'record':
    case 'error':
      return isObject(value)
        ? recordViolation(type as avsc.types.RecordType, value)
        : mismatch(value, 'object');
    case 'array': {
      const { itemsType } = type as avsc.types.ArrayType;
      return Array.isArray(value)
        ? firstOf(value, (item) => violation(itemsType, item))
        : mismatch(value, 'array');
    }
    case 'map': {
      const { valuesType } = type as avsc.types.MapType;
      return isObject(value)
        ? firstOf(Object.values(value), (item) => violation(valuesType, item))
        : mismatch(value, 'object');
    }
    case 'union:wrapped':
      return unionViolation(type as avsc.types.WrappedUnionType, value);
    case 'enum':
      return enumViolation(type as avsc.types.EnumType, value);
    case 'int':
    case LONG:
      return Number.isInteger(value) ? undefined : mismatch(value, 'number_integer');
    case 'float':
    case 'double':
      return typeof value === 'number' ? undefined : mismatch(value, 'number_float');
    case 'boolean':
      return typeof value === 'boolean' ? undefined : mismatch(value, 'boolean');
    case 'null':
      return value === null ? undefined : mismatch(value, 'null');
    default:
      return typeof value === 'string' ? undefined : mismatch(value, 'string');
  }
}

const recordViolation = ({ fields }: avsc.types.RecordType, value: Json): string | undefined =>
  firstOf(fields, ({ name, type }) =>
    Object.hasOwn(value, name) ? violation(type, value[name]) : `Field was not found in JSON object: ${name}`,
  );

function unionViolation(union: avsc.types.WrappedUnionType, value: unknown): string | undefined {
  const branches = union.types;
  if (value === null && branches.some(({ typeName }) => typeName === 'null')) return undefined;
  const [name, ...others] = isObject(value) ? Object.keys(value) : [];
  if (!isObject(value) || name === undefined || others.length > 0) return mismatch(value, 'object');
  const branch = branches.find(({ branchName }) => branchName === name);
  return branch === undefined ? `Union has no type ${name}` : violation(branch, value[name]);
}

function enumViolation({ symbols, name = '' }: avsc.types.EnumType, value: unknown): string | undefined {
  if (typeof value !== 'string') return mismatch(value, 'string');
  return symbols.includes(value) ? undefined : `Invalid enum index without default value: ${name}`;
}

const mismatch = (value: unknown, expected: string): string =>
  `JSON object with type ${kindOf(value)} does not match schema which expected ${expected}`;

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'number_integer' : 'number_float';
  return typeof value;
}
