/**
 * Readers of saved state, which may have been edited by hand. Each takes a value and its place, as in
 * `pubsub.subscriptions[2].ackDeadlineSeconds`, and gives the value as the servers keep it, or throws an error of one
 * line that names both. Nothing is passed over: a field that is not known is refused.
 */
import { StatusError } from './grpc-server.ts';
import {
  type Duration,
  readDuration,
  readTimestamp,
  type Timestamp,
  writeDuration,
  writeTimestamp,
} from './json-times.ts';

/** `value` is undefined where there is none. */
export type Read<T> = (value: unknown, place: string) => T;
type Shape = Readonly<Record<string, Read<unknown>>>;

export class SavedError extends Error {
  constructor(message: string) {
    // What the service says of a name or a value may have line ends of its own.
    super(message.replace(/\s*[\n\r\u2028\u2029]\s*/g, ' '));
    this.name = 'SavedError';
  }
}

const SHOWN = 100;

export function refused(place: string, value: unknown, accepted: string): SavedError {
  if (value === undefined) return new SavedError(`${place} is missing; accepted: ${accepted}`);
  return new SavedError(`${place} is ${shown(value)}; accepted: ${accepted}`);
}

function shown(value: unknown): string {
  let text: string;
  try {
    text = JSON.stringify(value) ?? String(value);
  } catch {
    // A cycle, or a number without a form in JSON.
    text = String(value);
  }
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

/** The place of a field. */
export const at = (place: string, field: string): string =>
  /^[A-Za-z_][A-Za-z0-9_]*$/.test(field) ? `${place}.${field}` : `${place}[${JSON.stringify(field)}]`;

/** What a check of the service says, with the place before it. */
export function accepted<T>(place: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof StatusError) throw new SavedError(`${place} is refused: ${error.message}`);
    throw error;
  }
}

/** An object with these fields and no others. */
export function record<S extends Shape>(
  shape: S,
): Read<{ readonly [Field in keyof S]: ReturnType<S[Field]> }> {
  const fields = Object.entries(shape).map(([field, read]) => ({ field, read, place: at('', field) }));
  return (value, place) => {
    const given = object(value, place);
    for (const field of Object.keys(given)) {
      if (!Object.hasOwn(shape, field)) {
        const known = Object.keys(shape).join(', ') || 'no fields';
        throw new SavedError(`${at(place, field)} is not known; accepted: ${known}`);
      }
    }
    const found: Record<string, unknown> = {};
    for (const { field, read, place: suffix } of fields) {
      found[field] = read(Object.hasOwn(given, field) ? given[field] : undefined, place + suffix);
    }
    return found as { [Field in keyof S]: ReturnType<S[Field]> };
  };
}

export function object(value: unknown, place: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>;
  }
  throw refused(place, value, 'an object');
}

export function optional<T, U>(read: Read<T>, absent: U): Read<T | U> {
  return (value, place) => (value === undefined ? absent : read(value, place));
}

export function list<T>(read: Read<T>): Read<readonly T[]> {
  return (value, place) => {
    if (!Array.isArray(value)) throw refused(place, value, 'a list');
    return value.map((item, index) => read(item, `${place}[${index}]`));
  };
}

/** Throws when two items of the list have the same key. */
export function assertUnique<T>(
  items: readonly T[],
  place: string,
  field: string,
  key: (item: T) => string,
): void {
  const seen = new Set<string>();
  items.forEach((item, index) => {
    const name = key(item);
    if (seen.has(name)) throw refused(`${place}[${index}]${field}`, name, 'each one once');
    seen.add(name);
  });
}

export const text: Read<string> = (value, place) => {
  if (typeof value === 'string') return value;
  throw refused(place, value, 'a string');
};

export const bool: Read<boolean> = (value, place) => {
  if (typeof value === 'boolean') return value;
  throw refused(place, value, 'true, false');
};

export function oneOf<Name extends string>(...names: readonly Name[]): Read<Name> {
  return (value, place) => {
    const found = names.find((name) => name === value);
    if (found === undefined) throw refused(place, value, names.join(', '));
    return found;
  };
}

export function whole(from: number, to: number): Read<number> {
  return (value, place) => {
    if (typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to) return value;
    throw refused(place, value, `a whole number from ${from} to ${to}`);
  };
}

export const number: Read<number> = (value, place) => {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw refused(place, value, 'a number');
};

/** An object whose values are strings. */
export const strings: Read<Readonly<Record<string, string>>> = (value, place) => {
  const given = object(value, place);
  for (const [name, each] of Object.entries(given)) {
    if (typeof each !== 'string') throw refused(at(place, name), each, 'a string');
  }
  return { ...given } as Record<string, string>;
};

export const bytes: Read<Buffer> = (value, place) => {
  if (typeof value === 'string' && value.length % 4 === 0) {
    const decoded = Buffer.from(value, 'base64');
    // What is not base64 is passed over while decoding, and missing in the length.
    const padding = value.endsWith('==') ? 2 : value.endsWith('=') ? 1 : 0;
    if (decoded.length === (value.length / 4) * 3 - padding) return decoded;
  }
  throw refused(place, value, 'base64');
};

export const time: Read<Timestamp> = (value, place) => {
  const read = typeof value === 'string' ? readTimestamp(value) : undefined;
  if (read !== undefined) return read;
  throw refused(place, value, 'a time as in 2030-01-31T23:59:59.123Z');
};

/** Milliseconds since the epoch. */
export const timeMs: Read<number> = (value, place) => {
  const { seconds, nanos } = time(value, place);
  return Number(seconds) * 1000 + nanos / 1_000_000;
};

export const duration: Read<Duration> = (value, place) => {
  const read = typeof value === 'string' ? readDuration(value) : undefined;
  if (read !== undefined) return read;
  throw refused(place, value, 'a duration in seconds as in 10s or 0.5s');
};

/** Milliseconds since the epoch as RFC 3339, to the microsecond. */
export const writeMs = (ms: number): string => writeMicros(Math.floor(ms * 1000));

/** Microseconds since the epoch as RFC 3339. */
export function writeMicros(micros: number): string {
  const seconds = Math.floor(micros / 1_000_000);
  return writeTimestamp({ seconds: String(seconds), nanos: (micros - seconds * 1_000_000) * 1000 });
}

export { writeDuration, writeTimestamp };

/** The fields that say something: without those that are empty, false, zero or not set. */
export function meaningful(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value)));
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '' || value === 0) return true;
  return Array.isArray(value) && value.length === 0;
}
