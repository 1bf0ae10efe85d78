/** Checks of JSON that a person wrote. Each throws an error of one line that names the place and what is accepted. */

export type Json = Readonly<Record<string, unknown>>;

export class PlanError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'PlanError';
  }
}

const SHOWN = 100;

const shown = (value: unknown): string => {
  const text = value === undefined ? 'missing' : JSON.stringify(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
};

export const refused = (place: string, value: unknown, accepted: string): PlanError =>
  new PlanError(`${place} is ${shown(value)}; accepted: ${accepted}`);

export function object(place: string, value: unknown): Json {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json;
  throw refused(place, value, 'an object');
}

/** Throws for a field that is not in `known`. */
export function onlyKnown(place: string, value: Json, known: readonly string[]): void {
  for (const field of Object.keys(value)) {
    if (known.includes(field)) continue;
    const where = place === '' ? field : `${place}.${field}`;
    throw new PlanError(`${where} is not known; accepted: ${known.join(', ') || 'no fields'}`);
  }
}

export function list(place: string, value: unknown, most: number): readonly unknown[] {
  if (Array.isArray(value) && value.length <= most) return value;
  throw Array.isArray(value)
    ? new PlanError(`${place} has ${value.length} entries; accepted: at most ${most}`)
    : refused(place, value, 'a list');
}

export function text(place: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw refused(place, value, 'a text');
}

export function oneOf<Name extends string>(place: string, value: unknown, names: readonly Name[]): Name {
  const found = names.find((name) => name === value);
  if (found !== undefined) return found;
  throw refused(place, value, names.join(', '));
}

export function whole(place: string, value: unknown, from: number, to: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to) return value;
  throw refused(place, value, `a whole number from ${from} to ${to}`);
}
