/**
 * Field paths: `a.b` and quoted segments (`` a.`x.y` ``), and reading and changing nested fields by them.
 * Fields are immutable: a change returns new maps along the path and shares the rest.
 */
import { invalidArgument } from '../grpc-server.ts';
import { type Fields, fieldsOf, type Value } from './values.ts';

export type FieldPath = readonly string[];

/** What a filter, an order or a projection calls the document itself. */
export const NAME = '__name__';

/** Of its field names and the periods between them (https://cloud.google.com/firestore/quotas). */
const MAX_PATH_BYTES = 1_500;

const SIMPLE = /[A-Za-z_][A-Za-z0-9_]*/y;
const QUOTED = /`((?:[^`\\]|\\[^])+)`/y;

/** Throws INVALID_ARGUMENT for a path that is not well formed. */
export function parseFieldPath(text: string): FieldPath {
  const segments: string[] = [];
  let position = 0;
  for (;;) {
    const pattern = text[position] === '`' ? QUOTED : SIMPLE;
    pattern.lastIndex = position;
    const match = pattern.exec(text);
    if (match === null) throw invalidArgument(`"${text}" is not a field path: see position ${position}`);
    segments.push(match[1] === undefined ? match[0] : match[1].replace(/\\([^])/g, '$1'));
    position += match[0].length;
    if (position === text.length) return checkLength(segments);
    if (text[position] !== '.')
      throw invalidArgument(`"${text}" is not a field path: see position ${position}`);
    position += 1;
  }
}

function checkLength(path: FieldPath): FieldPath {
  if (Buffer.byteLength(path.join('.')) <= MAX_PATH_BYTES) return path;
  throw invalidArgument(`a field path is longer than ${MAX_PATH_BYTES} bytes`);
}

export const isName = (path: FieldPath): boolean => path.length === 1 && path[0] === NAME;

/** One spelling for each path, for keys and for order. */
export const formatFieldPath = (path: FieldPath): string =>
  path
    .map((segment) =>
      /^[A-Za-z_][A-Za-z0-9_]*$/.test(segment) ? segment : `\`${segment.replace(/[`\\]/g, '\\$&')}\``,
    )
    .join('.');

export function getField(fields: Fields, path: FieldPath): Value | undefined {
  let at: Fields | undefined = fields;
  let value: Value | undefined;
  for (const segment of path) {
    value = at?.[segment];
    if (value === undefined) return undefined;
    at = value.valueType === 'mapValue' ? value.mapValue.fields : undefined;
  }
  return value;
}

/** Sets or, with undefined, deletes. Whatever stands in the way of a nested value becomes a map. */
export function setField(fields: Fields, path: FieldPath, value: Value | undefined): Fields {
  const [first, ...rest] = path;
  if (first === undefined) return fields;
  const current = fields[first];
  if (rest.length === 0) return withField(fields, first, value);
  const inner = current?.valueType === 'mapValue' ? current.mapValue.fields : undefined;
  if (inner === undefined && value === undefined) return fields;
  const changed = setField(inner ?? fieldsOf([]), rest, value);
  return withField(fields, first, { valueType: 'mapValue', mapValue: { fields: changed } });
}

/** Only the masked fields. */
export function projectFields(fields: Fields, mask: readonly FieldPath[]): Fields {
  let projected = fieldsOf([]);
  for (const path of mask) {
    const value = getField(fields, path);
    if (value !== undefined) projected = setField(projected, path, value);
  }
  return projected;
}

function withField(fields: Fields, name: string, value: Value | undefined): Fields {
  const copy = Object.assign(Object.create(null), fields) as Record<string, Value>;
  if (value === undefined) delete copy[name];
  else copy[name] = value;
  return copy;
}
