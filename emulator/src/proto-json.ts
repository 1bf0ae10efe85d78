/**
 * Messages from and to proto3 JSON (https://protobuf.dev/programming-guides/json), by a description of their fields.
 * Strict: what the description does not know, or cannot hold, is INVALID_ARGUMENT with the service's wording, and never
 * dropped. Fields are known by their JSON name and by that of the proto; null is an absent field.
 */
import { invalidArgument, type StatusError } from './grpc-server.ts';
import {
  type Duration,
  readDuration,
  readTimestamp,
  type Timestamp,
  writeDuration,
  writeTimestamp,
} from './json-times.ts';

export type Fields = Readonly<{ [jsonName: string]: Kind }>;
export type Kind =
  | 'string'
  | 'bool'
  | 'int32'
  | 'double'
  | 'bytes'
  | 'timestamp'
  | 'duration'
  | 'fieldMask'
  /** string to string */
  | 'map'
  /** A list of strings. */
  | 'strings'
  /** Names by number. */
  | Readonly<{ values: readonly string[] }>
  | Readonly<{ fields: Fields }>
  | Readonly<{ list: Fields }>;

const toSnake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const toCamel = (name: string): string =>
  name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** The message as @grpc/proto-loader takes it. `at` is the path so far, for the texts of errors. */
export function fromJson(fields: Fields, json: unknown, at = ''): Record<string, unknown> {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw invalidValue(json, at);
  const message: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(json)) {
    const field = toCamel(name);
    const kind = Object.hasOwn(fields, field) ? fields[field] : undefined;
    const path = at === '' ? toSnake(field) : `${at}.${toSnake(field)}`;
    if (kind === undefined) {
      const where = at === '' ? '' : ` at '${at}'`;
      throw invalidArgument(
        `Invalid JSON payload received. Unknown name ${JSON.stringify(name)}${where}: Cannot find field.`,
      );
    }
    if (value !== null) message[field] = valueFrom(kind, value, path);
  }
  return message;
}

function valueFrom(kind: Kind, json: unknown, at: string): unknown {
  const value = typeof kind === 'string' ? scalarFrom(kind, json) : messageFrom(kind, json, at);
  if (value === undefined) throw invalidValue(json, at);
  return value;
}

function messageFrom(kind: Exclude<Kind, string>, json: unknown, at: string): unknown {
  if ('fields' in kind) return fromJson(kind.fields, json, at);
  if ('list' in kind) {
    return Array.isArray(json) ? json.map((item) => fromJson(kind.list, item, at)) : undefined;
  }
  return typeof json === 'number' ? kind.values[json] : kind.values.find((name) => name === json);
}

/** Undefined: the value is none of this kind. */
function scalarFrom(kind: Exclude<Kind, object>, json: unknown): unknown {
  if (kind === 'int32' || kind === 'double') return numberFrom(kind, json);
  if (kind === 'map') return isMap(json) ? json : undefined;
  if (kind === 'strings') return isStrings(json) ? json : undefined;
  if (kind === 'bool') return typeof json === 'boolean' ? json : undefined;
  if (typeof json !== 'string') return undefined;
  switch (kind) {
    case 'bytes':
      return bytesFrom(json);
    case 'timestamp':
      return readTimestamp(json);
    case 'duration':
      return readDuration(json);
    case 'fieldMask':
      return { paths: json === '' ? [] : json.split(',').map((path) => toSnake(path.trim())) };
    case 'string':
      return json;
  }
}

/** Of both alphabets, with or without padding. */
function bytesFrom(json: string): Buffer | undefined {
  const digits = json.replace(/={1,2}$/, '');
  const padded = digits.length < json.length;
  if (/[^A-Za-z0-9+/_-]/.test(digits) || digits.length % 4 === 1) return undefined;
  return padded && json.length % 4 !== 0 ? undefined : Buffer.from(json, 'base64');
}

function numberFrom(kind: 'int32' | 'double', json: unknown): number | undefined {
  const numeric =
    typeof json === 'number' || (typeof json === 'string' && /^-?[\d.]+(?:e[+-]?\d+)?$/i.test(json));
  const number = numeric ? Number(json) : Number.NaN;
  if (!Number.isFinite(number)) return undefined;
  return kind === 'double' || (number | 0) === number ? number : undefined;
}

function isMap(json: unknown): boolean {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return false;
  return Object.values(json).every((value) => typeof value === 'string');
}

const isStrings = (json: unknown): boolean =>
  Array.isArray(json) && json.every((item) => typeof item === 'string');

const invalidValue = (json: unknown, at: string): StatusError =>
  invalidArgument(
    at === ''
      ? 'Invalid JSON payload received. The root must be an object.'
      : `Invalid value at '${at}', ${JSON.stringify(json).slice(0, 200)}`,
  );

/** A message as @grpc/proto-loader gives it. A field with the default value of its type is left out. */
export function toJson(fields: Fields, message: object, enumsAsInts: boolean): Record<string, unknown> {
  const given = message as Readonly<Record<string, unknown>>;
  const entries = Object.entries(fields).flatMap(([name, kind]) => {
    const value = given[name];
    if (value === null || value === undefined) return [];
    const json = valueTo(kind, value, enumsAsInts);
    return json === undefined ? [] : [[name, json] as const];
  });
  return Object.fromEntries(entries);
}

/** Undefined: the default. */
function valueTo(kind: Kind, value: unknown, enumsAsInts: boolean): unknown {
  if (typeof kind !== 'string') {
    if ('fields' in kind) return toJson(kind.fields, value as object, enumsAsInts);
    if ('list' in kind) {
      const items = (value as readonly object[]).map((item) => toJson(kind.list, item, enumsAsInts));
      return items.length > 0 ? items : undefined;
    }
    const number = kind.values.indexOf(value as string);
    if (number === 0) return undefined;
    return enumsAsInts ? number : value;
  }
  if (kind === 'timestamp') return writeTimestamp(value as Timestamp);
  if (kind === 'duration') return writeDuration(value as Duration);
  if (kind === 'bytes') return (value as Buffer).toString('base64') || undefined;
  if (kind === 'map') return Object.keys(value as object).length > 0 ? value : undefined;
  if (kind === 'strings') return (value as readonly string[]).length > 0 ? value : undefined;
  return value === '' || value === 0 || value === false ? undefined : value;
}
