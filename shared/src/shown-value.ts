/**
 * Any value that JavaScript may pass, in the text of an error: short, without throwing, and without what an object holds.
 */

const SHOWN_CHARACTERS = 60;

/** Short, of any value, and without what an object holds: a client has credentials. */
export function shownValue(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > SHOWN_CHARACTERS ? `${value.slice(0, SHOWN_CHARACTERS)}…` : value);
  }
  if (value === null || ['undefined', 'number', 'boolean'].includes(typeof value)) return String(value);
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value !== 'object') return `a ${typeof value}`;
  const made: unknown = propertyOf(propertyOf(value, 'constructor'), 'name');
  return typeof made === 'string' && made !== '' && made !== 'Object' ? `an object of ${made}` : 'an object';
}

/** Undefined where the value is nothing that has properties of its own. */
export function propertyOf(value: unknown, name: string): unknown {
  const isHolder = (typeof value === 'object' && value !== null) || typeof value === 'function';
  return isHolder ? Reflect.get(value, name) : undefined;
}
