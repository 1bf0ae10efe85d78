/**
 * Reading fields of a body that another program wrote. Every refusal names the field, so that a dead letter can be
 * understood without the sender's source.
 */
import { PermanentError } from '../errors.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** The body came from Pub/Sub or Eventarc, or says so, and cannot be understood: a dead letter. */
export const invalidBody = (field: string, problem: string, cause?: unknown): PermanentError =>
  new PermanentError('INVALID_BODY', `${field} ${problem}`, { cause });

/** The request is no delivery at all: there is nothing to save. */
export const notFromPubsub = (problem: string): PermanentError =>
  new PermanentError('NOT_FROM_PUBSUB', problem);

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Undefined for what is not JSON in UTF-8. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

/** The first of the spellings that is there; `null` counts as absent, as in proto3 JSON. */
export function field(fields: Fields, ...spellings: readonly string[]): unknown {
  for (const spelling of spellings) {
    const value = fields[spelling];
    if (value !== undefined && value !== null) return value;
  }
  return undefined;
}

/** A string that is there and not empty, or undefined. */
export function optionalText(value: unknown, path: string): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw invalidBody(path, `is ${shown(value)}; accepted: a string`);
  if (!value.isWellFormed())
    throw invalidBody(path, 'holds half a surrogate pair; accepted: well-formed text');
  return value;
}

/** For error texts about what may hold a payload, which is never in one: errors are logged. */
export function typeName(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  return `of type ${Array.isArray(value) ? 'array' : typeof value}`;
}

/** For error texts: short, and of any type. For fields that hold no payload. */
export function shown(value: unknown): string {
  const text = value === undefined ? 'missing' : (JSON.stringify(value) ?? typeof value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/**
 * Standard base64 with padding, checked by writing it again: a lenient decoder skips what it does not know, and the
 * subscriber would get other bytes than were sent.
 */
export function decodeBase64(value: unknown, path: string): Buffer {
  if (value === undefined || value === null || value === '') return Buffer.alloc(0);
  // The payload itself is never in an error: errors are logged.
  if (typeof value !== 'string') throw invalidBody(path, `is of type ${typeof value}; accepted: base64`);
  const bytes = Buffer.from(value, 'base64');
  if (bytes.toString('base64') !== value) throw invalidBody(path, 'is not base64 with padding');
  return bytes;
}
