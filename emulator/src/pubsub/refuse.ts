/** Options that this server does not carry out are refused by name, never accepted and then ignored. */
import { invalidArgument, unimplemented } from '../grpc-server.ts';
import type { FieldMask } from './wire.ts';

/** Throws UNIMPLEMENTED that names the first of `fields` (camel case) that the request sets. */
export function refuseSet(resource: string, message: object, fields: readonly string[]): void {
  for (const [field, value] of Object.entries(message)) {
    if (fields.includes(field) && isSet(value)) {
      throw unimplemented(`${resource}.${snakeCase(field)} is not implemented by this server`);
    }
  }
}

function isSet(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === '' || value === 0) return false;
  if (Array.isArray(value)) return value.length > 0;
  // An unset message arrives as null, an unset map as an object without entries: an empty message counts as unset.
  if (typeof value === 'object') return Object.keys(value).length > 0;
  return true;
}

/**
 * The paths of an update mask in camel case. Throws INVALID_ARGUMENT for none, and for paths into a field that is none of
 * `open`.
 */
export function maskedFields(
  mask: FieldMask | null,
  request: string,
  open: readonly string[] = [],
): readonly string[] {
  if (mask === null || mask.paths.length === 0) {
    throw invalidArgument(
      `The update_mask in the ${request} must be set, and must contain a non-empty paths list.`,
    );
  }
  return mask.paths.map((path) => {
    const field = path.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const [outer = '', ...inner] = field.split('.');
    if (path === '*' || (inner.length > 0 && !open.includes(outer))) {
      throw invalidArgument(`Invalid update_mask path ${path} in the ${request}: name a whole field.`);
    }
    return field;
  });
}

export const snakeCase = (field: string): string =>
  field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
