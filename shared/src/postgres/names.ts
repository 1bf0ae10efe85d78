/**
 * Names that become part of a statement, where no parameter is allowed.
 */
import { refused } from '../errors.ts';

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;

/** Throws ConfigError for what is no plain identifier; 63 bytes is Postgres's own limit. */
export function checkIdentifier(path: string, name: unknown): void {
  if (typeof name === 'string' && NAME.test(name)) return;
  throw refused(path, name, 'a plain name: letters, digits and "_", at most 63');
}

/** Quoted, of a checked name. */
export const quote = (name: string): string => `"${name}"`;
