/** Reading a description part by part, with the place of each for errors. */

export type Path = readonly (string | number)[];
/** The place as a user finds it: file, line, path. */
export type PlaceOf = (path: Path) => string;

/** One line, with the place in front. */
export class SeedError extends Error {
  constructor(place: string, text: string) {
    super(`${place}: ${text.replaceAll('\n', ' ')}`);
    this.name = 'SeedError';
  }
}

export const placeIn =
  (name: string): PlaceOf =>
  (path) =>
    path.length === 0 ? name : `${name}: ${path.join('.')}`;

export type Options = Readonly<Record<string, unknown>>;
export type Named = Readonly<{ name: string; options: Options; path: Path }>;

/** Throws SeedError for what is no object, or has a key that is not among `known`. */
export function objectAt(value: unknown, path: Path, placeOf: PlaceOf, known?: readonly string[]): Options {
  if (!isObject(value)) throw new SeedError(placeOf(path), `${shown(value)} is no object`);
  const unknown = known && Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw new SeedError(placeOf([...path, unknown]), `unknown; accepted: ${known?.join(', ')}`);
  }
  return value;
}

export function optionalText(value: unknown, path: Path, placeOf: PlaceOf): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value !== '') return value;
  throw new SeedError(placeOf(path), `${shown(value)} is no text`);
}

/**
 * `[a, { name: b, … }, { c: … }]` or `{ a: …, b: … }`; nothing, or null, where there are no options.
 */
export function named(value: unknown, path: Path, placeOf: PlaceOf): readonly Named[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value.map((item, index) => listed(item, [...path, index], placeOf));
  if (!isObject(value)) {
    throw new SeedError(placeOf(path), `${shown(value)} is neither a list nor an object; accepted: names`);
  }
  return Object.entries(value).map(([name, options]) => ({
    name,
    options: objectAt(options ?? {}, [...path, name], placeOf),
    path: [...path, name],
  }));
}

function listed(item: unknown, path: Path, placeOf: PlaceOf): Named {
  if (typeof item === 'string' && item !== '') return { name: item, options: {}, path };
  if (isObject(item)) {
    const { name, ...options } = item;
    if (typeof name === 'string' && name !== '') return { name, options, path };
    const [only, ...more] = Object.entries(item);
    if (name === undefined && only !== undefined && more.length === 0) {
      return { name: only[0], options: objectAt(only[1] ?? {}, path, placeOf), path: [...path, only[0]] };
    }
  }
  throw new SeedError(placeOf(path), `${shown(item)} has no name; accepted: a name, or an object with one`);
}

const isObject = (value: unknown): value is Options =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const shown = (value: unknown): string => (JSON.stringify(value) ?? String(value)).slice(0, 100);
