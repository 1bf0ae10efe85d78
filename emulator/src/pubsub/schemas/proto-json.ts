/**
 * The JSON form of a message of Protocol Buffers (https://protobuf.dev/programming-guides/json), by the descriptors that
 * `protobufjs` reads. A field is known by its own name or in lower camel case; null is an absent field; a name that the
 * message does not have is refused, as Google's parsers do it.
 */
import protobuf from 'protobufjs';
import { firstOf, isObject } from './json.ts';

export function jsonViolation(type: protobuf.Type, data: Buffer): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(data.toString('utf8'));
  } catch (error) {
    return `The message is not JSON: ${(error as Error).message}`;
  }
  return messageViolation(type, value, type.name);
}

function messageViolation(type: protobuf.Type, value: unknown, at: string): string | undefined {
  if (!isObject(value)) return mismatch(at, 'an object');
  const seen = new Set<protobuf.Field>();
  const choices = new Set<protobuf.OneOf>();
  for (const [name, item] of Object.entries(value)) {
    const field = type.fieldsArray.find((each) => namesOf(each).includes(name))?.resolve();
    if (field === undefined) return `${type.name} has no field ${name}`;
    if (seen.has(field)) return `${type.name} has the field ${name} twice`;
    seen.add(field);
    if (item === null) continue;
    const { partOf } = field;
    if (partOf && choices.has(partOf)) return `${type.name} has two fields of ${partOf.name}`;
    if (partOf) choices.add(partOf);
    const found = fieldViolation(field, item, `${at}.${name}`);
    if (found !== undefined) return found;
  }
  const missing = type.fieldsArray.find((field) => field.required && !seen.has(field));
  return missing && `${type.name} misses the required field ${missing.name}`;
}

const namesOf = ({ name, options }: protobuf.Field): readonly unknown[] => [
  name,
  options?.['json_name'] ?? protobuf.util.camelCase(name),
];

function fieldViolation(field: protobuf.Field, value: unknown, at: string): string | undefined {
  if (field instanceof protobuf.MapField) {
    if (!isObject(value)) return mismatch(at, 'an object');
    return firstOf(Object.entries(value), ([key, item]) =>
      isKey(field.keyType, key)
        ? valueViolation(field, item, `${at}.${key}`)
        : mismatch(`${at}.${key}`, field.keyType),
    );
  }
  if (!field.repeated) return valueViolation(field, value, at);
  return Array.isArray(value)
    ? firstOf(value.entries(), ([index, item]) => valueViolation(field, item as unknown, `${at}[${index}]`))
    : mismatch(at, 'an array');
}

function valueViolation(
  { type, resolvedType }: protobuf.Field,
  value: unknown,
  at: string,
): string | undefined {
  if (resolvedType instanceof protobuf.Type) return messageViolation(resolvedType, value, at);
  if (resolvedType instanceof protobuf.Enum) {
    const { values } = resolvedType;
    const known =
      typeof value === 'string' ? Object.hasOwn(values, value) : isWhole(value, -(2n ** 31n), 2n ** 31n);
    return known ? undefined : mismatch(at, `a value of ${resolvedType.name}`);
  }
  return isScalar(type, value) ? undefined : mismatch(at, type);
}

const RANGES: Readonly<Record<string, readonly [min: bigint, above: bigint]>> = {
  ...ranges(['int32', 'sint32', 'sfixed32'], -(2n ** 31n), 2n ** 31n),
  ...ranges(['uint32', 'fixed32'], 0n, 2n ** 32n),
  ...ranges(['int64', 'sint64', 'sfixed64'], -(2n ** 63n), 2n ** 63n),
  ...ranges(['uint64', 'fixed64'], 0n, 2n ** 64n),
};

function ranges(types: readonly string[], min: bigint, above: bigint) {
  return Object.fromEntries(types.map((type) => [type, [min, above] as const]));
}

function isScalar(type: string, value: unknown): boolean {
  const range = RANGES[type];
  if (range !== undefined) return isWhole(value, ...range);
  if (type === 'float' || type === 'double') return isFloat(value);
  if (type === 'bool') return typeof value === 'boolean';
  if (typeof value !== 'string') return false;
  return type === 'string' || /^[A-Za-z0-9+/_-]*={0,2}$/.test(value);
}

/** `min` counts, `above` does not. */
function isWhole(value: unknown, min: bigint, above: bigint): boolean {
  const isDigits = typeof value === 'string' && /^-?\d+$/.test(value);
  if (!isDigits && !Number.isInteger(value)) return false;
  const whole = BigInt(value as string | number);
  return whole >= min && whole < above;
}

function isFloat(value: unknown): boolean {
  if (typeof value === 'number') return true;
  if (typeof value !== 'string') return false;
  return /^(?:NaN|-?Infinity|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)$/.test(value);
}

function isKey(type: string, key: string): boolean {
  if (type === 'bool') return key === 'true' || key === 'false';
  return type === 'string' || isScalar(type, key);
}

const mismatch = (at: string, expected: string): string => `${at} is not ${expected}`;
